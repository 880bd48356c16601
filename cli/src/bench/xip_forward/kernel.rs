//! The router's kernel engine: decisions that the portable engine takes, carried out by the kernel.

use std::num::NonZeroU16;

use weft_base::{Instant, Packet, PortId};
use weft_ebpf::{
    Egress, Engine as Program, EngineMode, EnginePort, EngineProgram, EngineTables, ProgramError,
    Slot, embedded,
};
use weft_xia_kernel::{Mirror, TableSizes, engine};
use weft_xip::forward::{Forwarder, Verdict};
use weft_xip::header::MAX_HEADER_LEN;
use weft_xip::offload::{Edges, Engine, Offload, Offloaded};
use weft_xip::{Address, XipRepr};

use super::super::xip_engine::world::{IN, Names};
use super::frames::{Form, address, unknown};
use super::network::{Network, PORTS, Side};

/// The longest XIP packet that the cables take.
const MTU: u32 = 1500;
/// Bytes for the portable engine's cache: more than all destinations need.
const CACHE: usize = 3 << 30;

/// The kernel engine of a router.
pub(super) struct Kernel {
    program: Program,
    tables: EngineTables,
    mirror: Mirror,
}

/// While there is one, the kernel forwards XIP.
pub(super) struct Attached {
    _ports: Vec<EnginePort>,
}

impl Kernel {
    /// An engine with room for this many destinations, in which nothing is decided yet.
    pub(super) fn new(domains: usize) -> Result<Self, String> {
        Self::with(domains, |program| program)
    }

    /// The same with one look-up for each edge.
    pub(super) fn of_each_edge(domains: usize) -> Result<Self, String> {
        const OBJECT: Result<&[u8], ProgramError> = embedded!("each_edge");
        Self::with(domains, |program| Program { object: || OBJECT, ..program })
    }

    fn with(domains: usize, program: impl Fn(Program) -> Program) -> Result<Self, String> {
        let decisions = [domains as u32 + 4, domains as u32, domains as u32, domains as u32];
        let sizes = TableSizes { decisions, ..TableSizes::default() };
        let program = program(engine(&sizes));
        let tables = EngineTables::create(&program).map_err(|error| error.to_string())?;
        Ok(Self { program, tables, mirror: Mirror::new(sizes) })
    }

    /// Lets packets of these forms to every destination be routed by the portable engine, and takes over what
    /// its cache holds then.
    pub(super) fn learn(
        &mut self,
        router: &mut Forwarder,
        names: &Names,
        forms: &[Form],
    ) -> Result<(), String> {
        router.set_cache_limit(CACHE);
        router.set_offloading(Some(self.mirror.room()));
        let mut changes = Vec::new();
        for form in forms {
            for domain in &names.domains {
                // What is used again is told.
                for _ in 0..2 {
                    route(router, &address(*form, names.local_domain, *domain))?;
                }
            }
            router.drain_offloads(&mut changes);
            changes.drain(..).try_for_each(|change| self.write(&change))?;
        }
        router.set_offloading(None);
        router.set_cache_limit(0);
        Ok(())
    }

    /// Lets the engine know for each edge alone what is to be done: the unknown domains of all forms, and the
    /// known ones.
    pub(super) fn learn_each_edge(
        &mut self,
        router: &mut Forwarder,
        names: &Names,
    ) -> Result<(), String> {
        self.learn(router, names, &[Form::Fallback(0)])?;
        (1..=3).try_for_each(|index| {
            let edges: Edges = [unknown(index)].into_iter().collect();
            self.write(&Offload::Set { edges, edge: 0, decision: Offloaded::Drop })
        })
    }

    fn write(&mut self, change: &Offload) -> Result<(), String> {
        let mut writes = Vec::new();
        self.mirror.write(change, &|port| slot_of(port), &mut writes);
        writes.iter().try_for_each(|(table, write)| match self.tables.own()[*table].write(write) {
            Ok(0) => Ok(()),
            Ok(_) => Err("the kernel has no room for a decision".to_owned()),
            Err(error) => Err(error.to_string()),
        })
    }

    /// Attaches the engine to all ports.
    pub(super) fn attach(&mut self, network: &Network) -> Result<Attached, String> {
        let text = |error: ProgramError| error.to_string();
        network.inside(Side::Router, || {
            let mut ports = Vec::new();
            for port in 0..PORTS {
                let mac = Side::Router.mac(port);
                let program =
                    EngineProgram::load(&self.program, &self.tables, mac).map_err(text)?;
                let attached = program.attach(&Side::Router.interface(port), EngineMode::Driver);
                let attached = attached.map_err(text)?;
                let egress = Egress { interface: attached.interface(), mac, mtu: MTU };
                self.tables.set_egress(slot(port), Some(egress)).map_err(text)?;
                ports.push(attached);
            }
            Ok(Attached { _ports: ports })
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

/// The slot of a port of the portable engine, whose numbers begin with 1.
fn slot_of(port: PortId) -> Option<Slot> {
    (port.0 as usize).checked_sub(1).filter(|port| *port < PORTS).map(slot)
}
