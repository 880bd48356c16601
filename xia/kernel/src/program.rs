//! The program for one port.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use weft_ebpf::{
    LoadedProgram, Map, MapKind, MapShape, Memory, ProgramError, ProgramType, XdpLink, XdpMode,
    XdpVerdict, embedded,
};

use crate::layout::{VARIABLES_LEN, mac_word};
use crate::tables::Tables;

const OBJECT: Result<&[u8], ProgramError> = embedded!("xip");
const NAME: &str = "weft_xip";
const VARIABLES: &str = ".bss";
/// The words of the program's variables.
const MAC: usize = 0;
const INTERVAL: usize = 1;
const BURST: usize = 2;

/// How many packets a port may pass on to the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassLimit {
    /// The mean time between two packets.
    pub interval: Duration,
    /// Packets that may come at once, 1 or more.
    pub burst: u32,
}

/// A program that works on the tables for one port, loaded and not yet attached.
#[derive(Debug)]
pub struct PortProgram {
    program: LoadedProgram,
    variables: Memory,
}

impl PortProgram {
    /// Loads a program for a port with this MAC address, which passes on as much as comes.
    ///
    /// # Errors
    /// [`ProgramError::NotBuilt`] if clang was missing when weft was built; [`ProgramError::NotPermitted`]
    /// without `CAP_BPF` and `CAP_NET_ADMIN`; [`ProgramError::Refused`].
    pub fn load(tables: &Tables, mac: [u8; 6]) -> Result<Self, ProgramError> {
        Self::load_object(OBJECT?, tables, mac)
    }

    /// The same with another object file, which has a program of the same name and maps: for measurements.
    ///
    /// # Errors
    /// As [`PortProgram::load`].
    pub fn load_object(object: &[u8], tables: &Tables, mac: [u8; 6]) -> Result<Self, ProgramError> {
        let refused = |error: io::Error| ProgramError::from_call("make a map of xip", &error);
        let shape = MapShape::numbered(MapKind::Array, VARIABLES_LEN as u32, 1);
        let variables = Map::create("xip_port", shape).map_err(refused)?;
        let mut maps = tables.named();
        maps.push((VARIABLES, &variables));
        let program = LoadedProgram::load(object, NAME, ProgramType::Xdp, &maps)?;
        let loaded = Self { program, variables: variables.memory().map_err(refused)? };
        loaded.set_mac(mac);
        Ok(loaded)
    }

    /// The port's MAC address has changed.
    pub fn set_mac(&self, mac: [u8; 6]) {
        self.word(MAC).store(mac_word(mac), Ordering::Relaxed);
    }

    /// Limits how many packets are passed on to the stack; `None` is no limit.
    pub fn limit(&self, limit: Option<PassLimit>) {
        let interval = limit.map_or(Duration::ZERO, |limit| limit.interval);
        let burst = limit.map_or(0, |limit| limit.burst.saturating_sub(1));
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.word(BURST).store(nanoseconds(interval.saturating_mul(burst)), Ordering::Relaxed);
        self.word(INTERVAL).store(nanoseconds(interval), Ordering::Relaxed);
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        &self.variables.words()[index]
    }

    /// Attaches the program to `interface`, which must be in the network namespace of the calling thread.
    ///
    /// # Errors
    /// As [`XdpLink::attach`].
    pub fn attach(&self, interface: &str, mode: XdpMode) -> Result<XdpLink, ProgramError> {
        XdpLink::attach(interface, mode, &self.program)
    }

    /// Runs the program on a frame, without any port: what it says, and the frame afterwards.
    ///
    /// # Errors
    /// As [`LoadedProgram::run`].
    pub fn run(&self, frame: &[u8]) -> io::Result<(XdpVerdict, Vec<u8>)> {
        self.program.run(frame)
    }
}
