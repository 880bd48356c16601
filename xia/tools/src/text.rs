//! Where applications send to, made of what users type.

use weft_xip::node::ECHO_SINK;
use weft_xip::{Address, Xid, XidType};

/// The address to send to in order to reach a datagram sink: `address` itself if it ends in one
/// already (XDP or zFilter), else with `sink` behind its last node.
///
/// # Errors
/// The address is too long, or has several sinks.
pub fn destination(address: &Address, sink: Xid) -> Result<Address, String> {
    if takes_datagrams(address)? {
        return Ok(*address);
    }
    append(address, sink).ok_or_else(|| format!("{address} has no room for {sink}"))
}

/// Checks that somebody can receive datagrams at `address`: that it ends in XDP or a zFilter.
pub(crate) fn check_destination(address: &Address) -> Result<(), String> {
    if takes_datagrams(address)? {
        return Ok(());
    }
    Err(format!(
        "{address} does not end in a datagram sink or a zFilter, so that nobody there would receive \
         anything: write for example {}-1:xdp-<40 hex digits>-0",
        address.final_xid()
    ))
}

fn takes_datagrams(address: &Address) -> Result<bool, String> {
    let last = address.single_sink().map_err(|error| error.to_string())?;
    Ok([XidType::XDP, XidType::ZF].contains(&last.kind))
}

/// Puts `sink` behind the single sink of `address`.
fn append(address: &Address, sink: Xid) -> Option<Address> {
    use weft_xip::{Edge, Row};

    let mut rows = address.rows().to_vec();
    let last = rows.last_mut()?;
    // The entry node's edges move to the new last row; the old sink gets an edge to it.
    let entry = last.edges;
    last.edges = [Edge::to(rows_len(address)?), Edge::EMPTY, Edge::EMPTY, Edge::EMPTY];
    rows.push(Row { xid: sink, edges: entry });
    Address::from_rows(&rows).ok().filter(Address::is_valid)
}

fn rows_len(address: &Address) -> Option<u8> {
    u8::try_from(address.len()).ok()
}

/// The address that a ping goes to: the node's echo responder, unless the address names a sink.
pub(crate) fn echo_destination(address: &Address) -> Result<Address, String> {
    destination(address, ECHO_SINK)
}

#[cfg(test)]
mod tests {
    use weft_xia_sockets::parse_address;

    use super::*;

    fn hid() -> String {
        format!("hid-{}", "ab".repeat(20))
    }

    #[test]
    fn a_sink_is_put_behind_the_last_node() {
        let address = parse_address(&hid()).unwrap();
        let echo = echo_destination(&address).unwrap();
        assert_eq!(echo.to_string(), format!("{}-1:{}-0", hid(), ECHO_SINK));
        assert_eq!(echo_destination(&echo).unwrap(), echo);
    }

    #[test]
    fn a_full_address_leaves_no_room() {
        let xid: Xid = hid().parse().unwrap();
        let path: Vec<_> = (0..9).map(|i| Xid::new(xid.kind, [i; 20])).collect();
        let address = Address::scoping(&path).unwrap();
        assert!(echo_destination(&address).unwrap_err().contains("no room"));
    }
}
