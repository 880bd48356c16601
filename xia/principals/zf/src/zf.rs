//! The principal itself.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use weft_base::Instant;
use weft_xip::changes::{Change, ChangeLog};
use weft_xip::forward::DropReason;
use weft_xip::principal::{Answer, Branch, Input, Output, Principal};
use weft_xip::words::WordError;
use weft_xip::{Xid, XidType};

use crate::adjacencies::{Adjacencies, Adjacent, tree};
use crate::filter::{Bits, DEFAULT_LINK_BITS, FILTER_BITS};
use crate::index::Index;
use crate::links::{Links, Target};
use crate::list::MatchList;
use crate::statement::{Link, Naming, Statement};

/// Most one bits of a filter that is followed, unless configured: half of all.
pub const DEFAULT_FILL_LIMIT: u32 = FILTER_BITS / 2;

const DEFAULT_NAMING: Naming = Naming { bits: DEFAULT_LINK_BITS, tags: 1 };

/// The principal zFilter; see the crate's text.
#[derive(Debug)]
pub struct ZFilter {
    links: Links,
    adjacencies: Adjacencies,
    /// The same links with their identifiers, for look-ups.
    list: MatchList,
    naming: Naming,
    fill_limit: u32,
    changes: ChangeLog,
}

impl ZFilter {
    /// A node without links: every filter is unknown to it.
    #[must_use]
    pub fn new() -> Self {
        Self {
            links: Links::default(),
            adjacencies: Adjacencies::default(),
            list: MatchList::new(Index::new()),
            naming: DEFAULT_NAMING,
            fill_limit: DEFAULT_FILL_LIMIT,
            changes: ChangeLog::default(),
        }
    }

    fn set_statement(&mut self, statement: Statement) {
        // A link is found by every filter that holds it.
        self.changes.note(Change::All);
        match statement {
            Statement::Local(link) => self.insert(link, None),
            Statement::Route(link, gateway) => self.insert(link, Some(gateway)),
            // Only read in order to be deleted.
            Statement::AllRoutes(_) => {}
            Statement::Bits(bits) => self.rename(Naming { bits, ..self.naming }),
            Statement::Tags(tags) => self.rename(Naming { tags, ..self.naming }),
            Statement::FillLimit(limit) => self.fill_limit = limit,
            Statement::Adjacencies => {
                let changes = self.adjacencies.turn(true);
                self.adjacent(changes);
            }
        }
    }

    /// False if there is nothing of the kind.
    fn delete_statement(&mut self, statement: Statement) -> bool {
        self.changes.note(Change::All);
        match statement {
            Statement::Local(link) => self.remove(&link, None),
            Statement::Route(link, gateway) => self.remove(&link, Some(gateway)),
            Statement::AllRoutes(link) => {
                let gateways = self.links.gateways(&link);
                for via in &gateways {
                    self.remove(&link, Some(*via));
                }
                !gateways.is_empty()
            }
            Statement::Bits(bits) => {
                let found = self.naming.bits == bits;
                if found {
                    self.rename(Naming { bits: DEFAULT_NAMING.bits, ..self.naming });
                }
                found
            }
            Statement::Tags(tags) => {
                let found = self.naming.tags == tags;
                if found {
                    self.rename(Naming { tags: DEFAULT_NAMING.tags, ..self.naming });
                }
                found
            }
            Statement::FillLimit(limit) => {
                let found = self.fill_limit == limit;
                if found {
                    self.fill_limit = DEFAULT_FILL_LIMIT;
                }
                found
            }
            Statement::Adjacencies => {
                let found = self.adjacencies.are_on();
                let changes = self.adjacencies.turn(false);
                self.adjacent(changes);
                found
            }
        }
    }

    fn insert(&mut self, link: Link, target: Target) {
        if !self.links.has(&link, target) {
            link.identifiers(self.naming).for_each(|xid| self.list.insert(xid, target));
            self.links.insert(link, target);
        }
    }

    fn remove(&mut self, link: &Link, target: Target) -> bool {
        let found = self.links.remove(link, target);
        if found {
            link.identifiers(self.naming).for_each(|xid| self.list.remove(xid, target));
        }
        found
    }

    /// Adds and removes links of neighbours.
    fn adjacent(&mut self, changes: Vec<Adjacent>) {
        for Adjacent { link, target, up } in changes {
            self.changes.note(Change::All);
            for xid in link.identifiers(self.naming) {
                match up {
                    true => self.list.insert(xid, target),
                    false => self.list.remove(xid, target),
                }
            }
        }
    }

    /// Works out all identifiers again, if there are others now.
    fn rename(&mut self, naming: Naming) {
        if naming == self.naming {
            return;
        }
        self.naming = naming;
        self.list.clear();
        let adjacent = self.adjacencies.links();
        let stated = self.links.iter().map(|(link, target)| (link.clone(), target));
        for (link, target) in stated.chain(adjacent) {
            link.identifiers(naming).for_each(|xid| self.list.insert(xid, target));
        }
    }
}

impl Default for ZFilter {
    fn default() -> Self {
        Self::new()
    }
}

impl Principal for ZFilter {
    fn kind(&self) -> XidType {
        XidType::ZF
    }

    fn lookup(&self, xid: &Xid, branches: &mut Vec<Branch>) -> Answer {
        let filter = Bits::of(xid);
        if filter.count() > self.fill_limit {
            return Answer::Refuse(DropReason::FilterTooFull);
        }
        self.list.branches(filter, branches);
        if branches.is_empty() { Answer::Unknown } else { Answer::Branches }
    }

    fn drain_changes(&mut self, out: &mut Vec<Change>) {
        self.changes.drain(out);
    }

    fn handle(&mut self, _: Instant, input: Input, _: &mut Vec<Output>) {
        if let Input::Adjacency { own, neighbour, up } = input {
            let changes = self.adjacencies.tell(own, neighbour, up);
            self.adjacent(changes);
        }
    }

    fn tree(&self, links: &[(Xid, Xid)], ends: &[Xid]) -> Option<Result<Value, String>> {
        if !self.adjacencies.are_on() {
            let advice = "zf knows no links of neighbours; add the statement `adjacencies` to it on all nodes";
            return Some(Err(advice.to_owned()));
        }
        Some(tree(self.naming, self.fill_limit, links, ends))
    }

    fn set(&mut self, _: Instant, words: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        let statement = Statement::read(words, false)?;
        self.set_statement(statement);
        Ok(())
    }

    fn delete(&mut self, _: Instant, words: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        let statement = Statement::read(words, true)?;
        if self.delete_statement(statement) {
            Ok(())
        } else {
            Err(WordError::new("there is no such statement to delete").absent())
        }
    }

    fn show(&self) -> Value {
        let locals: Value = self.locals().iter().map(ToString::to_string).collect();
        let mut routes: Vec<_> =
            self.list.iter().filter_map(|(link, target)| Some((link, target?))).collect();
        routes.sort_unstable();
        let learned: BTreeSet<_> = self
            .adjacencies
            .links()
            .flat_map(|(link, via)| {
                let identifiers: Vec<_> = link.identifiers(self.naming).collect();
                identifiers.into_iter().filter_map(move |xid| Some((xid, via?)))
            })
            .collect();
        routes.retain(|route| !learned.contains(route));
        let route =
            |(xid, via): (Xid, Xid)| json!({ "xid": xid.to_string(), "via": via.to_string() });
        let identifiers = |link: &Link| -> Value {
            let mut all = link.identifiers(self.naming).map(|xid| xid.to_string());
            if self.naming.tags > 1 { all.collect() } else { all.next().into() }
        };
        let names: serde_json::Map<_, _> =
            self.links.named().map(|(name, link)| (name.to_owned(), identifiers(link))).collect();
        json!({
            "locals": locals,
            "routes": routes.into_iter().map(route).collect::<Value>(),
            "learned": learned.into_iter().map(route).collect::<Value>(),
            "links": names,
            "bits": self.naming.bits,
            "tags": self.naming.tags,
            "fill-limit": self.fill_limit,
            "adjacencies": self.adjacencies.show(),
        })
    }

    fn locals(&self) -> Vec<Xid> {
        self.list.iter().filter(|(_, target)| target.is_none()).map(|(link, _)| link).collect()
    }
}
