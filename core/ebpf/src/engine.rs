//! Packet engines: a program at XDP for each port, which carries out what a process decides.
//!
//! The process writes its decisions into the engine's [tables](EngineTables), whose descriptors are enough for
//! that. Everything that takes privileges is done by whoever holds the [`EngineTables`] themselves: it says
//! which interfaces there are, so that the process cannot send packets out of any other.
//!
//! What all engines have in common, besides the tables of their own:
//!
//! | map | index | value |
//! |---|---|---|
//! | `egress` | port | the interface |
//! | `ports` | port | MAC address in a word; the longest packet in the lower half of a word, flags above |
//! | `sockets` | 0 | the AF_XDP socket that takes what the program passes, where a port has one |
//! | `.bss` | 0 | of the port that the program is attached to: MAC address, two words of the program's own, flags |
//!
//! Reference: bpf(2); Linux kernel, Documentation/bpf/map_devmap.rst.

use std::num::NonZeroU16;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, io};

use crate::tc::interface_index;
use crate::{
    LoadedProgram, Map, MapKind, MapShape, MapTable, Memory, PortSocket, ProgramError, ProgramType,
    XdpLink, XdpMode, XdpVerdict, sys,
};

const MAKE: &str = "make a map of a packet engine";
const WRITE: &str = "write into a map of a packet engine";
/// The numbers of an engine's ports are below this; 0 is none.
pub const MOST_PORTS: u16 = 256;
/// Bytes of an element of `ports`: two words.
const PORT_LEN: usize = 16;
/// Bytes of the program's variables: four words.
const VARIABLES_LEN: usize = 32;
/// The words of the program's variables.
const MAC: usize = 0;
const FLAGS: usize = 3;
/// Of a port: its driver takes packets from programs in driver mode only under conditions that cannot be seen.
const RELUCTANT: u64 = 1;
/// Of a program: it runs in driver mode.
const IN_DRIVER: u64 = 1;
/// Of a program: it hands nothing to ports that are [`RELUCTANT`].
const CAREFUL: u64 = 2;
/// The driver whose interfaces are [`RELUCTANT`]: what it is handed it drops, unless the other end of the cable
/// has a program at XDP itself or GRO switched on, and that may be in another network namespace.
const VETH: &str = "veth";
/// Why a program is not in driver mode there.
const VETH_LOSES: &str = "a veth interface may lose what a program in its driver is handed; say `driver` if all ends are prepared";

/// A packet engine that is built in.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Its name.
    pub name: &'static str,
    /// The object file: see [`embedded!`](crate::embedded).
    pub object: fn() -> Result<&'static [u8], ProgramError>,
    /// The program in it.
    pub program: &'static str,
    /// The tables of its own, which a process may write.
    pub tables: Vec<(&'static str, MapShape)>,
}

/// The most memory that the tables of an engine may take: who asks for more has made a mistake. A little more than 4 GiB, for what
/// tables have besides their entries.
const MOST_BYTES: usize = (4 << 30) + (4 << 30) / 32;

impl Engine {
    /// The same with room for so many entries in each table that is found by key, in their order; those of which nothing
    /// is said are as they are.
    ///
    /// # Errors
    /// A table has no room at all, or all of them together take more than 4 GiB.
    pub fn with_most(&self, most: &[u32]) -> Result<Self, ProgramError> {
        let mut engine = self.clone();
        let wrong = |why: String| ProgramError::from_call(MAKE, &io::Error::other(why));
        let found_by_key = |shape: &MapShape| shape.kind == MapKind::OpenTable;
        let tables = engine.tables.iter_mut().filter(|(_, shape)| found_by_key(shape));
        for ((name, shape), most) in tables.zip(most) {
            if *most == 0 {
                return Err(wrong(format!("the table {name} has no room for anything")));
            }
            shape.elements = *most;
        }
        let bytes: usize = engine.tables.iter().map(|(_, shape)| shape.bytes()).sum();
        if bytes > MOST_BYTES {
            return Err(wrong(format!(
                "its tables would take {bytes} bytes; at most {MOST_BYTES}"
            )));
        }
        Ok(engine)
    }

    /// The same with tables that are as large as those which these descriptors stand for, in their order.
    ///
    /// # Errors
    /// One of them is no map.
    pub fn sized_as(&self, tables: &[OwnedFd]) -> Result<Self, ProgramError> {
        let mut engine = self.clone();
        for ((_, shape), table) in engine.tables.iter_mut().zip(tables) {
            *shape = shape.sized_as(table.as_fd()).map_err(|error| {
                ProgramError::from_call("use the maps of a packet engine", &error)
            })?;
        }
        Ok(engine)
    }
}

/// A port of an engine, by its number in `egress` and `ports`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub NonZeroU16);

/// What packets that leave by a port need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Egress {
    /// The number of the interface, in the network namespace of the calling thread.
    pub interface: u32,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// The longest packet without its link header, in bytes.
    pub mtu: u32,
}

/// Where the programs of an engine may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EngineMode {
    /// In the driver, else in the network stack. On `veth` interfaces in the network stack at once: their driver
    /// loses packets unless the other end of the cable was prepared.
    #[default]
    Auto,
    /// In the driver. Who asks for this knows that all ports of the engine can take packets there.
    Driver,
    /// In the network stack.
    Generic,
}

impl EngineMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Driver, Self::Generic];

    /// Its word in configurations and calls.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Driver => "driver",
            Self::Generic => "generic",
        }
    }

    /// Whether a program may stay where it is. One that is in the network stack by `auto` was tried in the driver.
    #[must_use]
    pub fn allows(self, mode: XdpMode) -> bool {
        match self {
            Self::Auto => true,
            Self::Driver => mode == XdpMode::Driver,
            Self::Generic => mode == XdpMode::Generic,
        }
    }

    /// What is tried, the best first.
    fn modes(self, is_reluctant: bool) -> &'static [XdpMode] {
        match self {
            Self::Auto if is_reluctant => &[XdpMode::Generic],
            Self::Auto => &[XdpMode::Driver, XdpMode::Generic],
            Self::Driver => &[XdpMode::Driver],
            Self::Generic => &[XdpMode::Generic],
        }
    }
}

impl fmt::Display for EngineMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The maps that all ports of an engine share.
#[derive(Debug)]
pub struct EngineTables {
    tables: Vec<MapTable>,
    names: Vec<&'static str>,
    ports: MapTable,
    egress: Map,
}

impl EngineTables {
    /// Makes empty tables.
    ///
    /// # Errors
    /// [`ProgramError::NotPermitted`] without `CAP_BPF`; [`ProgramError::Refused`] if there is not enough
    /// memory.
    pub fn create(engine: &Engine) -> Result<Self, ProgramError> {
        Self::from_maps(engine, Map::create).map_err(|error| ProgramError::from_call(MAKE, &error))
    }

    /// The tables that these descriptors, in the order of [`EngineTables::descriptors`], stand for.
    ///
    /// # Errors
    /// If there are too few, or one is something else.
    pub fn of_descriptors(
        engine: &Engine,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Self, ProgramError> {
        let mut descriptors = descriptors.into_iter();
        let next = |_: &str, shape| {
            let next = descriptors.next();
            Map::of_descriptor(next.ok_or_else(|| io::Error::other("one is missing"))?, shape)
        };
        Self::from_maps(engine, next)
            .map_err(|error| ProgramError::from_call("use the maps of a packet engine", &error))
    }

    fn from_maps(
        engine: &Engine,
        mut map: impl FnMut(&str, MapShape) -> io::Result<Map>,
    ) -> io::Result<Self> {
        let own = engine.tables.iter();
        let tables = own.map(|(name, shape)| MapTable::new(map(name, *shape)?));
        let tables = tables.collect::<io::Result<_>>()?;
        let slots = u32::from(MOST_PORTS);
        let ports = MapShape::numbered(MapKind::Array, PORT_LEN as u32, slots);
        let egress = MapShape::numbered(MapKind::Devices, 4, slots);
        Ok(Self {
            tables,
            names: engine.tables.iter().map(|(name, _)| *name).collect(),
            ports: MapTable::new(map("ports", ports)?)?,
            egress: map("egress", egress)?,
        })
    }

    /// The tables that a process may write, in the order of [`Engine::tables`].
    #[must_use]
    pub fn own(&self) -> &[MapTable] {
        &self.tables
    }

    /// The descriptors of all maps: those that a process may write, and two more.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let common = [self.ports.map(), &self.egress];
        self.tables.iter().map(MapTable::map).chain(common).map(Map::descriptor)
    }

    /// Says what packets that leave by a port need; `None` if none may leave by it any more.
    ///
    /// # Errors
    /// [`ProgramError::Refused`] if there is no such port or interface.
    pub fn set_egress(&self, slot: Slot, egress: Option<Egress>) -> Result<(), ProgramError> {
        let refused = |error: &io::Error| ProgramError::from_call(WRITE, error);
        let key = u32::from(slot.0.get()).to_ne_bytes();
        let first = usize::from(slot.0.get()) * (PORT_LEN / 8);
        let words = self.ports.words().get(first..first + PORT_LEN / 8);
        let Some([of_mac, of_mtu]) = words else {
            return Err(refused(&io::Error::other("an engine has no more than 255 ports")));
        };
        let Some(Egress { interface, mac, mtu }) = egress else {
            of_mtu.store(0, Ordering::Relaxed);
            return match self.egress.remove(&key) {
                Ok(_) => Ok(()),
                Err(error) => Err(refused(&error)),
            };
        };
        let reluctant = if is_reluctant(interface) { RELUCTANT } else { 0 };
        of_mac.store(mac_word(mac), Ordering::Relaxed);
        of_mtu.store(u64::from(mtu) | reluctant << 32, Ordering::Relaxed);
        self.egress.set(&key, &interface.to_ne_bytes()).map_err(|error| refused(&error))
    }

    fn named(&self) -> Vec<(&'static str, &Map)> {
        let own = self.names.iter().copied().zip(self.tables.iter().map(MapTable::map));
        own.chain([("ports", self.ports.map()), ("egress", &self.egress)]).collect()
    }
}

/// An engine's program for one port, loaded and not yet attached.
#[derive(Debug)]
pub struct EngineProgram {
    program: LoadedProgram,
    socket: PortSocket,
    variables: Map,
    memory: Memory,
}

impl EngineProgram {
    /// Loads a program for a port with this MAC address. What the program passes on goes to `socket`, and to the
    /// network stack where there is none.
    ///
    /// # Errors
    /// [`ProgramError::NotBuilt`] if clang was missing when weft was built; [`ProgramError::NotPermitted`]
    /// without `CAP_BPF` and `CAP_NET_ADMIN`; [`ProgramError::Refused`].
    pub fn load(
        engine: &Engine,
        tables: &EngineTables,
        mac: [u8; 6],
        socket: PortSocket,
    ) -> Result<Self, ProgramError> {
        let refused = |error: io::Error| ProgramError::from_call(MAKE, &error);
        let variables = Map::create("variables", variables()).map_err(refused)?;
        let mut maps = tables.named();
        maps.extend([(".bss", &variables), ("sockets", socket.map())]);
        let object = (engine.object)()?;
        let program = LoadedProgram::load(object, engine.program, ProgramType::Xdp, &maps)?;
        let memory = variables.memory().map_err(refused)?;
        set_mac(&memory, mac);
        Ok(Self { program, socket, variables, memory })
    }

    /// Attaches the program to `interface`, which must be in the network namespace of the calling thread.
    ///
    /// # Errors
    /// As [`XdpLink::attach`], of the mode that was tried last.
    pub fn attach(self, interface: &str, mode: EngineMode) -> Result<EnginePort, ProgramError> {
        let index = interface_index(interface)
            .ok_or_else(|| ProgramError::NoInterface { interface: interface.to_owned() })?;
        let Self { program, socket, variables, memory } = self;
        let mut last: Option<ProgramError> = None;
        for tried in mode.modes(is_reluctant(index)) {
            let flags = match (mode, tried) {
                (EngineMode::Driver, _) => IN_DRIVER,
                (_, XdpMode::Driver) => IN_DRIVER | CAREFUL,
                _ => 0,
            };
            word(&memory, FLAGS).store(flags, Ordering::Relaxed);
            match XdpLink::attach(interface, *tried, &program) {
                Ok(link) => {
                    let fallback = match (mode, tried, last) {
                        (EngineMode::Auto, XdpMode::Generic, None) => Some(VETH_LOSES.to_owned()),
                        (_, _, last) => last.map(|error| error.to_string()),
                    };
                    return Ok(EnginePort { link, socket, variables, memory, fallback });
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or(ProgramError::NoInterface { interface: interface.to_owned() }))
    }

    /// Runs the program on a frame, without any port: what it says, and the frame afterwards.
    ///
    /// # Errors
    /// As [`LoadedProgram::run`].
    pub fn run(&self, frame: &[u8]) -> io::Result<(XdpVerdict, Vec<u8>)> {
        self.program.run(frame)
    }
}

/// An engine's program at an interface. It stays there until all copies of its link's descriptor are closed, or it
/// is [detached](EnginePort::detach).
#[derive(Debug)]
pub struct EnginePort {
    link: XdpLink,
    socket: PortSocket,
    variables: Map,
    memory: Memory,
    /// Why it is not where it would be best; not known of a port that was taken over.
    fallback: Option<String>,
}

impl EnginePort {
    /// Takes over what an earlier process has attached, by what it has kept.
    ///
    /// # Errors
    /// [`ProgramError::NotOurs`] if it is something else, or its interface is gone.
    pub fn adopt(
        engine: &Engine,
        [link, of_variables, socket]: [OwnedFd; 3],
    ) -> Result<Self, ProgramError> {
        let strange = |_| ProgramError::NotOurs {
            program: engine.name,
            detail: "its variables or sockets are something else",
        };
        let variables = Map::of_descriptor(of_variables, variables()).map_err(strange)?;
        let memory = variables.memory().map_err(strange)?;
        let socket = PortSocket::of_descriptor(socket).map_err(strange)?;
        let link = XdpLink::adopt(engine.name, link)?;
        Ok(Self { link, socket, variables, memory, fallback: None })
    }

    /// The number of its interface.
    #[must_use]
    pub fn interface(&self) -> u32 {
        self.link.interface()
    }

    /// Where it runs.
    #[must_use]
    pub fn mode(&self) -> XdpMode {
        match word(&self.memory, FLAGS).load(Ordering::Relaxed) & IN_DRIVER {
            0 => XdpMode::Generic,
            _ => XdpMode::Driver,
        }
    }

    /// Why it runs in the network stack although it might have run in the driver. `None` if it does not, if that
    /// was what was asked for, and if an earlier process has attached it.
    #[must_use]
    pub fn fallback(&self) -> Option<&str> {
        self.fallback.as_deref()
    }

    /// What holds it, for whoever keeps it: the link, the program's variables, and the place of the socket.
    #[must_use]
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 3] {
        [self.link.descriptor(), self.variables.descriptor(), self.socket.descriptor()]
    }

    /// Where the socket is that takes what the program passes.
    #[must_use]
    pub fn socket(&self) -> &PortSocket {
        &self.socket
    }

    /// The interface's MAC address has changed.
    pub fn set_mac(&self, mac: [u8; 6]) {
        set_mac(&self.memory, mac);
    }

    /// Detaches the program, also if others have copies of its descriptor.
    ///
    /// # Errors
    /// [`ProgramError::NotPermitted`], [`ProgramError::Refused`].
    pub fn detach(self) -> Result<(), ProgramError> {
        self.link.detach()
    }
}

/// The shape of the program's variables.
const fn variables() -> MapShape {
    MapShape::numbered(MapKind::Array, VARIABLES_LEN as u32, 1)
}

fn word(memory: &Memory, index: usize) -> &AtomicU64 {
    &memory.words()[index]
}

fn set_mac(memory: &Memory, mac: [u8; 6]) {
    word(memory, MAC).store(mac_word(mac), Ordering::Relaxed);
}

/// A MAC address in a word, as a program reads it from a frame.
#[must_use]
pub fn mac_word(mac: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = mac;
    u64::from(u32::from_ne_bytes([a, b, c, d])) | u64::from(u16::from_ne_bytes([e, f])) << 32
}

/// Whether packets that a program in driver mode hands to this interface may be lost.
fn is_reluctant(interface: u32) -> bool {
    sys::xdp::driver(interface).is_ok_and(|driver| driver == VETH)
}
