//! The node's routing protocols: how they come and go, what they are told of, and what becomes of their
//! redirects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use weft_base::Instant;
use weft_runtime::Action;

use super::{Node, Part};
use crate::principal::Input;
use crate::protocol::Protocol;
use crate::words::WordError;
use crate::{Xid, XidType};

/// The protocols by name.
#[derive(Default)]
pub(super) struct Protocols {
    running: BTreeMap<&'static str, Running>,
    /// The XIDs that all protocols were told are this node.
    told: Vec<Xid>,
}

struct Running {
    protocol: Box<dyn Protocol>,
    /// What it has found: the gateways of each XID, of which there is at least one.
    redirects: BTreeMap<Xid, Vec<Xid>>,
    /// This node and its neighbours, in pairs.
    adjacencies: BTreeSet<(Xid, Xid)>,
}

impl Protocols {
    pub(super) fn has(&self, name: &str) -> bool {
        self.running.contains_key(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.running.keys().copied()
    }

    pub(super) fn get(&self, name: &str) -> Option<&dyn Protocol> {
        self.running.get(name).map(|running| running.protocol.as_ref())
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut (dyn Protocol + 'static)> {
        self.running.get_mut(name).map(|running| running.protocol.as_mut())
    }

    /// Where to look up `xid` instead: what the first protocol says that says anything.
    fn redirect_of(&self, xid: &Xid) -> &[Xid] {
        let found = self.running.values().find_map(|running| running.redirects.get(xid));
        found.map_or(&[], Vec::as_slice)
    }
}

impl Node {
    /// Adds the routing protocol called `name`.
    ///
    /// # Errors
    /// There is no such protocol, or it runs already.
    pub fn add_protocol(
        &mut self,
        now: Instant,
        name: &str,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let key = self.settings.key.as_ref();
        let (name, mut protocol) = self.registry.make_protocol(name, key, &self.random)?;
        if self.protocols.has(name) {
            return Err(format!("protocol {name} is there already; remove it first"));
        }
        let (locals, mut outputs) = (self.locals(), Vec::new());
        protocol.set_locals(now, &locals, &mut outputs);
        self.protocols.told = locals;
        self.protocols.running.insert(
            name,
            Running { protocol, redirects: BTreeMap::new(), adjacencies: BTreeSet::new() },
        );
        let part = Part::Protocol(name);
        self.carry_out(now, part, outputs, out);
        let up: Vec<_> =
            self.interfaces.iter().filter_map(|i| Some((i.name.clone(), i.up()?))).collect();
        for (name, (port, info)) in up {
            self.tell(now, part, Input::InterfaceUp { name, port, info }, out);
        }
        Ok(())
    }

    /// Removes the routing protocol called `name`; its redirects are taken back, its ports closed.
    ///
    /// # Errors
    /// The node does not run it.
    pub fn remove_protocol(
        &mut self,
        now: Instant,
        name: &str,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        self.stop_protocol(now, name, out);
        let found = self.protocols.running.remove_entry(name);
        let (name, gone) =
            found.ok_or_else(|| format!("the node does not run the protocol `{name}`"))?;
        self.pass_on(gone.redirects.keys().copied().collect());
        for pair in gone.adjacencies {
            self.tell_adjacency(now, pair, false, out);
        }
        self.close_ports(Part::Protocol(name), out);
        Ok(())
    }

    /// Lets a protocol take leave of its neighbours.
    fn stop_protocol(&mut self, now: Instant, name: &str, out: &mut Vec<Action>) {
        let found = self.protocols.running.get_key_value(name).map(|(name, _)| *name);
        let Some((name, protocol)) = found.zip(self.protocols.get_mut(name)) else { return };
        let mut outputs = Vec::new();
        protocol.stop(now, &mut outputs);
        self.carry_out(now, Part::Protocol(name), outputs, out);
    }

    /// Lets all protocols take leave of their neighbours.
    pub(super) fn stop_protocols(&mut self, now: Instant, out: &mut Vec<Action>) {
        let names: Vec<_> = self.protocols.names().collect();
        names.iter().for_each(|name| self.stop_protocol(now, name, out));
    }

    /// Gives a statement to a protocol that runs.
    pub(super) fn change_protocol(
        &mut self,
        now: Instant,
        name: &str,
        words: &[&str],
        delete: bool,
        out: &mut Vec<Action>,
    ) -> Result<(), WordError> {
        let found = self.protocols.running.get_key_value(name).map(|(name, _)| *name);
        let Some((name, protocol)) = found.zip(self.protocols.get_mut(name)) else { return Ok(()) };
        let mut outputs = Vec::new();
        let change = if delete {
            protocol.delete(now, words, &mut outputs)
        } else {
            protocol.set(now, words, &mut outputs)
        };
        self.carry_out(now, Part::Protocol(name), outputs, out);
        change
    }

    /// Tells the protocols which XIDs are this node, if that has changed.
    pub(super) fn tell_locals(&mut self, now: Instant, out: &mut Vec<Action>) {
        if self.protocols.running.is_empty() {
            return;
        }
        let locals = self.locals();
        if locals == self.protocols.told {
            return;
        }
        let names: Vec<_> = self.protocols.names().collect();
        for name in names {
            let mut outputs = Vec::new();
            if let Some(protocol) = self.protocols.get_mut(name) {
                protocol.set_locals(now, &locals, &mut outputs);
            }
            self.carry_out(now, Part::Protocol(name), outputs, out);
        }
        self.protocols.told = locals;
    }

    /// A part has found ways to these XIDs, or lost them.
    pub(super) fn redirect(&mut self, part: Part, found: Vec<(Xid, Vec<Xid>)>) {
        // Only a protocol can: it is removed as a whole, and what it has found with it.
        let Part::Protocol(name) = part else { return };
        let Some(running) = self.protocols.running.get_mut(name) else { return };
        let xids = found.iter().map(|(xid, _)| *xid).collect();
        for (xid, via) in found {
            match via.is_empty() {
                false => running.redirects.insert(xid, via),
                true => running.redirects.remove(&xid),
            };
        }
        self.pass_on(xids);
    }

    /// Tells the principals of these XIDs where to look them up instead, each of all of its own at once.
    fn pass_on(&mut self, mut xids: Vec<Xid>) {
        xids.sort_unstable();
        xids.dedup();
        for same in xids.chunk_by(|one, other| one.kind == other.kind) {
            let Some(mut principal) = self.forwarder.principal_mut(same[0].kind) else { continue };
            let found: Vec<_> =
                same.iter().map(|xid| (*xid, self.protocols.redirect_of(xid))).collect();
            principal.learn_all(&found);
        }
    }

    /// Tells a principal that was just added all that protocols have found for it.
    pub(super) fn redirect_again(&mut self, kind: XidType) {
        let all = self.protocols.running.values().flat_map(|running| running.redirects.keys());
        self.pass_on(all.filter(|xid| xid.kind == kind).copied().collect());
    }

    /// A protocol has found a neighbour, or lost one.
    pub(super) fn adjacency(
        &mut self,
        now: Instant,
        part: Part,
        pair: (Xid, Xid),
        up: bool,
        out: &mut Vec<Action>,
    ) {
        let Part::Protocol(name) = part else { return };
        let Some(running) = self.protocols.running.get_mut(name) else { return };
        let is_news = match up {
            true => running.adjacencies.insert(pair),
            false => running.adjacencies.remove(&pair),
        };
        if is_news {
            self.tell_adjacency(now, pair, up, out);
        }
    }

    /// Tells all principals of a neighbour, unless another protocol has it, too.
    fn tell_adjacency(&mut self, now: Instant, pair: (Xid, Xid), up: bool, out: &mut Vec<Action>) {
        let has_it = |running: &&Running| running.adjacencies.contains(&pair);
        if self.protocols.running.values().filter(has_it).count() != usize::from(up) {
            return;
        }
        let kinds: Vec<_> = self.forwarder.kinds().collect();
        for kind in kinds {
            let (own, neighbour) = pair;
            let input = Input::Adjacency { own, neighbour, up };
            self.tell(now, Part::Principal(kind), input, out);
        }
    }

    /// Tells a principal that was just added of all neighbours.
    pub(super) fn tell_adjacencies(&mut self, now: Instant, kind: XidType, out: &mut Vec<Action>) {
        let all = self.protocols.running.values().flat_map(|running| &running.adjacencies);
        let all: BTreeSet<_> = all.copied().collect();
        for (own, neighbour) in all {
            let input = Input::Adjacency { own, neighbour, up: true };
            self.tell(now, Part::Principal(kind), input, out);
        }
    }

    /// The XID that leads a packet to all of these hosts, over a tree of shortest paths.
    pub(super) fn show_tree(&self, hosts: &[&str]) -> Result<Value, String> {
        let host = |word: &&str| {
            let xid: Xid = word.parse().map_err(|error| format!("`{word}`: {error}"))?;
            match xid.kind {
                // Topology and links know hosts by what both versions have in common.
                XidType::HID | XidType::HID2 => Ok(Xid::new(XidType::HID, xid.id)),
                _ => Err(format!("{xid} is no host; name hosts by their HIDs")),
            }
        };
        let mut ends: Vec<Xid> = hosts.iter().map(host).collect::<Result<_, String>>()?;
        ends.sort_unstable();
        ends.dedup();
        if ends.is_empty() {
            return Err("name the hosts that the tree is to reach".to_owned());
        }
        let Some((name, running)) = self.protocols.running.first_key_value() else {
            return Err("the node runs no routing protocol; add `link-state {}` to the block xia \
                        of all nodes"
                .to_owned());
        };
        let links = running.protocol.tree(&ends).map_err(|error| format!("{name}: {error}"))?;
        let principals = self.forwarder.kinds().filter_map(|kind| self.forwarder.principal(kind));
        let mut trees = principals.filter_map(|principal| principal.tree(&links, &ends));
        let mut tree = trees.next().unwrap_or_else(|| {
            Err("no principal of this node makes XIDs of trees; add `principal zf`".to_owned())
        })?;
        let text = |xid: &Xid| Value::from(xid.to_string());
        tree["hosts"] = ends.iter().map(text).collect();
        tree["links"] = links
            .iter()
            .map(|(from, to)| json!({ "from": from.to_string(), "to": to.to_string() }))
            .collect();
        Ok(tree)
    }
}
