//! The router's kernel engine: decisions that the portable engine takes, carried out by the kernel.

use std::num::NonZeroU16;

use weft_base::{Instant, Packet};
use weft_ebpf::{ProgramError, XdpLink, XdpMode, embedded};
use weft_xia_kernel::{Decision, HopId, Mirror, Neighbour, PortProgram, Slot, TableSizes, Tables};
use weft_xip::forward::{Decision as Cached, Forwarder, Verdict};
use weft_xip::header::MAX_HEADER_LEN;
use weft_xip::numbers::MAX_FAN_OUT;
use weft_xip::{Address, Xid, XipRepr};

use super::super::xip_engine::world::{IN, Names};
use super::frames::{Form, address, unknown};
use super::network::{Network, PORTS, Side};

/// The longest XIP packet that the cables take.
const MTU: u32 = 1500;
/// Bytes for the portable engine's cache: more than all destinations need.
const CACHE: usize = 1 << 30;
/// Decisions that are written at once.
const BATCH: usize = 4096;

/// The kernel engine of a router.
pub(super) struct Kernel {
    mirror: Mirror,
    programs: Vec<PortProgram>,
}

/// While there is one, the kernel forwards XIP.
pub(super) struct Attached {
    _links: Vec<XdpLink>,
}

impl Kernel {
    /// An engine with room for this many destinations, in which nothing is decided yet.
    pub(super) fn new(domains: usize) -> Result<Self, String> {
        Self::with(domains, PortProgram::load)
    }

    /// The same with one look-up for each edge.
    pub(super) fn of_each_edge(domains: usize) -> Result<Self, String> {
        const OBJECT: Result<&[u8], ProgramError> = embedded!("each_edge");
        Self::with(domains, |tables, mac| PortProgram::load_object(OBJECT?, tables, mac))
    }

    fn with(
        domains: usize,
        load: impl Fn(&Tables, [u8; 6]) -> Result<PortProgram, ProgramError>,
    ) -> Result<Self, String> {
        let decisions = [domains as u32 + 4, domains as u32, domains as u32, domains as u32];
        let sizes = TableSizes { decisions, ..TableSizes::default() };
        let tables = Tables::create(&sizes).map_err(|error| error.to_string())?;
        let programs = (0..PORTS)
            .map(|port| load(&tables, Side::Router.mac(port)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?;
        let mut mirror = Mirror::new(tables).map_err(|error| error.to_string())?;
        for port in 0..PORTS {
            let (slot, mac) = (slot(port), Side::Host.mac(port));
            mirror
                .set_port(slot, Side::Router.mac(port), MTU)
                .and_then(|()| mirror.set_hop(hop(port), Some(Neighbour { slot, mac })))
                .map_err(|error| error.to_string())?;
        }
        Ok(Self { mirror, programs })
    }

    /// Lets a packet of this form to every destination be routed by the portable engine, and takes over what
    /// its cache holds then.
    pub(super) fn learn(
        &mut self,
        router: &mut Forwarder,
        names: &Names,
        form: Form,
    ) -> Result<(), String> {
        router.set_cache_limit(CACHE);
        for domain in &names.domains {
            route(router, &address(form, names.local_domain, *domain))?;
        }
        let mut by_edges: [Vec<(Vec<Xid>, Decision)>; MAX_FAN_OUT] = Default::default();
        for entry in router.cached() {
            let edge = entry.slot;
            let decision = match entry.decision {
                Cached::Through => Decision::Through { edge },
                Cached::Forward(to) => Decision::Forward { edge, hop: hop(to.port.0 as usize - 1) },
                Cached::Drop(_) => Decision::Drop,
                Cached::Deliver(_) => continue,
            };
            by_edges[entry.edges.len() - 1].push((entry.edges, decision));
        }
        router.set_cache_limit(0);
        let batches = by_edges.iter().flat_map(|decisions| decisions.chunks(BATCH));
        batches.into_iter().try_for_each(|decisions| self.write(decisions))
    }

    /// Lets the engine know for each edge alone what is to be done: the unknown domains of all forms, and the
    /// known ones.
    pub(super) fn learn_each_edge(
        &mut self,
        router: &mut Forwarder,
        names: &Names,
    ) -> Result<(), String> {
        let unknown: Vec<_> = (1..=3).map(|index| (vec![unknown(index)], Decision::Drop)).collect();
        self.write(&unknown)?;
        self.learn(router, names, Form::Fallback(0))
    }

    fn write(&mut self, decisions: &[(Vec<Xid>, Decision)]) -> Result<(), String> {
        let edges = decisions.first().map_or(1, |(edges, _)| edges.len());
        let all = decisions.iter().map(|(edges, decision)| (edges.as_slice(), *decision));
        self.mirror.set(edges, all).map_err(|error| error.to_string())?;
        match self.mirror.statistics().refused {
            0 => Ok(()),
            count => Err(format!("the kernel has no room for {count} decisions")),
        }
    }

    /// Attaches the engine to all ports.
    pub(super) fn attach(&mut self, network: &Network) -> Result<Attached, String> {
        let (mirror, programs) = (&mut self.mirror, &self.programs);
        network.inside(Side::Router, || {
            let mut links = Vec::new();
            for (port, program) in programs.iter().enumerate() {
                let link = program.attach(&Side::Router.interface(port), XdpMode::Driver);
                let link = link.map_err(|error| error.to_string())?;
                let set = mirror.set_egress(slot(port), link.interface());
                set.map_err(|error| error.to_string())?;
                links.push(link);
            }
            Ok(Attached { _links: links })
        })
    }
}

/// Routes a packet to an address as one that came in on a port.
fn route(router: &mut Forwarder, address: &Address) -> Result<(), String> {
    let header = XipRepr::new(*address, None, 0);
    let mut bytes = [0; MAX_HEADER_LEN];
    header.emit(&mut bytes).map_err(|error| error.to_string())?;
    let mut packet = Packet::from_slice(&bytes[..header.buffer_len()]);
    packet.meta.port = IN;
    let mut verdicts = Vec::new();
    router.route(Instant::ZERO, packet, &mut verdicts);
    match verdicts[..] {
        [Verdict::Transmit { .. }] => Ok(()),
        _ => Err(format!("the router has no way to {address}")),
    }
}

fn slot(port: usize) -> Slot {
    Slot(NonZeroU16::MIN.saturating_add(port as u16))
}

fn hop(port: usize) -> HopId {
    HopId(port as u32)
}
