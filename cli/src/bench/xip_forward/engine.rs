//! The kernel's engine of a router: its program, and the tables that say what the router has decided.

use std::num::NonZeroU16;

use weft_base::PortId;
use weft_ebpf::{
    Egress, Engine as Program, EngineMode, EnginePort, EngineProgram, EngineTables, PortSocket,
    ProgramError, Slot, embedded,
};
use weft_xia_kernel::{Mirror, TableSizes, engine};
use weft_xip::offload::{Engine as _, Offload, OffloadRoom};

use super::network::{Network, Side};

/// The longest XIP packet that the cables take.
const MTU: u32 = 1500;

/// See the module's text.
pub(in crate::bench) struct Engine {
    program: Program,
    tables: EngineTables,
    mirror: Mirror,
}

/// While there is one, the kernel forwards XIP.
pub(in crate::bench) struct Attached {
    ports: Vec<EnginePort>,
}

impl Attached {
    /// Where the engine looks, port by port, for the sockets that take what it passes on.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &PortSocket> {
        self.ports.iter().map(EnginePort::socket)
    }
}

impl Engine {
    /// An engine with empty tables, which take as much memory as those of a node whose `cache` is so large.
    pub(in crate::bench) fn new(cache: usize) -> Result<Self, String> {
        let sizes = TableSizes::of_memory(cache);
        Self::of_program(engine(&sizes), sizes)
    }

    /// The same with one look-up for each edge.
    pub(super) fn of_each_edge(cache: usize) -> Result<Self, String> {
        const OBJECT: Result<&[u8], ProgramError> = embedded!("each_edge");
        let sizes = TableSizes::of_memory(cache);
        Self::of_program(Program { object: || OBJECT, ..engine(&sizes) }, sizes)
    }

    fn of_program(program: Program, sizes: TableSizes) -> Result<Self, String> {
        let tables = EngineTables::create(&program).map_err(|error| error.to_string())?;
        Ok(Self { program, tables, mirror: Mirror::new(sizes) })
    }

    /// How much it can be told.
    pub(super) fn room(&self) -> OffloadRoom {
        self.mirror.room()
    }

    /// Lets it know what was decided.
    pub(super) fn write(&mut self, changes: &[Offload]) -> Result<(), String> {
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

    /// Attaches it to all ports.
    pub(super) fn attach(&self, network: &Network) -> Result<Attached, String> {
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

fn slot(port: usize) -> Slot {
    Slot(NonZeroU16::MIN.saturating_add(port as u16))
}
