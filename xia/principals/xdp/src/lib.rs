//! XDP, the eXpressive Datagram Principal: datagrams to the sockets of applications.
//!
//! Reference: Machado et al., "Linux XIA", §4 (XDP is to XIA what UDP is to TCP/IP); behaviour as in
//! AltraMayor/XIA-for-Linux, `net/xia/ppal_xdp`.
//!
//! An XDP identifier is a name that an application chooses. There is no header: the data follows the
//! XIP header directly. XDP is the principal of the paper, not the hook of the Linux kernel.
//!
//! | XID | answer |
//! |---|---|
//! | bound to a socket | deliver; an error inside an address, where it cannot be passed through |
//! | `route XID via XID…`, or a routing protocol's redirect | look the gateway up instead, or one of several |
//! | `route XID unreachable` | unknown, the next edge is tried |
//! | anything else | the same by `route default via XID…`; without that unknown |
//!
//! An XID becomes local when a socket is bound to it, never by a statement. A packet goes its way by
//! [`Principal::lookup`] alone; the principal sends nothing and has no timer.
//!
//! ```
//! use weft_base::Random;
//! use weft_xia_xdp::Xdp;
//! use weft_xip::principal::{Answer, Principal, SocketId};
//! use weft_xip::{Xid, XidType};
//!
//! let mut xdp = Xdp::new(Random::from_seed(1));
//! let name = Xid::new(XidType::XDP, [7; 20]);
//! xdp.bind(name, SocketId(1))?;
//! assert_eq!(xdp.lookup(&name, &mut Vec::new()), Answer::Deliver(SocketId(1)));
//! # Ok::<(), weft_xip::principal::BindError>(())
//! ```

use serde_json::{Value, json};
use weft_base::{Instant, Random};
use weft_xip::changes::Change;
use weft_xip::principal::{Answer, BindError, Branch, Output, Principal, SocketId};
use weft_xip::table::{XidTable, show_routes};
use weft_xip::words::{WordError, WordReader};
use weft_xip::{Xid, XidType};

/// The principal XDP.
#[derive(Debug)]
pub struct Xdp {
    table: XidTable<SocketId>,
}

impl Xdp {
    /// XDP without sockets and routes. `random` seeds a hash.
    #[must_use]
    pub fn new(mut random: Random) -> Self {
        Self { table: XidTable::new(XidType::XDP, &mut random) }
    }
}

impl Principal for Xdp {
    fn kind(&self) -> XidType {
        XidType::XDP
    }

    fn lookup(&self, xid: &Xid, branches: &mut Vec<Branch>) -> Answer {
        self.table.answer(xid, branches, Answer::Deliver)
    }

    fn prefetch(&self, xid: &Xid) {
        self.table.prefetch(xid);
    }

    fn drain_changes(&mut self, out: &mut Vec<Change>) {
        self.table.drain_changes(out);
    }

    fn set(&mut self, _: Instant, words: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        let mut reader = expect_route(words)?;
        self.table.set_route(&mut reader)
    }

    fn delete(&mut self, _: Instant, words: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        let mut reader = expect_route(words)?;
        self.table.delete_route(&mut reader)
    }

    fn learn(&mut self, xid: Xid, via: &[Xid]) {
        self.table.learn_route(xid, via);
    }

    fn show(&self) -> Value {
        let socket =
            |(xid, socket): (Xid, SocketId)| json!({ "xid": xid.to_string(), "socket": socket.0 });
        let sockets: Value = self.table.locals().into_iter().map(socket).collect();
        let learned = show_routes(self.table.learned());
        json!({ "sockets": sockets, "routes": self.table.show_routes(), "learned": learned })
    }

    fn locals(&self) -> Vec<Xid> {
        self.table.locals().into_iter().map(|(xid, _)| xid).collect()
    }

    /// An XID for which a route is stated is taken, too. What a routing protocol has found does not count:
    /// several nodes may have a socket of the same name.
    fn bind(&mut self, xid: Xid, socket: SocketId) -> Result<(), BindError> {
        if xid.kind != XidType::XDP {
            return Err(BindError::NoSockets);
        }
        match self.table.stated(&xid) {
            Some(_) => Err(BindError::Taken),
            None => self.table.add_local(xid, socket).map_err(|_| BindError::Taken),
        }
    }

    fn unbind(&mut self, xid: &Xid) {
        // An XID that is not bound is left alone, as the trait says.
        let _ = self.table.remove_local(xid);
    }
}

/// Takes the word `route`, the only statement there is.
fn expect_route<'a>(words: &'a [&'a str]) -> Result<WordReader<'a>, WordError> {
    let mut reader = WordReader::new(words);
    match reader.word("`route`")? {
        "route" => Ok(reader),
        "local" => Err(reader.error(
            "an xdp XID is local while a socket is bound to it; start the application instead",
        )),
        word => Err(reader
            .error(format!("`{word}` is not a statement of xdp; write `route xdp-… via XID…`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(id: u8) -> Xid {
        Xid::new(XidType::XDP, [id; 20])
    }

    fn gateway() -> Xid {
        Xid::new(XidType::HID, [9; 20])
    }

    fn ask(xdp: &Xdp, xid: Xid) -> Answer {
        xdp.lookup(&xid, &mut Vec::new())
    }

    fn set(xdp: &mut Xdp, line: &str) -> Result<(), WordError> {
        let words: Vec<_> = line.split(' ').collect();
        xdp.set(Instant::ZERO, &words, &mut Vec::new())
    }

    fn delete(xdp: &mut Xdp, line: &str) -> Result<(), WordError> {
        let words: Vec<_> = line.split(' ').collect();
        xdp.delete(Instant::ZERO, &words, &mut Vec::new())
    }

    #[test]
    fn a_bound_name_is_delivered_until_it_is_unbound() {
        let mut xdp = Xdp::new(Random::from_seed(1));
        assert_eq!(ask(&xdp, name(1)), Answer::Unknown);
        xdp.bind(name(1), SocketId(5)).unwrap();
        assert_eq!(ask(&xdp, name(1)), Answer::Deliver(SocketId(5)));
        assert_eq!(ask(&xdp, name(2)), Answer::Unknown);
        assert_eq!(xdp.locals(), [name(1)]);
        xdp.unbind(&name(1));
        xdp.unbind(&name(1));
        assert_eq!(ask(&xdp, name(1)), Answer::Unknown);
    }

    #[test]
    fn a_name_belongs_to_one_socket() {
        let mut xdp = Xdp::new(Random::from_seed(1));
        xdp.bind(name(1), SocketId(5)).unwrap();
        assert_eq!(xdp.bind(name(1), SocketId(6)), Err(BindError::Taken));
        assert_eq!(ask(&xdp, name(1)), Answer::Deliver(SocketId(5)));
        assert_eq!(xdp.bind(gateway(), SocketId(6)), Err(BindError::NoSockets));
    }

    #[test]
    fn a_route_redirects() {
        let mut xdp = Xdp::new(Random::from_seed(1));
        set(&mut xdp, &format!("route {} via {}", name(1), gateway())).unwrap();
        assert_eq!(ask(&xdp, name(1)), Answer::Redirect(gateway()));
        delete(&mut xdp, &format!("route {} via {}", name(1), gateway())).unwrap();
        assert_eq!(ask(&xdp, name(1)), Answer::Unknown);
    }

    #[test]
    fn a_name_is_bound_or_routed_but_never_both() {
        let mut xdp = Xdp::new(Random::from_seed(1));
        xdp.bind(name(1), SocketId(5)).unwrap();
        set(&mut xdp, &format!("route {} via {}", name(2), gateway())).unwrap();
        assert!(set(&mut xdp, &format!("route {} via {}", name(1), gateway())).is_err());
        assert_eq!(xdp.bind(name(2), SocketId(5)), Err(BindError::Taken));
        xdp.unbind(&name(2));
        assert_eq!(ask(&xdp, name(2)), Answer::Redirect(gateway()));
        assert!(delete(&mut xdp, &format!("route {}", name(1))).is_err());
    }

    #[test]
    fn an_unknown_statement_is_refused_with_its_place() {
        let mut xdp = Xdp::new(Random::from_seed(1));
        let error = set(&mut xdp, &format!("local {}", name(1))).unwrap_err();
        assert_eq!(error.word, Some(0));
        assert!(error.text.contains("socket is bound"));
        assert_eq!(set(&mut xdp, "sockets 5").unwrap_err().word, Some(0));
        assert_eq!(delete(&mut xdp, "sockets 5").unwrap_err().word, Some(0));
        assert_eq!(set(&mut xdp, &format!("route {} via x", name(1))).unwrap_err().word, Some(3));
        assert!(xdp.set(Instant::ZERO, &[], &mut Vec::new()).is_err());
    }

    #[test]
    fn shows_sockets_and_routes_in_order() {
        let mut xdp = Xdp::new(Random::from_seed(1));
        xdp.bind(name(3), SocketId(1)).unwrap();
        xdp.bind(name(1), SocketId(2)).unwrap();
        set(&mut xdp, &format!("route {} via {}", name(2), gateway())).unwrap();
        let expected = json!({
            "sockets": [
                { "xid": name(1).to_string(), "socket": 2 },
                { "xid": name(3).to_string(), "socket": 1 },
            ],
            "routes": [{ "xid": name(2).to_string(), "via": gateway().to_string() }],
            "learned": [],
        });
        assert_eq!(xdp.show(), expected);
    }
}
