//! How the node drives principals' control parts and protocols, and how principals come and go.

use weft_base::{Instant, Token};
use weft_runtime::{Action, IpChange};

use super::{Node, Owner, Part, report};
use crate::prefixes::PrefixNews;
use crate::principal::{Input, Output};
use crate::words::WordError;
use crate::{Xid, XidType};

impl Node {
    /// Adds an instance of the principal called `name`; packets to its XIDs are routed from now on.
    ///
    /// # Errors
    /// There is no such principal, or the node has it already.
    pub fn add_principal(
        &mut self,
        now: Instant,
        name: &str,
        out: &mut Vec<Action>,
    ) -> Result<XidType, String> {
        let mut principal = self.registry.make(name, &self.random)?;
        let kind = principal.kind();
        if let Some(present) = self.names.get(&kind) {
            return Err(format!("principal {present} is there already; remove it first"));
        }
        if let Some(key) = &self.settings.key {
            principal.take_key(key);
        }
        self.forwarder.add_principal(principal);
        self.names.insert(kind, name.to_owned());
        self.instances.insert(kind, self.added);
        self.added += 1;
        self.sockets.bind_again(kind, &mut self.forwarder);
        if self.started {
            self.bind_echo();
        }
        let up: Vec<_> =
            self.interfaces.iter().filter_map(|i| Some((i.name.clone(), i.up()?))).collect();
        for (name, (port, info)) in up {
            self.tell(now, Part::Principal(kind), Input::InterfaceUp { name, port, info }, out);
        }
        self.redirect_again(kind);
        self.tell_adjacencies(now, kind, out);
        self.tell_locals(now, out);
        Ok(kind)
    }

    /// Removes the principal called `name`; its XIDs are unknown from now on and its ports closed.
    ///
    /// # Errors
    /// The node has no such principal.
    pub fn remove_principal(
        &mut self,
        now: Instant,
        name: &str,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let kind = self.kind_of(name)?;
        self.stop_principal(now, kind, out);
        self.names.remove(&kind);
        self.instances.remove(&kind);
        self.forwarder.remove_principal(kind);
        self.close_ports(Part::Principal(kind), out);
        self.tell_locals(now, out);
        Ok(())
    }

    /// Lets a principal take leave of its neighbours.
    fn stop_principal(&mut self, now: Instant, kind: XidType, out: &mut Vec<Action>) {
        let Some(mut principal) = self.forwarder.principal_mut(kind) else { return };
        let mut outputs = Vec::new();
        principal.stop(&mut outputs);
        drop(principal);
        self.carry_out(now, Part::Principal(kind), outputs, out);
    }

    /// Lets all principals take leave of their neighbours.
    pub(super) fn stop_principals(&mut self, now: Instant, out: &mut Vec<Action>) {
        let kinds: Vec<_> = self.forwarder.kinds().collect();
        kinds.into_iter().for_each(|kind| self.stop_principal(now, kind, out));
    }

    /// Closes the ports of a part that is gone, and forgets what it has asked for.
    pub(super) fn close_ports(&mut self, part: Part, out: &mut Vec<Action>) {
        self.ip_watchers.retain(|watcher| *watcher != part);
        self.awaited.retain(|_, (owner, _)| *owner != part);
        let owned = self.owners.iter().filter(|(_, owner)| **owner == Owner::Part(part));
        let ports: Vec<_> = owned.map(|(port, _)| *port).collect();
        for port in ports {
            self.owners.remove(&port);
            self.forwarder.remove_port(port);
            out.push(Action::ClosePort { port });
        }
    }

    /// Gives a statement to the principal called `name`: sets it, or deletes it if `delete`.
    ///
    /// # Errors
    /// Those of [`Principal::set`](crate::principal::Principal::set) and
    /// [`Principal::delete`](crate::principal::Principal::delete); the node has no such principal.
    pub fn change_principal(
        &mut self,
        now: Instant,
        name: &str,
        words: &[&str],
        delete: bool,
        out: &mut Vec<Action>,
    ) -> Result<(), WordError> {
        if self.protocols.has(name) {
            return self.change_protocol(now, name, words, delete, out);
        }
        let kind = self.kind_of(name).map_err(WordError::new)?;
        let Some(mut principal) = self.forwarder.principal_mut(kind) else { return Ok(()) };
        let mut outputs = Vec::new();
        let change = if delete {
            principal.delete(now, words, &mut outputs)
        } else {
            principal.set(now, words, &mut outputs)
        };
        drop(principal);
        self.carry_out(now, Part::Principal(kind), outputs, out);
        self.tell_locals(now, out);
        change
    }

    /// What tells the principal called `name` from one that was there before and was removed; none if it is not there.
    #[must_use]
    pub fn principal_instance(&self, name: &str) -> Option<u64> {
        let kind = self.kind_of(name).ok()?;
        self.instances.get(&kind).copied()
    }

    /// Tells the principal called `name` where prefixes of its XIDs lead, as somebody outside of the stack has found it.
    ///
    /// # Errors
    /// Those of [`Principal::learn_prefix`](crate::principal::Principal::learn_prefix), where what came before is taken;
    /// the node has no such principal.
    pub fn learn_prefixes<'a>(
        &mut self,
        name: &str,
        news: impl Iterator<Item = PrefixNews<'a>>,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let kind = self.kind_of(name)?;
        let Some(mut principal) = self.forwarder.principal_mut(kind) else { return Ok(()) };
        let mut news = news;
        let done = news.try_for_each(|news| principal.learn_prefix(news));
        drop(principal);
        self.tell_engine(out);
        done.map_err(|error| format!("{name}: {error}"))
    }

    fn kind_of(&self, name: &str) -> Result<XidType, String> {
        let found = self.names.iter().find(|(_, present)| *present == name).map(|(kind, _)| *kind);
        found.ok_or_else(|| {
            let present: Vec<_> = self.names.values().map(String::as_str).collect();
            let present = if present.is_empty() { "none".to_owned() } else { present.join(", ") };
            format!("the node has no principal `{name}`; it has: {present}")
        })
    }

    /// The principals and protocols, copied so that they can be told something in turn.
    pub(super) fn parts(&self) -> Vec<Part> {
        let principals = self.forwarder.kinds().map(Part::Principal);
        principals.chain(self.protocols.names().map(Part::Protocol)).collect()
    }

    /// Gives `input` to a part and carries out its outputs.
    pub(super) fn tell(&mut self, now: Instant, part: Part, input: Input, out: &mut Vec<Action>) {
        let mut outputs = Vec::new();
        match part {
            Part::Principal(kind) => {
                let Some(mut principal) = self.forwarder.principal_mut(kind) else { return };
                principal.handle(now, input, &mut outputs);
            }
            Part::Protocol(name) => {
                let Some(protocol) = self.protocols.get_mut(name) else { return };
                protocol.handle(now, input, &mut outputs);
            }
        }
        self.carry_out(now, part, outputs, out);
    }

    /// Does what a part asks for; keeps it for the start if the node does not run yet.
    pub(super) fn carry_out(
        &mut self,
        now: Instant,
        part: Part,
        outputs: Vec<Output>,
        out: &mut Vec<Action>,
    ) {
        if !self.started && !outputs.is_empty() {
            self.early.push((part, outputs));
            return;
        }
        for output in outputs {
            match output {
                Output::OpenPort { token, spec } => {
                    let ours: Token = self.next_token();
                    self.awaited.insert(ours, (part, token));
                    out.push(Action::OpenPort { token: ours, spec });
                }
                Output::ClosePort { port } => {
                    if self.owners.get(&port) == Some(&Owner::Part(part)) {
                        self.owners.remove(&port);
                        self.forwarder.remove_port(port);
                        out.push(Action::ClosePort { port });
                    }
                }
                Output::Transmit { port, packet } => out.push(Action::Transmit { port, packet }),
                Output::WatchIp => {
                    self.ip_watchers.push(part);
                    out.push(Action::WatchIp);
                }
                Output::FindNeighbour { interface, ip } => {
                    out.push(Action::FindNeighbour { interface, ip });
                }
                Output::Route { packet } => self.route(now, packet, out),
                Output::Redirect(found) => self.redirect(part, found),
                Output::Adjacency { own, neighbour, up } => {
                    self.adjacency(now, part, (own, neighbour), up, out);
                }
                Output::Report { level, line } => report(out, level, line),
            }
        }
    }

    /// Tells those who watch where IP leads now.
    pub(super) fn ip_changed(&mut self, now: Instant, changes: &[IpChange], out: &mut Vec<Action>) {
        let mut is_news = false;
        for part in self.ip_watchers.clone() {
            let before = self.locals_of(part);
            self.tell(now, part, Input::Ip { changes: changes.to_vec() }, out);
            is_news |= self.locals_of(part) != before;
        }
        // Others may have large tables in which to look for what is local, and IP changes often.
        if is_news {
            self.tell_locals(now, out);
        }
    }

    /// The XIDs of a part that are this node.
    fn locals_of(&self, part: Part) -> Vec<Xid> {
        match part {
            Part::Principal(kind) => {
                self.forwarder.principal(kind).map_or_else(Vec::new, |principal| principal.locals())
            }
            Part::Protocol(_) => Vec::new(),
        }
    }

    /// Ticks the parts whose deadline has come.
    pub(super) fn tick_parts(&mut self, now: Instant, out: &mut Vec<Action>) {
        for part in self.parts() {
            if self.deadline_of(part).is_some_and(|due| due <= now) {
                self.tell(now, part, Input::Tick, out);
            }
        }
    }

    pub(super) fn parts_deadline(&self) -> Option<Instant> {
        let principals = self.forwarder.kinds().map(Part::Principal);
        let parts = principals.chain(self.protocols.names().map(Part::Protocol));
        parts.filter_map(|part| self.deadline_of(part)).min()
    }

    fn deadline_of(&self, part: Part) -> Option<Instant> {
        match part {
            Part::Principal(kind) => self.forwarder.principal(kind)?.deadline(),
            Part::Protocol(name) => self.protocols.get(name)?.deadline(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use weft_base::PortId;
    use weft_runtime::{Component, Event};

    use super::*;
    use crate::node::Registry;
    use crate::node::testing::{self, NOW};
    use crate::principal::{Answer, Branch, Principal};
    use crate::protocol::Protocol;

    fn domain() -> Xid {
        Xid::new(XidType::AD, [7; 20])
    }

    /// A principal with one local XID while something is stated, until IP leads elsewhere or an interface goes.
    #[derive(Default)]
    struct Domain {
        is_local: bool,
    }

    impl Principal for Domain {
        fn kind(&self) -> XidType {
            XidType::AD
        }

        fn lookup(&self, _: &Xid, _: &mut Vec<Branch>) -> Answer {
            Answer::Unknown
        }

        fn handle(&mut self, _: Instant, input: Input, _: &mut Vec<Output>) {
            self.is_local &= !matches!(input, Input::Ip { .. } | Input::InterfaceDown { .. });
        }

        fn set(&mut self, _: Instant, _: &[&str], out: &mut Vec<Output>) -> Result<(), WordError> {
            self.is_local = true;
            out.push(Output::WatchIp);
            Ok(())
        }

        fn delete(&mut self, _: Instant, _: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
            Ok(())
        }

        fn show(&self) -> Value {
            Value::Null
        }

        fn locals(&self) -> Vec<Xid> {
            self.is_local.then(domain).into_iter().collect()
        }
    }

    /// A protocol that shows what it was told is this node.
    #[derive(Default)]
    struct Listener {
        told: Vec<Xid>,
    }

    impl Protocol for Listener {
        fn handle(&mut self, _: Instant, _: Input, _: &mut Vec<Output>) {}

        fn set_locals(&mut self, _: Instant, locals: &[Xid], _: &mut Vec<Output>) {
            self.told = locals.to_vec();
        }

        fn deadline(&self) -> Option<Instant> {
            None
        }

        fn set(&mut self, _: Instant, _: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
            Ok(())
        }

        fn delete(&mut self, _: Instant, _: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
            Ok(())
        }

        fn show(&self) -> Value {
            self.told.iter().map(ToString::to_string).collect()
        }
    }

    /// A node that runs, with a local domain of which its protocol knows.
    fn node() -> Node {
        let registry = Registry::new()
            .with("ad", |_| Box::new(Domain::default()))
            .with_protocol("listener", |_, _| Box::new(Listener::default()));
        let mut node = testing::node(registry);
        let mut out = Vec::new();
        node.add_principal(NOW, "ad", &mut out).unwrap();
        node.add_protocol(NOW, "listener", &mut out).unwrap();
        node.change_principal(NOW, "ad", &["local"], false, &mut out).unwrap();
        assert_eq!(told(&node), json!([domain().to_string()]));
        node
    }

    fn told(node: &Node) -> Value {
        node.protocols.get("listener").unwrap().show()
    }

    #[test]
    fn protocols_are_told_that_what_a_removed_principal_had_is_not_this_node() {
        let mut node = node();
        node.remove_principal(NOW, "ad", &mut Vec::new()).unwrap();
        assert_eq!(told(&node), json!([]));
    }

    #[test]
    fn protocols_are_told_of_what_is_this_node_no_longer_because_ip_has_changed() {
        let mut node = node();
        node.handle(NOW, Event::Ip { changes: vec![IpChange::Complete] }, &mut Vec::new());
        assert_eq!(told(&node), json!([]));
    }

    #[test]
    fn protocols_are_told_of_what_is_this_node_no_longer_because_an_interface_is_gone() {
        let mut node = node();
        node.interface_down(NOW, PortId(1), &mut Vec::new());
        assert_eq!(told(&node), json!([]));
    }
}
