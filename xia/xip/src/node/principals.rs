//! How the node drives the principals' control parts, and how principals come and go.

use weft_base::{Instant, Token};
use weft_runtime::Action;

use super::{Node, Owner, report};
use crate::XidType;
use crate::principal::{Input, Output};
use crate::words::WordError;

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
        let principal = self.registry.make(name, &self.random)?;
        let kind = principal.kind();
        if let Some(present) = self.names.get(&kind) {
            return Err(format!("principal {present} is there already; remove it first"));
        }
        self.forwarder.add_principal(principal);
        self.names.insert(kind, name.to_owned());
        self.sockets.bind_again(kind, &mut self.forwarder);
        if self.started {
            self.bind_echo();
        }
        let up: Vec<_> =
            self.interfaces.iter().filter_map(|i| Some((i.name.clone(), i.up()?))).collect();
        for (name, (port, info)) in up {
            self.tell(now, kind, Input::InterfaceUp { name, port, info }, out);
        }
        Ok(kind)
    }

    /// Removes the principal called `name`; its XIDs are unknown from now on and its ports closed.
    ///
    /// # Errors
    /// The node has no such principal.
    pub fn remove_principal(&mut self, name: &str, out: &mut Vec<Action>) -> Result<(), String> {
        let kind = self.kind_of(name)?;
        self.names.remove(&kind);
        self.forwarder.remove_principal(kind);
        self.awaited.retain(|_, (owner, _)| *owner != kind);
        let ports: Vec<_> = self
            .owners
            .iter()
            .filter(|(_, owner)| **owner == Owner::Principal(kind))
            .map(|(port, _)| *port)
            .collect();
        for port in ports {
            self.owners.remove(&port);
            self.forwarder.remove_port(port);
            out.push(Action::ClosePort { port });
        }
        Ok(())
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
        let kind = self.kind_of(name).map_err(WordError::new)?;
        let Some(mut principal) = self.forwarder.principal_mut(kind) else { return Ok(()) };
        let mut outputs = Vec::new();
        let change = if delete {
            principal.delete(now, words, &mut outputs)
        } else {
            principal.set(now, words, &mut outputs)
        };
        drop(principal);
        self.carry_out(now, kind, outputs, out);
        change
    }

    fn kind_of(&self, name: &str) -> Result<XidType, String> {
        let found = self.names.iter().find(|(_, present)| *present == name).map(|(kind, _)| *kind);
        found.ok_or_else(|| {
            let present: Vec<_> = self.names.values().map(String::as_str).collect();
            let present = if present.is_empty() { "none".to_owned() } else { present.join(", ") };
            format!("the node has no principal `{name}`; it has: {present}")
        })
    }

    /// The types of the node's principals, copied so that they can be told something in turn.
    pub(super) fn kinds(&self) -> Vec<XidType> {
        self.forwarder.kinds().collect()
    }

    /// Gives `input` to a principal and carries out its outputs.
    pub(super) fn tell(
        &mut self,
        now: Instant,
        kind: XidType,
        input: Input,
        out: &mut Vec<Action>,
    ) {
        let Some(mut principal) = self.forwarder.principal_mut(kind) else { return };
        let mut outputs = Vec::new();
        principal.handle(now, input, &mut outputs);
        drop(principal);
        self.carry_out(now, kind, outputs, out);
    }

    /// Does what a principal asks for; keeps it for the start if the node does not run yet.
    pub(super) fn carry_out(
        &mut self,
        now: Instant,
        kind: XidType,
        outputs: Vec<Output>,
        out: &mut Vec<Action>,
    ) {
        if !self.started && !outputs.is_empty() {
            self.early.push((kind, outputs));
            return;
        }
        for output in outputs {
            match output {
                Output::OpenPort { token, spec } => {
                    let ours: Token = self.next_token();
                    self.awaited.insert(ours, (kind, token));
                    out.push(Action::OpenPort { token: ours, spec });
                }
                Output::ClosePort { port } => {
                    if self.owners.get(&port) == Some(&Owner::Principal(kind)) {
                        self.owners.remove(&port);
                        self.forwarder.remove_port(port);
                        out.push(Action::ClosePort { port });
                    }
                }
                Output::Transmit { port, packet } => out.push(Action::Transmit { port, packet }),
                Output::Route { packet } => self.route(now, packet, out),
                Output::Report { level, line } => report(out, level, line),
            }
        }
    }

    /// Ticks the principals whose deadline has come.
    pub(super) fn tick_principals(&mut self, now: Instant, out: &mut Vec<Action>) {
        for kind in self.kinds() {
            let due = self.forwarder.principal(kind).and_then(|p| p.deadline());
            if due.is_some_and(|due| due <= now) {
                self.tell(now, kind, Input::Tick, out);
            }
        }
    }

    pub(super) fn principals_deadline(&self) -> Option<Instant> {
        let kinds = self.forwarder.kinds();
        kinds.filter_map(|kind| self.forwarder.principal(kind)?.deadline()).min()
    }
}
