//! The same flood in a network: packets that come in and leave by ports, through the kernel's engine and the portable
//! one that decides for it, or through the portable one alone.
//!
//! The network is that of `xip-forward`: a router with four ports and one processor, a source and sinks on another.
//! The router is as a node is unless it is told otherwise: 64 MiB of cache, tables of the kernel of the same size. As
//! many packets come as it forwards at most without a flood. Every other one is of the flood, so that the flood has half
//! of the router's peak, as the legitimate packets have. Those that arrive each second count; and how many of the
//! decisions for them were displaced, which are gone when the flood is over, here or from the kernel; and memory over
//! the limit.
//!
//! The source chooses no addresses that collide: it would need to draw them beforehand, and under another key they are
//! what any others are.

use std::collections::HashSet;
use std::time::Duration;

use weft_base::Random;
use weft_xip::Xid;
use weft_xip::forward::{Forwarder, Limits};

use super::super::measure::{Experiment, Figure};
use super::super::report::{Goal, Row};
use super::super::xip_engine::world::{self, Names};
use super::super::xip_engine::zipf::Zipf;
use super::super::xip_forward::cases::{FRAME_LEN, Place};
use super::super::xip_forward::engine::Engine;
use super::super::xip_forward::frames::{Form, Template};
use super::super::xip_forward::network::{self, Network};
use super::super::xip_forward::portable::{Portable, Sockets};
use super::super::xip_forward::prefixes::{self, Prefix};
use super::super::xip_forward::router::Router;
use super::super::xip_forward::threads::Processors;
use super::super::xip_forward::traffic::{Flood, Rate, Sending, Traffic};
use super::flood::Kind;
use super::{
    CACHE, DISPLACED, DISPLACED_PANEL, EXPONENT, GENEROUS, LEGITIMATE, MEMORY, MEMORY_PANEL, USUAL,
    limit, memory_over_limit,
};

const PLACE: Place = Place { ports: 4, changes: false };
const PANEL: &str = "Legitimate packets that arrive during a flood";
/// Legitimate destinations: what the kernel's table for four edges has room for, which a router has unless it is told
/// otherwise.
const DOMAINS: usize = 50_000;

/// What one experiment is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Case {
    /// The kernel's engine is before the portable one.
    kernel: bool,
    kind: Kind,
    budget: Option<u32>,
}

pub(super) fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for kernel in [true, false] {
        for kind in [Kind::Undeliverable, Kind::Deliverable, Kind::Long] {
            for budget in [Some(USUAL), Some(GENEROUS), None] {
                let is_quick = kernel && kind != Kind::Long && budget == Some(USUAL);
                // Four edges are more of the same; what they are about is the goal.
                let is_told = kind != Kind::Long || budget == Some(USUAL);
                let is_in = if quick { is_quick } else { is_told };
                if is_in {
                    cases.push(Case { kernel, kind, budget });
                }
            }
        }
    }
    cases
}

impl Case {
    fn name(&self, figure: &str) -> String {
        let (kind, engine) = (self.kind.name(), if self.kernel { "kernel" } else { "portable" });
        let budget =
            self.budget.map_or("no budget".to_owned(), |most| format!("{most} decisions/s"));
        format!("in a network, {kind}, {engine}, {budget}: {figure}")
    }

    /// That of the packets, legitimate ones and those of the flood.
    fn form(&self) -> Form {
        let (unknown, is_known) = self.kind.edges();
        Form::Fallback(if is_known { unknown } else { 0 })
    }

    pub(super) fn experiment(&self) -> Experiment {
        let figure = |name, unit, panel| Figure { case: self.name(name), unit, panel };
        Experiment {
            peer_name: "the same flood on one cached address".to_owned(),
            figures: vec![
                figure(LEGITIMATE, "packets/s", PANEL),
                figure(DISPLACED, "%", DISPLACED_PANEL),
                figure(MEMORY, "%", MEMORY_PANEL),
            ],
            most_runs: None,
        }
    }

    /// What is hoped for with a defence.
    pub(super) fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        if self.budget != Some(USUAL) {
            return Vec::new();
        }
        super::goals(rows, |figure| self.name(figure)).into()
    }
}

/// The edges of decisions that were used again, and how many decisions the kernel has.
fn decisions(router: &Forwarder) -> (HashSet<Vec<Xid>>, usize) {
    let used = router.cached().filter(|entry| entry.hits > 0).map(|entry| entry.edges);
    (used.collect(), router.cache_size().offloaded)
}

/// The network, its routers, and what each of them forwards at most without a flood.
pub(super) struct Flooded {
    prefixes: Vec<Prefix>,
    names: Names,
    routers: Vec<(Case, Portable)>,
    /// By whether the kernel's engine is there, and the form.
    peaks: Vec<((bool, Form), f64)>,
    time: Duration,
    processors: Processors,
    traffic: Traffic,
    // Last: what hangs in it goes first.
    network: Network,
}

impl Flooded {
    pub(super) fn new(quick: bool) -> Result<Self, String> {
        network::enter_namespace()?;
        let prefixes = prefixes::prefixes(DOMAINS, &mut Random::from_seed(1));
        let (network, processors) = (Network::new(PLACE)?, Processors::new()?);
        Ok(Self {
            names: prefixes::names(&prefixes, PLACE.ports),
            prefixes,
            routers: Vec::new(),
            peaks: Vec::new(),
            time: Duration::from_millis(if quick { 400 } else { 1000 }),
            processors,
            traffic: Traffic::new(&network, processors)?,
            network,
        })
    }

    /// Legitimate packets that arrive each second beside a flood; decisions for them that were displaced, and memory
    /// over the limit, in hundredths.
    pub(super) fn measure(
        &mut self,
        case: Case,
        flood: Flood,
        run: usize,
    ) -> Result<Vec<f64>, String> {
        let zipf = Zipf::new(self.prefixes.len(), EXPONENT);
        let mut random = Random::from_seed(run as u64);
        let prefixes = &self.prefixes;
        self.traffic.set_samples(|| prefixes[zipf.draw(&mut random)].destination().octets());
        let pace = Some(self.peak(case)?);
        let (before, offloaded) = self.router_of(case)?.look(decisions);
        let arriving = self.forwarded(case, Sending { pace, flood: Some(flood) })?.arriving;
        let router = self.router_of(case)?;
        let (after, still_offloaded) = router.look(decisions);
        let gone = before.iter().filter(|edges| !after.contains(*edges)).count();
        let displaced = gone.max(offloaded.saturating_sub(still_offloaded));
        Ok(vec![
            arriving,
            100.0 * displaced as f64 / before.len().max(1) as f64,
            router.look(memory_over_limit),
        ])
    }

    fn peak(&mut self, case: Case) -> Result<f64, String> {
        let key = (case.kernel, case.form());
        if let Some((_, peak)) = self.peaks.iter().find(|(of, _)| *of == key) {
            return Ok(*peak);
        }
        let rate = self.forwarded(case, Sending::default())?;
        self.peaks.push((key, rate.arriving));
        Ok(rate.arriving)
    }

    fn router_of(&mut self, case: Case) -> Result<&Portable, String> {
        let at = self.number_of(case)?;
        Ok(&self.routers[at].1)
    }

    /// The number of a case's router, which is made if there is none.
    fn number_of(&mut self, case: Case) -> Result<usize, String> {
        if let Some(at) = self.routers.iter().position(|(of, _)| *of == case) {
            return Ok(at);
        }
        self.routers.push((case, self.router(case)?));
        Ok(self.routers.len() - 1)
    }

    fn forwarded(&mut self, case: Case, sending: Sending) -> Result<Rate, String> {
        let at = self.number_of(case)?;
        let Self { network, processors, traffic, names, routers, time, .. } = self;
        let router = &routers[at].1;
        let attached = router.attach(network)?;
        let running = router.run(network, *processors, Sockets::Xdp, attached.as_ref(), 0)?;
        let threads = processors.place_receivers(network)?.and(running.id);
        let template = Template::new(case.form(), names.local_domain, FRAME_LEN);
        let rate = traffic.measure(network, &threads, &template, sending, *time)?;
        running.end()?;
        Ok(rate)
    }

    /// A router that knows all legitimate destinations.
    fn router(&self, case: Case) -> Result<Portable, String> {
        let limits =
            Limits { cache: CACHE, slow_path: case.budget.map(limit), ..Limits::default() };
        let forwarder = world::router_with(&self.names, limits);
        let forwarder = forwarder.map_err(|error| error.to_string())?;
        let engine = if case.kernel { Some(Engine::new(CACHE)?) } else { None };
        let router = Router::new(forwarder, &self.names, &[case.form()], engine)?;
        Ok(Portable::new(router))
    }
}
