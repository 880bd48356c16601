//! A router that forwards XIP: the forwarder, the routes that change, and the kernel's engine, if that carries out what
//! the forwarder decides.

use std::time::Duration;

use weft_base::{Instant, Packet};
use weft_runtime::Action;
use weft_wire::ETHERNET_HEADER_LEN;
use weft_xip::forward::{DropReason, Forwarder, Verdict, Verdicts};
use weft_xip::header::MAX_HEADER_LEN;
use weft_xip::offload::{Edges, Offload, Offloaded};
use weft_xip::{Address, Xid, XidType, XipRepr};

use super::super::xip_engine::world::{IN, Names};
use super::changes::Changes;
use super::engine::{Attached, Engine};
use super::frames::{Form, address, nobody, unknown};
use super::network::Network;

/// Between two packets that routers learn from: longer than between two decisions that any limit allows.
const STEP: Duration = Duration::from_millis(1);
/// Decisions that the kernel's engine is told at once, as a node does it.
const AT_ONCE: usize = 4096;

/// See the module's text.
pub(in crate::bench) struct Router {
    forwarder: Forwarder,
    domains: Vec<Xid>,
    neighbours: Vec<Xid>,
    changes: Changes,
    engine: Option<Engine>,
    /// Kept for its memory.
    offloads: Vec<Offload>,
}

impl Router {
    /// A router that knows these names. It has all decisions for packets of these forms to every domain, and so has
    /// the engine, if there is one.
    pub(in crate::bench) fn new(
        forwarder: Forwarder,
        names: &Names,
        forms: &[Form],
        engine: Option<Engine>,
    ) -> Result<Self, String> {
        let mut router = Self {
            forwarder,
            domains: names.domains.clone(),
            neighbours: names.neighbours.clone(),
            changes: Changes::new(names.ports(), names.neighbours.len()),
            engine,
            offloads: Vec::new(),
        };
        if let Some(engine) = &router.engine {
            let room = engine.room();
            // One more leads nowhere, and three more are of no use in `of_each_edge`.
            let needed = names.domains.len() + 4;
            if forms.iter().any(|form| room.decisions[form.edges() - 1] < needed) {
                return Err(
                    "there are more destinations than the kernel engine's tables hold".to_owned()
                );
            }
            router.forwarder.set_offloading(Some(room));
        }
        router.learn(names, forms)?;
        router.follow(usize::MAX)?;
        Ok(router)
    }

    /// A router whose engine, which has one look-up for each edge, has decisions for each edge alone, for the domains
    /// that nobody knows in all forms, too.
    pub(super) fn of_each_edge(
        forwarder: Forwarder,
        names: &Names,
        engine: Engine,
    ) -> Result<Self, String> {
        let mut router = Self::new(forwarder, names, &[Form::Fallback(0)], Some(engine))?;
        let nowhere = (1..=3).map(|index| {
            let edges: Edges = [unknown(index)].into_iter().collect();
            let decision = Offloaded::Drop(DropReason::Unreachable);
            Offload::Set { edges, edge: 0, decision }
        });
        router.offloads.extend(nowhere);
        router.tell_engine()?;
        Ok(router)
    }

    /// What decides.
    pub(super) fn forwarder(&self) -> &Forwarder {
        &self.forwarder
    }

    /// Lets the kernel forward, if the router has an engine there.
    pub(in crate::bench) fn attach(&self, network: &Network) -> Result<Option<Attached>, String> {
        self.engine.as_ref().map(|engine| engine.attach(network)).transpose()
    }

    /// Makes so many changes of routes.
    pub(super) fn change(&mut self, count: u64) -> Result<(), String> {
        if let Some(mut ad) = self.forwarder.principal_mut(XidType::AD) {
            let changes = (0..count).map(|_| self.changes.next());
            let found: Vec<_> = changes
                .map(|(domain, neighbour)| {
                    (self.domains[domain], std::slice::from_ref(&self.neighbours[neighbour]))
                })
                .collect();
            ad.learn_all(&found);
        }
        self.follow(usize::MAX)
    }

    /// Forwards frames, as the stack of a node does it.
    pub(super) fn forward(
        &mut self,
        now: Instant,
        mut frames: Vec<Packet>,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        frames.retain_mut(|frame| frame.pull_front(ETHERNET_HEADER_LEN));
        let mut verdicts = Verdicts::new();
        self.forwarder.route_batch(now, &mut frames, &mut verdicts);
        out.extend(verdicts.drain().filter_map(|verdict| match verdict {
            Verdict::Transmit { port, packet } => Some(Action::Transmit { port, packet }),
            Verdict::Deliver { .. } => None,
        }));
        self.follow(AT_ONCE)
    }

    /// Lets the engine know what has changed, and `most` of the decisions that it shall have besides.
    fn follow(&mut self, most: usize) -> Result<(), String> {
        if self.engine.is_some() {
            self.forwarder.drain_offloads(most, &mut self.offloads);
        }
        self.tell_engine()
    }

    fn tell_engine(&mut self) -> Result<(), String> {
        let told = match &mut self.engine {
            Some(engine) if !self.offloads.is_empty() => engine.write(&self.offloads),
            _ => Ok(()),
        };
        self.offloads.clear();
        told
    }

    /// Decides about packets of these forms to every destination, slowly enough for any limit.
    fn learn(&mut self, names: &Names, forms: &[Form]) -> Result<(), String> {
        let mut now = Instant::ZERO;
        let mut route = |forwarder: &mut Forwarder, address: &Address| {
            now += STEP;
            route(forwarder, now, address)
        };
        for form in forms {
            for domain in &names.domains {
                // What is used again is told to another engine.
                for _ in 0..2 {
                    let address = address(*form, names.local_domain, *domain);
                    route(&mut self.forwarder, &address)?;
                }
            }
            let nowhere = address(*form, names.local_domain, nobody());
            for _ in 0..2 {
                if route(&mut self.forwarder, &nowhere).is_ok() {
                    return Err(format!("the router should have no way to {nowhere}"));
                }
            }
        }
        Ok(())
    }
}

/// Routes a packet to an address as one that came in on a port.
fn route(router: &mut Forwarder, now: Instant, address: &Address) -> Result<(), String> {
    let header = XipRepr::new(*address, None, 0);
    let mut bytes = [0; MAX_HEADER_LEN];
    header.emit(&mut bytes).map_err(|error| error.to_string())?;
    let mut packet = Packet::from_slice(&bytes[..header.buffer_len()]);
    packet.meta.port = IN;
    let mut verdicts = Verdicts::new();
    router.route(now, packet, &mut verdicts);
    match verdicts.drain().collect::<Vec<_>>()[..] {
        [Verdict::Transmit { .. }] => Ok(()),
        _ => Err(format!("the router has no way to {address}")),
    }
}
