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
//! What nothing is known of has the *default* route, if there is one; an XID that is stated to be
//! unreachable has not.
//!
//! Statements: `local XID`, and the [routes](route). A gateway may be of any type, the table's own
//! included: the forwarder recognises a loop of redirects when a packet meets it. Of several gateways the
//! forwarder chooses one ([`Answer::AnyOf`]).

pub mod gateways;
pub mod route;

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::hint::black_box;

use foldhash::fast::FixedState;
use serde_json::{Value, json};

use weft_base::{KeyedHash, Random};

use gateways::{GatewayNumber, Gateways, MAX_GATEWAYS, in_order};
use route::{DEFAULT, RouteStatement, Way};

use crate::changes::{Change, ChangeLog};
use crate::principal::{Answer, Branch};
use crate::words::{WordError, WordReader};
use crate::{Xid, XidType};

/// What the table knows of an XID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a, L = ()> {
    /// It is this node.
    Local(L),
    /// Look one of these up instead: in order, each once; if there is none, it leads nowhere.
    Via(&'a [Xid]),
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
    /// There are too many gateways, or none.
    #[error("a route has 1 to {MAX_GATEWAYS} gateways, not {1}; that of {0} was not changed")]
    GatewayCount(Xid, usize),
    /// There is nothing to delete.
    #[error("{0} is not local here")]
    NotLocal(Xid),
    /// There is nothing to delete.
    #[error("{0} has no such route")]
    NoRoute(Xid),
    /// There are too many gateways, or none.
    #[error("a route has 1 to {MAX_GATEWAYS} gateways, not {0}; the default was not changed")]
    DefaultCount(usize),
    /// There is nothing to delete.
    #[error("there is no such default route")]
    NoDefault,
}

/// XIDs of one type: which are local, which are redirected.
///
/// ```
/// use weft_base::Random;
/// use weft_xip::table::{Entry, XidTable};
/// use weft_xip::{Xid, XidType};
///
/// let domain = Xid::new(XidType::AD, [1; 20]);
/// let border = Xid::new(XidType::HID, [2; 20]);
/// let mut table = XidTable::<()>::new(XidType::AD, &mut Random::from_seed(1));
/// table.set(&["route", &domain.to_string(), "via", &border.to_string()])?;
/// assert_eq!(table.get(&domain), Some(Entry::Via(&[border])));
/// # Ok::<(), weft_xip::words::WordError>(())
/// ```
#[derive(Clone, Debug)]
pub struct XidTable<L = ()> {
    kind: XidType,
    // The seed is fixed: whoever may add entries may do worse than to make look-ups slow.
    entries: HashMap<Xid, Stored<L>, FixedState>,
    /// What a routing protocol has found, of XIDs that strangers chose.
    learned: HashMap<Xid, GatewayNumber, KeyedHash>,
    default: Option<GatewayNumber>,
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
    /// An empty table for XIDs of type `kind`; `random` seeds a hash.
    #[must_use]
    pub fn new(kind: XidType, random: &mut Random) -> Self {
        Self {
            kind,
            entries: HashMap::default(),
            learned: HashMap::with_hasher(KeyedHash::new(random)),
            default: None,
            gateways: Gateways::default(),
            changes: ChangeLog::default(),
        }
    }

    /// What is known of `xid`, which may be the default.
    #[must_use]
    #[inline]
    pub fn get(&self, xid: &Xid) -> Option<Entry<'_, L>> {
        self.find(xid).map(|stored| self.entry(stored))
    }

    /// What a principal answers about `xid` that knows nothing but this table: `local` says what it answers if
    /// that is this node.
    #[inline]
    pub fn answer(
        &self,
        xid: &Xid,
        branches: &mut Vec<Branch>,
        local: impl FnOnce(L) -> Answer,
    ) -> Answer {
        match self.find(xid) {
            None => Answer::Unknown,
            Some(Stored::Local(target)) => local(target),
            Some(Stored::Via(number)) => self.gateways.answer(number, branches),
        }
    }

    #[inline]
    fn find(&self, xid: &Xid) -> Option<Stored<L>> {
        self.entries.get(xid).copied().or_else(|| {
            // Most nodes learn nothing, and hash no XID twice.
            let learned = !self.learned.is_empty();
            let number = if learned { self.learned.get(xid).copied() } else { None };
            number.or(self.default).map(Stored::Via)
        })
    }

    /// What was stated of `xid`, whatever a routing protocol says.
    #[must_use]
    #[inline]
    pub fn stated(&self, xid: &Xid) -> Option<Entry<'_, L>> {
        self.entries.get(xid).map(|stored| self.entry(*stored))
    }

    #[inline]
    fn entry(&self, stored: Stored<L>) -> Entry<'_, L> {
        match stored {
            Stored::Local(target) => Entry::Local(target),
            Stored::Via(number) => Entry::Via(self.gateways.get(number)),
        }
    }

    /// Has the memory brought near that [`XidTable::get`] of this XID will need.
    pub fn prefetch(&self, xid: &Xid) {
        // Nothing depends on the result, so the processor goes on without waiting for it.
        black_box(self.find(xid).is_some());
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

    /// Redirects `xid` to one of `via`, in any order; replaces an earlier route.
    ///
    /// # Errors
    /// The XID is local, one of `via` cannot be a gateway, or there are none or too many.
    pub fn add_route(&mut self, xid: Xid, via: &[Xid]) -> Result<(), TableError> {
        if let Some(nat) = via.iter().find(|via| via.kind.is_nat()) {
            return Err(TableError::NatGateway(*nat));
        }
        if via.contains(&xid) {
            return Err(TableError::ToItself(xid));
        }
        if !(1..=MAX_GATEWAYS).contains(&via.len()) {
            return Err(TableError::GatewayCount(xid, via.len()));
        }
        if via.is_sorted_by(|one, other| one < other) {
            return self.set_gateways(xid, via);
        }
        self.set_gateways(xid, &in_order(via.iter().copied()))
    }

    /// Makes `xid` lead nowhere, whatever the default and routing protocols say; replaces an earlier route.
    ///
    /// # Errors
    /// The XID is local.
    pub fn add_unreachable(&mut self, xid: Xid) -> Result<(), TableError> {
        self.set_gateways(xid, &[])
    }

    /// Redirects all XIDs that nothing else is known of to one of `via`, in any order; replaces an earlier default.
    ///
    /// # Errors
    /// There are none or too many, or one of them is of type nat.
    pub fn set_default(&mut self, via: &[Xid]) -> Result<(), TableError> {
        if let Some(nat) = via.iter().find(|via| via.kind.is_nat()) {
            return Err(TableError::NatGateway(*nat));
        }
        if !(1..=MAX_GATEWAYS).contains(&via.len()) {
            return Err(TableError::DefaultCount(via.len()));
        }
        self.replace_default(&in_order(via.iter().copied()));
        Ok(())
    }

    /// Removes these gateways from the default, and it with the last of them; without any, all of it.
    ///
    /// # Errors
    /// There is none, or one of the gateways is none of it; nothing is changed then.
    pub fn remove_default(&mut self, via: &[Xid]) -> Result<(), TableError> {
        let number = self.default.ok_or(TableError::NoDefault)?;
        let left = match via {
            [] => Vec::new(),
            via => self.gateways.without(number, via).ok_or(TableError::NoDefault)?,
        };
        self.replace_default(&left);
        Ok(())
    }

    /// Without gateways there is no default.
    fn replace_default(&mut self, via: &[Xid]) {
        let number = (!via.is_empty()).then(|| self.gateways.add(via));
        let earlier = std::mem::replace(&mut self.default, number);
        if let Some(earlier) = earlier {
            self.gateways.release(earlier);
        }
        if earlier != number {
            self.changes.note(Change::All);
        }
    }

    /// Redirects `xid` to one of these, which are in order.
    fn set_gateways(&mut self, xid: Xid, via: &[Xid]) -> Result<(), TableError> {
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

    /// Removes these gateways from the route of `xid`, and the route with the last of them; without any, the whole
    /// route.
    ///
    /// # Errors
    /// There is no such route, or one of the gateways is none of it; nothing is changed then.
    pub fn remove_route(&mut self, xid: &Xid, via: &[Xid]) -> Result<(), TableError> {
        let none = TableError::NoRoute(*xid);
        let Some(Stored::Via(number)) = self.entries.get(xid).copied() else { return Err(none) };
        let left = match via {
            [] => Vec::new(),
            via => self.gateways.without(number, via).ok_or(none)?,
        };
        if !left.is_empty() {
            return self.set_gateways(*xid, &left);
        }
        self.entries.remove(xid);
        self.gateways.release(number);
        self.changes.note(Change::Xid(*xid));
        Ok(())
    }

    /// What a routing protocol has found: a route over one of `via`, in any order, or none any more if there is
    /// none. What leads to itself leads nowhere and does not count, nor does what exceeds [`MAX_GATEWAYS`].
    pub fn learn_route(&mut self, xid: Xid, via: &[Xid]) {
        let number = self.number_of_found(&xid, via);
        let earlier = match number {
            Some(number) => self.learned.insert(xid, number),
            None => self.learned.remove(&xid),
        };
        if let Some(earlier) = earlier {
            self.gateways.release(earlier);
        }
        if earlier != number {
            self.changes.note(Change::Xid(xid));
        }
    }

    /// The number of those of `via` that count, or none if none does.
    fn number_of_found(&mut self, xid: &Xid, via: &[Xid]) -> Option<GatewayNumber> {
        // Most have one, and need no list of their own.
        if let [one] = via {
            return (one != xid).then(|| self.gateways.add(via));
        }
        let mut via = in_order(via.iter().copied().filter(|via| via != xid));
        via.truncate(MAX_GATEWAYS);
        (!via.is_empty()).then(|| self.gateways.add(&via))
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
        let all = self.entries.iter().filter_map(|(xid, stored)| match stored {
            Stored::Local(target) => Some((*xid, *target)),
            Stored::Via(_) => None,
        });
        let mut list: Vec<_> = all.collect();
        list.sort_unstable_by_key(|(xid, _)| *xid);
        list
    }

    /// The routes that were learned, as XID and gateway, in order, with a line for each gateway; those in whose
    /// stead others are stated included.
    #[must_use]
    pub fn learned(&self) -> Vec<(Xid, Xid)> {
        each_gateway(self.learned.iter().map(|(xid, via)| (*xid, self.gateways.get(*via))))
    }

    /// The routes that were stated, as XID and gateway, in order, with a line for each gateway.
    #[must_use]
    pub fn routes(&self) -> Vec<(Xid, Xid)> {
        each_gateway(self.entries.iter().filter_map(|(xid, stored)| match stored {
            Stored::Local(_) => None,
            Stored::Via(number) => Some((*xid, self.gateways.get(*number))),
        }))
    }

    /// The XIDs that were stated to lead nowhere, in order.
    #[must_use]
    pub fn unreachable(&self) -> Vec<Xid> {
        let leads_nowhere = |stored: &Stored<L>| match stored {
            Stored::Local(_) => false,
            Stored::Via(number) => self.gateways.get(*number).is_empty(),
        };
        let all = self.entries.iter().filter(|(_, stored)| leads_nowhere(stored));
        let mut list: Vec<_> = all.map(|(xid, _)| *xid).collect();
        list.sort_unstable();
        list
    }

    /// Reads the part of a statement behind `route`, as [`RouteStatement`] says, and adds that route.
    ///
    /// # Errors
    /// Says which word is wrong.
    pub fn set_route(&mut self, reader: &mut WordReader) -> Result<(), WordError> {
        let route = RouteStatement::read(reader, self.kind, false)?;
        let done = match (route.destination, &route.way) {
            (Some(xid), Way::Via(via)) => self.add_route(xid, via),
            (Some(xid), Way::Unreachable | Way::Any) => self.add_unreachable(xid),
            (None, Way::Via(via)) => self.set_default(via),
            (None, Way::Unreachable | Way::Any) => Err(TableError::DefaultCount(0)),
        };
        done.map_err(|error| reader.error(error.to_string()))
    }

    /// Reads the part of a statement behind `route` and removes these gateways, or the whole route.
    ///
    /// # Errors
    /// Says which word is wrong, or that there is no such route.
    pub fn delete_route(&mut self, reader: &mut WordReader) -> Result<(), WordError> {
        let route = RouteStatement::read(reader, self.kind, true)?;
        let done = match (route.destination, &route.way) {
            (Some(xid), Way::Via(via)) => self.remove_route(&xid, via),
            (Some(xid), Way::Any) => self.remove_route(&xid, &[]),
            (Some(xid), Way::Unreachable) => match self.stated(&xid) {
                Some(Entry::Via([])) => self.remove_route(&xid, &[]),
                _ => Err(TableError::NoRoute(xid)),
            },
            (None, Way::Via(via)) => self.remove_default(via),
            (None, Way::Any) => self.remove_default(&[]),
            (None, Way::Unreachable) => Err(TableError::NoDefault),
        };
        done.map_err(|error| reader.error(error.to_string()).absent())
    }

    /// The routes that were stated as JSON, with a row for each gateway: [`show_routes`], the default as XID `default`
    /// before all others, those that lead nowhere behind.
    #[must_use]
    pub fn show_routes(&self) -> Value {
        let default = self.default.map_or(&[][..], |number| self.gateways.get(number));
        show_stated(default, self.routes(), self.unreachable())
    }
}

/// Stated routes as JSON; see [`XidTable::show_routes`].
#[must_use]
pub fn show_stated(
    default: &[Xid],
    routes: impl IntoIterator<Item = (Xid, Xid)>,
    unreachable: impl IntoIterator<Item = Xid>,
) -> Value {
    let default = default.iter().map(|via| json!({ "xid": DEFAULT, "via": via.to_string() }));
    let nowhere = |xid: Xid| json!({ "xid": xid.to_string(), "via": null });
    let rows = default.chain(routes.into_iter().map(row));
    rows.chain(unreachable.into_iter().map(nowhere)).collect()
}

/// Routes to these gateways, with a line for each, in order.
fn each_gateway<'a>(routes: impl Iterator<Item = (Xid, &'a [Xid])>) -> Vec<(Xid, Xid)> {
    let mut list: Vec<_> =
        routes.flat_map(|(xid, via)| via.iter().map(move |via| (xid, *via))).collect();
    list.sort_unstable();
    list
}

/// Routes as JSON: `[{"xid": …, "via": …}, …]`.
#[must_use]
pub fn show_routes(routes: impl IntoIterator<Item = (Xid, Xid)>) -> Value {
    routes.into_iter().map(row).collect()
}

fn row((xid, via): (Xid, Xid)) -> Value {
    json!({ "xid": xid.to_string(), "via": via.to_string() })
}

impl XidTable<()> {
    /// Carries out a statement: `local XID`, or a [route].
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

    /// Undoes what [`XidTable::set`] does with the same words; where a route leads may be left out, or name some of its
    /// gateways.
    ///
    /// # Errors
    /// Says which word is wrong, or that there is no such entry.
    pub fn delete(&mut self, words: &[&str]) -> Result<(), WordError> {
        let mut reader = WordReader::new(words);
        match reader.word("`local` or `route`")? {
            "local" => {
                let xid = reader.xid_of(self.kind)?;
                reader.clone().end()?;
                let removed = self.remove_local(&xid).map(drop);
                removed.map_err(|error| reader.error(error.to_string()).absent())
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
            "`{word}` is not a statement of {kind}; write `local {kind}-…`, `route {kind}-… via XID…`, \
             `route {kind}-… unreachable` or `route default via XID…`"
        ))
    }
}

#[cfg(test)]
mod tests;
