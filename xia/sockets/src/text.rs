//! Addresses, and what to bind to, as people write them.

use weft_xip::channel::BindRequest;
use weft_xip::{Address, Names, Xid, XidType};

/// Reads an address: the full text form of a DAG, or one XID alone (`hid-…`), which stands for the
/// address of one node.
///
/// # Errors
/// A sentence that says what is wrong and what would be right.
pub fn parse_address(text: &str) -> Result<Address, String> {
    if let Ok(xid) = text.parse::<Xid>() {
        return Address::simple(xid).map_err(|error| error.to_string());
    }
    let address: Address = text.parse().map_err(|error| {
        format!("`{text}` is no address: {error}; write for example hid-<40 hex digits>-1:xdp-<40 hex digits>-0")
    })?;
    match address.check() {
        Ok(count) if count == address.len() => Ok(address),
        Ok(_) => Err(format!("`{text}` has a row of type nat, which is no node")),
        Err(error) => Err(format!("`{text}` is no sound address: {error}")),
    }
}

/// Reads what to bind to: a type of XID (`xdp`), of which the node draws one; a sink (`xdp-…`), in front
/// of which the node puts its own address; or a whole address.
///
/// # Errors
/// A sentence that says what is wrong and what would be right.
pub fn parse_bind(text: &str) -> Result<BindRequest, String> {
    if let Some(kind) = parse_kind(text) {
        return Ok(BindRequest::Any(kind));
    }
    match text.parse::<Xid>() {
        Ok(sink) => Ok(BindRequest::Sink(sink)),
        Err(_) => parse_address(text).map(BindRequest::Address),
    }
}

/// Reads the name of a type, or its number, which begins with `0x`.
fn parse_kind(text: &str) -> Option<XidType> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok().map(XidType),
        None => Names::new().type_of(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hid() -> String {
        format!("hid-{}", "ab".repeat(20))
    }

    #[test]
    fn one_xid_is_an_address() {
        assert_eq!(parse_address(&hid()).unwrap().to_string(), format!("{}-0", hid()));
    }

    #[test]
    fn mistakes_are_explained() {
        assert!(parse_address("hid-ab-0").unwrap_err().contains("write for example"));
        let unsound = format!("{}-2:{}-0", hid(), hid());
        assert!(parse_address(&unsound).unwrap_err().contains("no sound address"));
        assert!(parse_bind("nothing").unwrap_err().contains("write for example"));
    }

    #[test]
    fn a_type_a_sink_or_an_address_can_be_bound_to() {
        assert_eq!(parse_bind("xdp"), Ok(BindRequest::Any(XidType::XDP)));
        assert_eq!(parse_bind("0x17"), Ok(BindRequest::Any(XidType::XDP)));
        let sink = Xid::new(XidType::XDP, [7; 20]);
        assert_eq!(parse_bind(&sink.to_string()), Ok(BindRequest::Sink(sink)));
        let address = Address::simple(sink).unwrap();
        assert_eq!(parse_bind(&address.to_string()), Ok(BindRequest::Address(address)));
    }
}
