//! AD, autonomous domains.
//!
//! Reference: Machado et al., "Linux XIA", §3 and §4.2.1 (routing redirects); behaviour as in
//! AltraMayor/XIA-for-Linux, `net/xia/ppal_ad`.
//!
//! An AD identifier is the hash of the domain's public key. A router of the domain passes packets on
//! to what the address names behind the domain; any other router looks up a gateway of another
//! principal instead, usually the HID of the next router.
//!
//! | XID | answer |
//! |---|---|
//! | `local XID` | this node: go on behind it; an error as a sink, a domain receives no data |
//! | `route XID via XID…`, or a routing protocol's redirect | look the gateway up instead, or one of several |
//! | `route XID unreachable` | unknown, the next edge is tried |
//! | anything else | the same by `route default via XID…`; without that unknown |
//!
//! A packet goes its way by [`Principal::lookup`] alone; the principal sends nothing and has no timer.
//!
//! ```
//! use weft_base::{Instant, Random};
//! use weft_xia_ad::Ad;
//! use weft_xip::principal::{Answer, Principal};
//! use weft_xip::{Xid, XidType};
//!
//! let mut ad = Ad::new(Random::from_seed(1));
//! let here = Xid::new(XidType::AD, [1; 20]);
//! ad.set(Instant::ZERO, &["local", &here.to_string()], &mut Vec::new())?;
//! assert_eq!(ad.lookup(&here, &mut Vec::new()), Answer::Through);
//! # Ok::<(), weft_xip::words::WordError>(())
//! ```

use serde_json::Value;
use weft_base::{Instant, Random};
use weft_xip::changes::Change;
use weft_xip::principal::{Answer, Branch, Output, Principal};
use weft_xip::table::{XidTable, show_routes};
use weft_xip::words::WordError;
use weft_xip::{Xid, XidType};

/// The principal AD.
#[derive(Debug)]
pub struct Ad {
    table: XidTable,
}

impl Ad {
    /// A node that belongs to no domain and knows no way to any. `random` seeds a hash.
    #[must_use]
    pub fn new(mut random: Random) -> Self {
        Self { table: XidTable::new(XidType::AD, &mut random) }
    }
}

impl Principal for Ad {
    fn kind(&self) -> XidType {
        XidType::AD
    }

    fn lookup(&self, xid: &Xid, branches: &mut Vec<Branch>) -> Answer {
        self.table.answer(xid, branches, |()| Answer::Through)
    }

    fn prefetch(&self, xid: &Xid) {
        self.table.prefetch(xid);
    }

    fn drain_changes(&mut self, out: &mut Vec<Change>) {
        self.table.drain_changes(out);
    }

    fn set(&mut self, _: Instant, words: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        self.table.set(words)
    }

    fn delete(&mut self, _: Instant, words: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        self.table.delete(words)
    }

    fn learn(&mut self, xid: Xid, via: &[Xid]) {
        self.table.learn_route(xid, via);
    }

    fn show(&self) -> Value {
        let mut shown = self.table.show();
        shown["learned"] = show_routes(self.table.learned());
        shown
    }

    fn locals(&self) -> Vec<Xid> {
        self.table.locals().into_iter().map(|(xid, ())| xid).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use weft_xip::forward::{Forwarder, Limits};
    use weft_xip::principal::{BindError, SocketId};

    use super::*;

    fn domain(id: u8) -> Xid {
        Xid::new(XidType::AD, [id; 20])
    }

    fn gateway() -> Xid {
        Xid::new(XidType::HID, [9; 20])
    }

    fn with(lines: &[String]) -> Ad {
        let mut ad = Ad::new(Random::from_seed(1));
        for line in lines {
            let words: Vec<_> = line.split(' ').collect();
            ad.set(Instant::ZERO, &words, &mut Vec::new()).unwrap();
        }
        ad
    }

    #[test]
    fn answers_by_the_roles_of_an_ad() {
        let ad = with(&[
            format!("local {}", domain(1)),
            format!("route {} via {}", domain(2), gateway()),
        ]);
        let ask = |xid| ad.lookup(&xid, &mut Vec::new());
        assert_eq!(ask(domain(1)), Answer::Through);
        assert_eq!(ask(domain(2)), Answer::Redirect(gateway()));
        assert_eq!(ask(domain(3)), Answer::Unknown);
    }

    #[test]
    fn a_domain_that_nobody_knows_has_the_default() {
        let mut ad = with(&[
            format!("route default via {}", gateway()),
            format!("route {} unreachable", domain(2)),
        ]);
        let ask = |ad: &Ad, xid| ad.lookup(&xid, &mut Vec::new());
        assert_eq!(ask(&ad, domain(1)), Answer::Redirect(gateway()));
        assert_eq!(ask(&ad, domain(2)), Answer::Unknown);
        let rows = json!([
            { "xid": "default", "via": gateway().to_string() },
            { "xid": domain(2).to_string(), "via": null },
        ]);
        assert_eq!(ad.show()["routes"], rows);
        ad.delete(Instant::ZERO, &["route", "default"], &mut Vec::new()).unwrap();
        assert_eq!(ask(&ad, domain(1)), Answer::Unknown);
    }

    #[test]
    fn a_protocol_redirects_what_nobody_has_stated() {
        let mut ad = with(&[format!("route {} via {}", domain(2), gateway())]);
        let other = Xid::new(XidType::HID, [8; 20]);
        ad.learn(domain(2), &[other]);
        ad.learn(domain(3), &[other]);
        let ask = |ad: &Ad, xid| ad.lookup(&xid, &mut Vec::new());
        assert_eq!(ask(&ad, domain(2)), Answer::Redirect(gateway()));
        assert_eq!(ask(&ad, domain(3)), Answer::Redirect(other));
        ad.learn(domain(3), &[]);
        assert_eq!(ask(&ad, domain(3)), Answer::Unknown);
    }

    #[test]
    fn what_a_protocol_has_found_all_at_once_is_no_different() {
        let mut forwarder = Forwarder::new(Limits::default(), Random::from_seed(1));
        forwarder.add_principal(Box::new(with(&[format!("local {}", domain(60))])));
        let gateways = [gateway(), Xid::new(XidType::HID, [8; 20])];
        let all: Vec<_> = (1..=100)
            .map(|id| (domain(id), std::slice::from_ref(&gateways[usize::from(id) % 2])))
            .collect();
        forwarder.principal_mut(XidType::AD).unwrap().learn_all(&all);
        let ad = forwarder.principal(XidType::AD).unwrap();
        for (id, (xid, via)) in (1..).zip(&all) {
            let answer = match id {
                60 => Answer::Through,
                _ => Answer::Redirect(via[0]),
            };
            assert_eq!(ad.lookup(xid, &mut Vec::new()), answer, "domain {id}");
        }
    }

    #[test]
    fn what_is_deleted_is_unknown_again() {
        let lines =
            [format!("local {}", domain(1)), format!("route {} via {}", domain(2), gateway())];
        let mut ad = with(&lines);
        for line in &lines {
            let words: Vec<_> = line.split(' ').collect();
            ad.delete(Instant::ZERO, &words, &mut Vec::new()).unwrap();
            assert!(ad.delete(Instant::ZERO, &words, &mut Vec::new()).is_err());
        }
        assert_eq!(ad.show(), json!({ "locals": [], "routes": [], "learned": [] }));
    }

    #[test]
    fn an_unknown_statement_is_refused_with_its_place() {
        let mut ad = Ad::new(Random::from_seed(1));
        let error = ad.set(Instant::ZERO, &["neighbour", "x"], &mut Vec::new()).unwrap_err();
        assert_eq!(error.word, Some(0));
        assert!(error.text.contains("not a statement of ad"), "{error}");
    }

    #[test]
    fn shows_locals_and_routes_and_has_no_sockets() {
        let mut ad = with(&[
            format!("local {}", domain(2)),
            format!("local {}", domain(1)),
            format!("route {} via {}", domain(3), gateway()),
        ]);
        assert_eq!(ad.locals(), [domain(1), domain(2)]);
        let expected = json!({
            "locals": [domain(1).to_string(), domain(2).to_string()],
            "routes": [{ "xid": domain(3).to_string(), "via": gateway().to_string() }],
            "learned": [],
        });
        assert_eq!(ad.show(), expected);
        assert_eq!(ad.bind(domain(1), SocketId(1)), Err(BindError::NoSockets));
    }
}
