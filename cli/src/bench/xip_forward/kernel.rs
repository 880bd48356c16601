//! The router's kernel engine: decisions that the portable engine takes, carried out by the kernel.

use std::num::NonZeroU16;
use std::time::Duration;

use weft_base::{Instant, Packet, PortId};
use weft_ebpf::{
    Egress, Engine as Program, EngineMode, EnginePort, EngineProgram, EngineTables, PortSocket,
    ProgramError, Slot, embedded,
};
use weft_xia_kernel::{Mirror, TableSizes, engine};
use weft_xip::forward::{DropReason, Forwarder, SlowPathLimit, Verdict};
use weft_xip::header::MAX_HEADER_LEN;
use weft_xip::offload::{Edges, Engine, Offload, Offloaded};
use weft_xip::{Address, Xid, XidType, XipRepr};

use super::super::xip_engine::world::{IN, Names};
use super::changes::Changes;
use super::frames::{Form, address, nobody, unknown};
use super::network::{Network, Side};

/// The longest XIP packet that the cables take.
const MTU: u32 = 1500;
/// Bytes for a cache: more than all destinations need.
const CACHE: usize = 3 << 30;
/// Bytes for the tables of the kernel engine, as those of a node with `cache 512MiB`.
const TABLES: usize = 512 << 20;
/// Between two packets that routers learn from: longer than between two decisions that any limit allows.
const STEP: Duration = Duration::from_millis(1);

/// The kernel engine of a router, and the portable one that decides for it.
pub(super) struct Kernel {
    program: Program,
    tables: EngineTables,
    mirror: Mirror,
    router: Forwarder,
    domains: Vec<Xid>,
    neighbours: Vec<Xid>,
    changes: Changes,
}

/// While there is one, the kernel forwards XIP.
pub(super) struct Attached {
    ports: Vec<EnginePort>,
}

impl Attached {
    /// Where the engine looks, port by port, for the sockets that take what it passes on.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &PortSocket> {
        self.ports.iter().map(EnginePort::socket)
    }
}

impl Kernel {
    /// An engine that has all decisions for packets of these forms to every domain; `ports` are the numbers of
    /// the ports that the domains are behind.
    pub(super) fn new(
        router: Forwarder,
        names: &Names,
        ports: &[usize],
        forms: &[Form],
    ) -> Result<Self, String> {
        Self::with(|program| program, router, names, ports, forms)
    }

    /// The same with one look-up for each edge: it has decisions for each edge alone, for the domains that nobody
    /// knows in all forms, too.
    pub(super) fn of_each_edge(
        router: Forwarder,
        names: &Names,
        ports: &[usize],
    ) -> Result<Self, String> {
        const OBJECT: Result<&[u8], ProgramError> = embedded!("each_edge");
        let program = |program| Program { object: || OBJECT, ..program };
        let mut engine = Self::with(program, router, names, ports, &[Form::Fallback(0)])?;
        (1..=3).try_for_each(|index| {
            let edges: Edges = [unknown(index)].into_iter().collect();
            engine.write(&[Offload::Set {
                edges,
                edge: 0,
                decision: Offloaded::Drop(DropReason::Unreachable),
            }])
        })?;
        Ok(engine)
    }

    fn with(
        program: impl Fn(Program) -> Program,
        mut router: Forwarder,
        names: &Names,
        ports: &[usize],
        forms: &[Form],
    ) -> Result<Self, String> {
        let sizes = TableSizes::of_memory(TABLES);
        if sizes.decisions.iter().any(|most| (*most as usize) < names.domains.len() + 4) {
            return Err(
                "there are more destinations than the kernel engine's tables hold".to_owned()
            );
        }
        let program = program(engine(&sizes));
        let tables = EngineTables::create(&program).map_err(|error| error.to_string())?;
        let mirror = Mirror::new(sizes);
        router.set_offloading(Some(mirror.room()));
        learn(&mut router, names, forms)?;
        let mut kernel = Self {
            program,
            tables,
            mirror,
            router,
            domains: names.domains.clone(),
            neighbours: names.neighbours.clone(),
            changes: Changes::new(ports.to_vec(), names.neighbours.len()),
        };
        kernel.follow()?;
        Ok(kernel)
    }

    /// Makes so many changes of routes.
    pub(super) fn change(&mut self, count: u64) -> Result<(), String> {
        if let Some(mut ad) = self.router.principal_mut(XidType::AD) {
            for _ in 0..count {
                let (domain, neighbour) = self.changes.next();
                let redirected = ad.redirect(self.domains[domain], &[self.neighbours[neighbour]]);
                redirected.map_err(|error| error.to_string())?;
            }
        }
        self.follow()
    }

    /// Limits from now on how many packets without a decision are passed on from each port.
    pub(super) fn limit(&mut self, limit: Option<SlowPathLimit>) -> Result<(), String> {
        self.write(&[Offload::Limit(limit)])
    }

    /// Lets the kernel know what the portable engine has decided.
    fn follow(&mut self) -> Result<(), String> {
        let mut changes = Vec::new();
        self.router.drain_offloads(usize::MAX, &mut changes);
        self.write(&changes)
    }

    fn write(&mut self, changes: &[Offload]) -> Result<(), String> {
        let mut writes = Vec::new();
        let slot = |port: PortId| (port.0 as usize).checked_sub(1).map(slot);
        for change in changes {
            self.mirror.write(change, &slot, &mut writes);
        }
        writes.iter().try_for_each(|(table, write)| match self.tables.own()[*table].write(write) {
            Ok(true) => Ok(()),
            Ok(false) => Err("the kernel has no room for a decision".to_owned()),
            Err(error) => Err(error.to_string()),
        })
    }

    /// Attaches the engine to all ports.
    pub(super) fn attach(&mut self, network: &Network) -> Result<Attached, String> {
        let text = |error: ProgramError| error.to_string();
        network.inside(Side::Router, || {
            let mut ports = Vec::new();
            for port in 0..network.ports() {
                let (mac, interface) =
                    (Side::Router.mac(port), network.interface(Side::Router, port));
                let socket = PortSocket::none().map_err(text)?;
                let program = EngineProgram::load(&self.program, &self.tables, mac, socket);
                let program = program.map_err(text)?;
                let attached = program.attach(&interface, EngineMode::Driver);
                let attached = attached.map_err(text)?;
                let egress = Egress { interface: attached.interface(), mac, mtu: MTU };
                self.tables.set_egress(slot(port), Some(egress)).map_err(text)?;
                ports.push(attached);
            }
            Ok(Attached { ports })
        })
    }
}

/// Lets a router decide about packets of these forms to every destination, slowly enough for any limit.
pub(super) fn learn(router: &mut Forwarder, names: &Names, forms: &[Form]) -> Result<(), String> {
    router.set_cache_limit(CACHE);
    let mut now = Instant::ZERO;
    let mut route = |router: &mut Forwarder, address: &Address| {
        now += STEP;
        route(router, now, address)
    };
    for form in forms {
        for domain in &names.domains {
            // What is used again is told to another engine.
            for _ in 0..2 {
                route(router, &address(*form, names.local_domain, *domain))?;
            }
        }
        let nowhere = address(*form, names.local_domain, nobody());
        for _ in 0..2 {
            if route(router, &nowhere).is_ok() {
                return Err(format!("the router should have no way to {nowhere}"));
            }
        }
    }
    Ok(())
}

/// Routes a packet to an address as one that came in on a port.
fn route(router: &mut Forwarder, now: Instant, address: &Address) -> Result<(), String> {
    let header = XipRepr::new(*address, None, 0);
    let mut bytes = [0; MAX_HEADER_LEN];
    header.emit(&mut bytes).map_err(|error| error.to_string())?;
    let mut packet = Packet::from_slice(&bytes[..header.buffer_len()]);
    packet.meta.port = IN;
    let mut verdicts = Vec::new();
    router.route(now, packet, &mut verdicts);
    match verdicts[..] {
        [Verdict::Transmit { .. }] => Ok(()),
        _ => Err(format!("the router has no way to {address}")),
    }
}

fn slot(port: usize) -> Slot {
    Slot(NonZeroU16::MIN.saturating_add(port as u16))
}
