//! A principal's routing table: XIDs that are this node, and XIDs that are redirected.
//!
//! Reference: Machado et al., "Linux XIA", §4.2.1 (routing redirects). The two parts are the tables
//! *local* and *main* of AltraMayor/XIA-for-Linux; as there, an XID is in one of them at most.
//!
//! Several principals know nothing more of an XID than this, so they share the table: a look-up is
//! one probe of a hash table, lists come out sorted. Many routes lead over few gateways, so an entry
//! holds the number of its gateway: half the memory, and fewer cache lines to wait for. What a local XID leads to (`L`) is the
//! principal's business: a socket, or nothing at all.
//!
//! Routing protocols bring routes of their own ([`XidTable::learn_route`]). What was stated goes first; what was
//! learned holds where nothing is stated.
//!
//! Statements: `local XID`, `route XID via XID`. The gateway may be of any type, the table's own
//! included: the forwarder recognises a loop of redirects when a packet meets it.

pub mod gateways;

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::hint::black_box;

use foldhash::fast::FixedState;
use serde_json::{Value, json};

use gateways::{GatewayNumber, Gateways};

use crate::changes::{Change, ChangeLog};
use crate::words::{WordError, WordReader};
use crate::{Xid, XidType};

/// What the table knows of an XID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<L = ()> {
    /// It is this node.
    Local(L),
    /// Look this XID up instead.
    Via(Xid),
}

/// Why the table was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A route cannot be added, because the XID is this node.
    #[error("{0} is local here; delete that before you add a route")]
    IsLocal(Xid),
    /// The XID cannot become local, because it is routed elsewhere.
    #[error("{0} has a route; delete that before you make it local")]
    IsRouted(Xid),
    /// The route leads back to its own XID.
    #[error("a route from {0} to itself leads nowhere; name another gateway")]
    ToItself(Xid),
    /// The gateway is of type nat.
    #[error("{0} is no gateway: type nat only ends addresses")]
    NatGateway(Xid),
    /// The principal has no redirects.
    #[error("{0} cannot have a route: its principal has no redirects")]
    NoRedirects(Xid),
    /// There is nothing to delete.
    #[error("{0} is not local here")]
    NotLocal(Xid),
    /// There is nothing to delete.
    #[error("{0} has no such route")]
    NoRoute(Xid),
}

/// XIDs of one type: which are local, which are redirected.
///
/// ```
/// use weft_xip::table::{Entry, XidTable};
/// use weft_xip::{Xid, XidType};
///
/// let domain = Xid::new(XidType::AD, [1; 20]);
/// let border = Xid::new(XidType::HID, [2; 20]);
/// let mut table = XidTable::<()>::new(XidType::AD);
/// table.set(&["route", &domain.to_string(), "via", &border.to_string()])?;
/// assert_eq!(table.get(&domain), Some(Entry::Via(border)));
/// # Ok::<(), weft_xip::words::WordError>(())
/// ```
#[derive(Clone, Debug)]
pub struct XidTable<L = ()> {
    kind: XidType,
    // The seed is fixed: whoever may add entries may do worse than to make look-ups slow.
    entries: HashMap<Xid, Stored<L>, FixedState>,
    /// What a routing protocol has found.
    learned: HashMap<Xid, GatewayNumber, FixedState>,
    gateways: Gateways,
    changes: ChangeLog,
}

/// An [`Entry`] as it is kept.
#[derive(Clone, Copy, Debug)]
enum Stored<L> {
    Local(L),
    Via(GatewayNumber),
}

impl<L: Copy> XidTable<L> {
    /// An empty table for XIDs of type `kind`.
    #[must_use]
    pub fn new(kind: XidType) -> Self {
        Self {
            kind,
            entries: HashMap::default(),
            learned: HashMap::default(),
            gateways: Gateways::default(),
            changes: ChangeLog::default(),
        }
    }

    /// What is known of `xid`.
    #[must_use]
    #[inline]
    pub fn get(&self, xid: &Xid) -> Option<Entry<L>> {
        self.stated(xid).or_else(|| {
            // Most nodes learn nothing, and hash no XID twice.
            let learned = !self.learned.is_empty();
            let number = if learned { self.learned.get(xid) } else { None };
            number.map(|number| Entry::Via(self.gateways.get(*number)))
        })
    }

    /// What was stated of `xid`, whatever a routing protocol says.
    #[must_use]
    #[inline]
    pub fn stated(&self, xid: &Xid) -> Option<Entry<L>> {
        self.entries.get(xid).map(|stored| self.entry(*stored))
    }

    fn entry(&self, stored: Stored<L>) -> Entry<L> {
        match stored {
            Stored::Local(target) => Entry::Local(target),
            Stored::Via(number) => Entry::Via(self.gateways.get(number)),
        }
    }

    /// Has the memory brought near that [`XidTable::get`] of this XID will need.
    pub fn prefetch(&self, xid: &Xid) {
        // Nothing depends on the result, so the processor goes on without waiting for it.
        black_box(self.entries.contains_key(xid));
    }

    /// Makes `xid` local, leading to `target`; replaces an earlier target.
    ///
    /// # Errors
    /// The XID has a route.
    pub fn add_local(&mut self, xid: Xid, target: L) -> Result<(), TableError> {
        if let Some(Entry::Via(_)) = self.stated(&xid) {
            return Err(TableError::IsRouted(xid));
        }
        self.entries.insert(xid, Stored::Local(target));
        self.changes.note(Change::Xid(xid));
        Ok(())
    }

    /// Redirects `xid` to `via`; replaces an earlier route.
    ///
    /// # Errors
    /// The XID is local, or `via` cannot be a gateway.
    pub fn add_route(&mut self, xid: Xid, via: Xid) -> Result<(), TableError> {
        if via.kind.is_nat() {
            return Err(TableError::NatGateway(via));
        }
        if via == xid {
            return Err(TableError::ToItself(xid));
        }
        match self.entries.entry(xid) {
            Place::Occupied(mut place) => match *place.get() {
                Stored::Local(_) => return Err(TableError::IsLocal(xid)),
                Stored::Via(earlier) if self.gateways.get(earlier) == via => return Ok(()),
                Stored::Via(earlier) => {
                    place.insert(Stored::Via(self.gateways.add(via)));
                    self.gateways.release(earlier);
                }
            },
            Place::Vacant(place) => {
                place.insert(Stored::Via(self.gateways.add(via)));
            }
        }
        self.changes.note(Change::Xid(xid));
        Ok(())
    }

    /// Redirects `xid` to `via` in place of an earlier route, or removes its route.
    ///
    /// # Errors
    /// Those of [`XidTable::add_route`] and [`XidTable::remove_route`].
    pub fn redirect(&mut self, xid: Xid, via: Option<Xid>) -> Result<(), TableError> {
        match via {
            Some(via) => self.add_route(xid, via),
            None => self.remove_route(&xid, None),
        }
    }

    /// Makes `xid` unknown again; returns what it led to.
    ///
    /// # Errors
    /// The XID is not local.
    pub fn remove_local(&mut self, xid: &Xid) -> Result<L, TableError> {
        match self.stated(xid) {
            Some(Entry::Local(target)) => {
                self.entries.remove(xid);
                self.changes.note(Change::Xid(*xid));
                Ok(target)
            }
            _ => Err(TableError::NotLocal(*xid)),
        }
    }

    /// Removes the route of `xid`, if it leads to `via` or `via` is `None`.
    ///
    /// # Errors
    /// There is no such route.
    pub fn remove_route(&mut self, xid: &Xid, via: Option<Xid>) -> Result<(), TableError> {
        match self.stated(xid) {
            Some(Entry::Via(gateway)) if via.is_none_or(|via| via == gateway) => {
                if let Some(Stored::Via(number)) = self.entries.remove(xid) {
                    self.gateways.release(number);
                }
                self.changes.note(Change::Xid(*xid));
                Ok(())
            }
            _ => Err(TableError::NoRoute(*xid)),
        }
    }

    /// What a routing protocol has found: a route over `via`, or none any more. A route to itself leads
    /// nowhere and counts as none.
    pub fn learn_route(&mut self, xid: Xid, via: Option<Xid>) {
        let number = via.filter(|via| *via != xid).map(|via| self.gateways.add(via));
        let earlier = match number {
            Some(number) => self.learned.insert(xid, number),
            None => self.learned.remove(&xid),
        };
        if let Some(earlier) = earlier {
            self.gateways.release(earlier);
        }
        self.changes.note(Change::Xid(xid));
    }

    /// What has changed since this was called last, for [`Principal::drain_changes`].
    ///
    /// [`Principal::drain_changes`]: crate::principal::Principal::drain_changes
    pub fn drain_changes(&mut self, out: &mut Vec<Change>) {
        self.changes.drain(out);
    }

    /// The local XIDs and what they lead to, in order.
    #[must_use]
    pub fn locals(&self) -> Vec<(Xid, L)> {
        self.sorted(|entry| match entry {
            Entry::Local(target) => Some(target),
            Entry::Via(_) => None,
        })
    }

    /// The routes that were learned, as XID and gateway, in order; those in whose stead others are stated
    /// included.
    #[must_use]
    pub fn learned(&self) -> Vec<(Xid, Xid)> {
        let all = self.learned.iter();
        let mut list: Vec<_> = all.map(|(xid, via)| (*xid, self.gateways.get(*via))).collect();
        list.sort_unstable();
        list
    }

    /// The routes that were stated, as XID and gateway, in order.
    #[must_use]
    pub fn routes(&self) -> Vec<(Xid, Xid)> {
        self.sorted(|entry| match entry {
            Entry::Local(_) => None,
            Entry::Via(gateway) => Some(gateway),
        })
    }

    fn sorted<T>(&self, pick: impl Fn(Entry<L>) -> Option<T>) -> Vec<(Xid, T)> {
        let all = self.entries.iter().map(|(xid, stored)| (*xid, self.entry(*stored)));
        let mut list: Vec<_> = all.filter_map(|(xid, entry)| Some((xid, pick(entry)?))).collect();
        list.sort_unstable_by_key(|(xid, _)| *xid);
        list
    }

    /// Reads `XID via XID`, the part of a statement behind `route`, and adds that route.
    ///
    /// # Errors
    /// Says which word is wrong.
    pub fn set_route(&mut self, reader: &mut WordReader) -> Result<(), WordError> {
        let xid = reader.xid_of(self.kind)?;
        reader.expect("via")?;
        let via = reader.value("the XID of a gateway")?;
        reader.clone().end()?;
        self.add_route(xid, via).map_err(|error| reader.error(error.to_string()))
    }

    /// Reads `XID [via XID]`, the part of a statement behind `route`, and removes that route.
    ///
    /// # Errors
    /// Says which word is wrong, or that there is no such route.
    pub fn delete_route(&mut self, reader: &mut WordReader) -> Result<(), WordError> {
        let xid = reader.xid_of(self.kind)?;
        let via = match reader.take("via") {
            true => Some(reader.value("the XID of a gateway")?),
            false => None,
        };
        reader.clone().end()?;
        self.remove_route(&xid, via).map_err(|error| reader.error(error.to_string()))
    }

    /// The routes that were stated as JSON: `[{"xid": …, "via": …}, …]`, sorted.
    #[must_use]
    pub fn show_routes(&self) -> Value {
        show_routes(self.routes())
    }
}

/// Routes as JSON: `[{"xid": …, "via": …}, …]`.
#[must_use]
pub fn show_routes(routes: impl IntoIterator<Item = (Xid, Xid)>) -> Value {
    let route = |(xid, via): (Xid, Xid)| json!({ "xid": xid.to_string(), "via": via.to_string() });
    routes.into_iter().map(route).collect()
}

impl XidTable<()> {
    /// Carries out a statement: `local XID` or `route XID via XID`.
    ///
    /// # Errors
    /// Says which word is wrong; nothing is changed then.
    pub fn set(&mut self, words: &[&str]) -> Result<(), WordError> {
        let mut reader = WordReader::new(words);
        match reader.word("`local` or `route`")? {
            "local" => {
                let xid = reader.xid_of(self.kind)?;
                reader.clone().end()?;
                self.add_local(xid, ()).map_err(|error| reader.error(error.to_string()))
            }
            "route" => self.set_route(&mut reader),
            word => Err(self.unknown(word, &reader)),
        }
    }

    /// Undoes what [`XidTable::set`] does with the same words; `via XID` may be left out.
    ///
    /// # Errors
    /// Says which word is wrong, or that there is no such entry.
    pub fn delete(&mut self, words: &[&str]) -> Result<(), WordError> {
        let mut reader = WordReader::new(words);
        match reader.word("`local` or `route`")? {
            "local" => {
                let xid = reader.xid_of(self.kind)?;
                reader.clone().end()?;
                self.remove_local(&xid).map_err(|error| reader.error(error.to_string())).map(drop)
            }
            "route" => self.delete_route(&mut reader),
            word => Err(self.unknown(word, &reader)),
        }
    }

    /// Both parts as JSON: `{"locals": […], "routes": [{"xid": …, "via": …}, …]}`, sorted.
    #[must_use]
    pub fn show(&self) -> Value {
        let locals: Value = self.locals().into_iter().map(|(xid, ())| xid.to_string()).collect();
        json!({ "locals": locals, "routes": self.show_routes() })
    }

    fn unknown(&self, word: &str, reader: &WordReader) -> WordError {
        let kind = self.kind;
        reader.error(format!(
            "`{word}` is not a statement of {kind}; write `local {kind}-…` or `route {kind}-… via XID`"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn ad(id: u8) -> Xid {
        Xid::new(XidType::AD, [id; 20])
    }

    fn hid(id: u8) -> Xid {
        Xid::new(XidType::HID, [id; 20])
    }

    fn table() -> XidTable {
        XidTable::new(XidType::AD)
    }

    fn set(table: &mut XidTable, line: &str) -> Result<(), WordError> {
        table.set(&line.split(' ').collect::<Vec<_>>())
    }

    fn delete(table: &mut XidTable, line: &str) -> Result<(), WordError> {
        table.delete(&line.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn statements_add_and_remove_entries() {
        let mut table = table();
        set(&mut table, &format!("local {}", ad(1))).unwrap();
        set(&mut table, &format!("route {} via {}", ad(2), hid(9))).unwrap();
        assert_eq!(table.get(&ad(1)), Some(Entry::Local(())));
        assert_eq!(table.get(&ad(2)), Some(Entry::Via(hid(9))));
        assert_eq!(table.get(&ad(3)), None);
        delete(&mut table, &format!("local {}", ad(1))).unwrap();
        delete(&mut table, &format!("route {} via {}", ad(2), hid(9))).unwrap();
        assert_eq!((table.get(&ad(1)), table.get(&ad(2))), (None, None));
    }

    #[test]
    fn a_second_route_of_an_xid_replaces_the_first() {
        let mut table = table();
        set(&mut table, &format!("route {} via {}", ad(2), hid(8))).unwrap();
        set(&mut table, &format!("route {} via {}", ad(2), hid(9))).unwrap();
        assert_eq!(table.routes(), [(ad(2), hid(9))]);
        assert!(delete(&mut table, &format!("route {} via {}", ad(2), hid(8))).is_err());
        delete(&mut table, &format!("route {}", ad(2))).unwrap();
        assert_eq!(table.routes(), []);
    }

    #[test]
    fn an_xid_is_local_or_routed_but_never_both() {
        let mut table = table();
        set(&mut table, &format!("local {}", ad(1))).unwrap();
        set(&mut table, &format!("route {} via {}", ad(2), hid(9))).unwrap();
        let error = set(&mut table, &format!("route {} via {}", ad(1), hid(9))).unwrap_err();
        assert!(error.text.contains("is local here"), "{error}");
        let error = set(&mut table, &format!("local {}", ad(2))).unwrap_err();
        assert!(error.text.contains("has a route"), "{error}");
        assert_eq!(table.show()["locals"].as_array().map(Vec::len), Some(1));
        assert_eq!(table.show()["routes"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn a_gateway_of_the_same_type_is_allowed_and_the_xid_itself_is_not() {
        let mut table = table();
        set(&mut table, &format!("route {} via {}", ad(1), ad(2))).unwrap();
        let error = set(&mut table, &format!("route {} via {}", ad(3), ad(3))).unwrap_err();
        assert_eq!(error.word, Some(3));
        assert!(set(&mut table, &format!("route {} via nat-{}", ad(3), "00".repeat(20))).is_err());
        assert_eq!(table.get(&ad(3)), None);
    }

    #[test]
    fn an_error_points_at_the_word_and_changes_nothing() {
        let (one, nine) = (ad(1).to_string(), hid(9).to_string());
        let cases: [(&[&str], Option<usize>); 8] = [
            (&["neighbour", &one], Some(0)),
            (&["local", &nine], Some(1)),
            (&["local", "ad-12"], Some(1)),
            (&["local", &one, "now"], Some(2)),
            (&["route", &one, "over", &nine], Some(2)),
            (&["route", &one, "via", "hid"], Some(3)),
            (&["route", &one, "via", &nine, "fast"], Some(4)),
            (&["route", &one, "via"], None),
        ];
        let mut table = table();
        for (words, word) in cases {
            assert_eq!(table.set(words).unwrap_err().word, word, "{words:?}");
            assert!(table.delete(words).is_err(), "{words:?}");
        }
        assert!(table.set(&[]).is_err());
        assert_eq!(table.show(), json!({ "locals": [], "routes": [] }));
    }

    #[test]
    fn what_is_learned_holds_where_nothing_is_stated() {
        let mut table = table();
        table.learn_route(ad(1), Some(hid(9)));
        table.learn_route(ad(2), Some(hid(9)));
        assert_eq!(table.get(&ad(1)), Some(Entry::Via(hid(9))));
        set(&mut table, &format!("route {} via {}", ad(1), hid(8))).unwrap();
        set(&mut table, &format!("local {}", ad(2))).unwrap();
        table.learn_route(ad(1), Some(hid(7)));
        assert_eq!(table.get(&ad(1)), Some(Entry::Via(hid(8))));
        assert_eq!(table.get(&ad(2)), Some(Entry::Local(())));
        assert_eq!(
            (table.routes(), table.learned()),
            (vec![(ad(1), hid(8))], vec![(ad(1), hid(7)), (ad(2), hid(9))])
        );
        delete(&mut table, &format!("route {}", ad(1))).unwrap();
        delete(&mut table, &format!("local {}", ad(2))).unwrap();
        assert_eq!(table.get(&ad(1)), Some(Entry::Via(hid(7))));
        assert_eq!(table.get(&ad(2)), Some(Entry::Via(hid(9))));
        assert!(delete(&mut table, &format!("route {}", ad(1))).is_err(), "it was not stated");
        table.learn_route(ad(1), None);
        table.learn_route(ad(2), Some(ad(2)));
        assert_eq!((table.get(&ad(1)), table.get(&ad(2))), (None, None));
        assert_eq!(table.learned(), []);
    }

    #[test]
    fn what_is_not_there_cannot_be_deleted() {
        let mut table = table();
        set(&mut table, &format!("local {}", ad(1))).unwrap();
        assert!(delete(&mut table, &format!("local {}", ad(2))).is_err());
        assert!(delete(&mut table, &format!("route {}", ad(1))).is_err());
        assert_eq!(table.locals(), [(ad(1), ())]);
    }

    proptest! {
        /// The model is a sorted map with the same rules; lists and look-ups agree with it.
        #[test]
        fn agrees_with_a_sorted_map(steps in prop::collection::vec((0u8..4, 0u8..6, 0u8..6), 0..60)) {
            let (mut table, mut model) = (table(), BTreeMap::<Xid, Option<Xid>>::new());
            for (step, xid, via) in steps {
                let (xid, via) = (ad(xid), hid(via));
                match step {
                    0 => {
                        let free = !matches!(model.get(&xid), Some(Some(_)));
                        prop_assert_eq!(table.add_local(xid, ()).is_ok(), free);
                        if free { model.insert(xid, None); }
                    }
                    1 => {
                        let free = model.get(&xid) != Some(&None);
                        prop_assert_eq!(table.add_route(xid, via).is_ok(), free);
                        if free { model.insert(xid, Some(via)); }
                    }
                    2 => {
                        let there = model.get(&xid) == Some(&None);
                        prop_assert_eq!(table.remove_local(&xid).is_ok(), there);
                        if there { model.remove(&xid); }
                    }
                    _ => {
                        let there = model.get(&xid) == Some(&Some(via));
                        prop_assert_eq!(table.remove_route(&xid, Some(via)).is_ok(), there);
                        if there { model.remove(&xid); }
                    }
                }
            }
            let locals: Vec<_> = model.iter().filter(|e| e.1.is_none()).map(|e| (*e.0, ())).collect();
            let routes: Vec<_> = model.iter().filter_map(|e| Some((*e.0, (*e.1)?))).collect();
            prop_assert_eq!(table.locals(), locals);
            prop_assert_eq!(table.routes(), routes);
        }
    }
}
