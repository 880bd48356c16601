//! The packet engines that this process has opened, by `weft_ebpf`, and the tables of those that another has.
//!
//! What is asked is specified in `crate::engine`.

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::os::fd::{BorrowedFd, OwnedFd};

use weft_base::{Handle, Token};
use weft_ebpf::{
    Egress, Engine, EngineMode, EnginePort, EngineProgram, EngineTables, HookKind, MOST_PORTS, Map,
    MapShape, MapTable, MapWrite, PortSocket, Slot, interface_name,
};

use weft_port::PortSpec;

use super::poller::Poller;
use super::steered::{Beside, Steered};
use crate::{EngineReply, EngineRequest, Event, ProgramReply};

/// What is open.
#[derive(Default)]
pub(super) struct Engines {
    /// Those that are built in.
    known: Vec<Engine>,
    open: BTreeMap<&'static str, Open>,
    /// Tables that this process writes.
    adopted: BTreeMap<Token, Vec<MapTable>>,
    steered: Steered,
}

struct Open {
    engine: Engine,
    tables: EngineTables,
    /// By the numbers of their interfaces.
    ports: BTreeMap<u32, (Slot, EnginePort)>,
    /// What was kept of ports that are gone, until somebody is told.
    gone: Vec<String>,
}

impl Engines {
    pub(super) fn new(known: Vec<Engine>) -> Self {
        Self { known, ..Self::default() }
    }

    /// Does what is asked. The kernel answers at once.
    pub(super) fn carry_out(&mut self, token: Token, request: EngineRequest) -> Event {
        Event::EngineAnswered { token, result: self.answer(request) }
    }

    fn answer(&mut self, request: EngineRequest) -> Result<EngineReply, String> {
        match request {
            EngineRequest::Open { engine, most } => self.open(&engine, &most),
            EngineRequest::Adopt { engine, kept } => self.adopt(&engine, kept),
            EngineRequest::Attach { engine, interface, mac, mtu, mode } => {
                self.attach(&engine, &interface, mac, mtu, mode)
            }
            EngineRequest::Detach { engine, interface } => {
                let release = self.detach(&engine, &interface)?;
                Ok(EngineReply::Done { release })
            }
        }
    }

    fn open(&mut self, name: &str, most: &[u32]) -> Result<EngineReply, String> {
        let engine = self.known(name)?.with_most(most).map_err(text)?;
        let (mut keep, mut release) = (Vec::new(), Vec::new());
        let before = self.open.get(engine.name);
        if before.is_none_or(|open| open.engine.tables != engine.tables) {
            // The new ones first: if there is no memory for them, the old ones go on.
            let tables = EngineTables::create(&engine).map_err(text)?;
            release = self.close(engine.name)?;
            let open = Open { tables, ports: BTreeMap::new(), gone: Vec::new(), engine };
            keep = open.kept()?;
            self.open.insert(open.engine.name, open);
        }
        let open = self.open.get(name).ok_or_else(|| not_open(name))?;
        let tables = open.tables.own().iter().map(|table| copy(table.map().descriptor()));
        Ok(EngineReply::Opened { tables: tables.collect::<Result<_, _>>()?, keep, release })
    }

    /// Ends an engine, if it is open. Returns what was kept of it.
    fn close(&mut self, name: &'static str) -> Result<Vec<String>, String> {
        let Some(open) = self.open.get(name) else { return Ok(Vec::new()) };
        let mut release: Vec<_> = (0..open.tables.descriptors().count()).map(table_name).collect();
        let interfaces = open.ports.keys().filter_map(|index| interface_name(*index));
        for interface in interfaces.collect::<Vec<_>>() {
            release.extend(self.detach(name, &interface)?);
        }
        if let Some(mut open) = self.open.remove(name) {
            release.extend(open.forget_lost());
        }
        Ok(release)
    }

    /// Detaches an engine from an interface, if it is there. Returns what was kept of it.
    fn detach(&mut self, name: &str, interface: &str) -> Result<Vec<String>, String> {
        let release = match self.open.get_mut(name) {
            Some(open) => open.detach(interface)?,
            None => Vec::new(),
        };
        self.steered.come_back(interface)?;
        Ok(release)
    }

    fn attach(
        &mut self,
        engine: &str,
        interface: &str,
        mac: [u8; 6],
        mtu: u32,
        mode: EngineMode,
    ) -> Result<EngineReply, String> {
        let Some(open) = self.open.get_mut(engine) else { return Err(not_open(engine)) };
        let name = open.engine.name;
        let gone = match open.port(interface).map(|(_, port)| mode.allows(port.mode())) {
            Some(true) => return open.renew(interface, mac, mtu),
            Some(false) => self.detach(name, interface)?,
            None => Vec::new(),
        };
        let socket = self.steered.give_way(interface)?;
        let Some(open) = self.open.get_mut(engine) else { return Err(not_open(engine)) };
        open.gone.extend(gone);
        let attached = open.attach(interface, mac, mtu, mode, socket);
        attached.map_err(|error| match self.steered.come_back(interface) {
            Ok(()) => error,
            Err(other) => format!("{error}; and frames come by the packet socket again: {other}"),
        })
    }

    /// Steers frames to the socket of a port that was opened. Returns what goes with the port.
    pub(super) fn steer(
        &mut self,
        spec: &PortSpec,
        socket: BorrowedFd<'_>,
        poller: &Poller,
    ) -> Result<Beside, String> {
        let engine = match spec {
            PortSpec::Xdp { interface, .. } => {
                self.open.values().find_map(|open| open.port(interface))
            }
            _ => None,
        };
        self.steered.add(spec, socket, engine.map(|(_, port)| port.socket()), poller)
    }

    /// Notes which of the programs that were found bring frames to a port.
    pub(super) fn mark_steering(&self, event: &mut Event) {
        let Event::ProgramAnswered { result: Ok(ProgramReply::Listed { found, .. }), .. } = event
        else {
            return;
        };
        for one in found.iter_mut().filter(|one| matches!(one.hook, HookKind::Xdp(_))) {
            one.steers = self.steered.is_own(one.id);
        }
    }

    /// A port is gone that frames were steered to.
    pub(super) fn lease_over(&mut self, number: u32, poller: &Poller) {
        self.steered.lease_over(number, poller);
    }

    fn known(&self, name: &str) -> Result<Engine, String> {
        let found = self.known.iter().find(|engine| engine.name == name);
        found.cloned().ok_or_else(|| {
            let all: Vec<_> = self.known.iter().map(|engine| engine.name).collect();
            format!(
                "weft has no packet engine `{}`: there is {}",
                name.escape_debug(),
                all.join(", ")
            )
        })
    }

    fn adopt(&mut self, name: &str, kept: Vec<(String, Handle)>) -> Result<EngineReply, String> {
        let engine = self.known(name)?;
        let mut by_name = BTreeMap::new();
        for (part, handle) in kept {
            let foreign = |_| format!("what was kept of the packet engine {name} is no descriptor");
            by_name.insert(part, handle.into_descriptor().map_err(foreign)?);
        }
        let count = engine.tables.len() + 2;
        let tables = (0..count).filter_map(|index| by_name.remove(&table_name(index)));
        let tables: Vec<_> = tables.collect();
        let engine = engine.sized_as(&tables).map_err(text)?;
        let tables = EngineTables::of_descriptors(&engine, tables).map_err(text)?;
        let mut ports = BTreeMap::new();
        for slot in slots() {
            let parts = names(slot).map(|name| by_name.remove(&name));
            let [Some(link), Some(variables), Some(socket)] = parts else { continue };
            // One whose interface has gone is no port any more.
            if let Ok(port) = EnginePort::adopt(&engine, [link, variables, socket]) {
                ports.insert(port.interface(), (slot, port));
            }
        }
        let interfaces = ports.keys().filter_map(|index| interface_name(*index)).collect();
        self.open.insert(engine.name, Open { engine, tables, ports, gone: Vec::new() });
        Ok(EngineReply::Adopted { interfaces })
    }

    /// Takes tables of another process.
    pub(super) fn adopt_tables(
        &mut self,
        token: Token,
        tables: Vec<(MapShape, Handle)>,
    ) -> Result<(), String> {
        let adopted = tables.into_iter().map(|(shape, handle)| {
            let descriptor = handle.into_descriptor();
            let descriptor: OwnedFd = descriptor.map_err(|_| "it is no descriptor".to_owned())?;
            let map = Map::of_descriptor(descriptor, shape).map_err(|error| error.to_string())?;
            MapTable::new(map).map_err(|error| error.to_string())
        });
        let adopted: Result<_, String> = adopted.collect();
        let wrong = |error| format!("a table of a packet engine cannot be used: {error}");
        self.adopted.insert(token, adopted.map_err(wrong)?);
        Ok(())
    }

    /// Writes into adopted tables, in order. Returns the keys of values that did not fit, and their tables.
    pub(super) fn write(
        &self,
        token: Token,
        writes: &[(usize, MapWrite)],
    ) -> Result<Vec<(usize, Vec<u64>)>, String> {
        let mut refused = Vec::new();
        for (index, write) in writes {
            let table = self.adopted.get(&token).and_then(|tables| tables.get(*index));
            let table = table.ok_or_else(|| "there is no such table".to_owned());
            let written = table.and_then(|table| table.write(write).map_err(|e| e.to_string()));
            let wrong =
                |error| format!("table {index} of a packet engine takes no change: {error}");
            if let (false, MapWrite::Set { key, .. }) = (written.map_err(wrong)?, write) {
                refused.push((*index, key.clone()));
            }
        }
        Ok(refused)
    }

    /// What programs have counted in all adopted tables.
    pub(super) fn all_counts(&self) -> BTreeMap<Token, Vec<Vec<u64>>> {
        self.adopted.keys().map(|token| (*token, self.counts(*token))).collect()
    }

    /// What programs have counted in the adopted tables, of each table.
    pub(super) fn counts(&self, token: Token) -> Vec<Vec<u64>> {
        self.adopted
            .get(&token)
            .into_iter()
            .flatten()
            .map(|table| table.sums().unwrap_or_default())
            .collect()
    }
}

impl Open {
    fn kept(&self) -> Result<Vec<(String, Handle)>, String> {
        let all = self.tables.descriptors().enumerate();
        all.map(|(index, table)| Ok((table_name(index), copy(table)?))).collect()
    }

    /// Takes note of what has changed at an interface where it is.
    fn renew(&mut self, interface: &str, mac: [u8; 6], mtu: u32) -> Result<EngineReply, String> {
        let Some((slot, port)) = self.port(interface) else { return Err(not_open(interface)) };
        port.set_mac(mac);
        let egress = Egress { interface: port.interface(), mac, mtu };
        self.tables.set_egress(*slot, Some(egress)).map_err(text)?;
        let (slot, mode, fallback) = (*slot, port.mode(), port.fallback().map(str::to_owned));
        let release = self.forget_lost();
        Ok(EngineReply::Attached { slot, mode, fallback, keep: Vec::new(), release })
    }

    fn attach(
        &mut self,
        interface: &str,
        mac: [u8; 6],
        mtu: u32,
        mode: EngineMode,
        socket: PortSocket,
    ) -> Result<EngineReply, String> {
        let release = self.forget_lost();
        let taken = |slot: &Slot| self.ports.values().any(|(other, _)| other == slot);
        let slot = slots().find(|slot| !taken(slot));
        let slot = slot.ok_or_else(|| "a packet engine has no more than 255 ports".to_owned())?;
        let program = EngineProgram::load(&self.engine, &self.tables, mac, socket);
        let program = program.map_err(text)?;
        let port = program.attach(interface, mode).map_err(text)?;
        let egress = Egress { interface: port.interface(), mac, mtu };
        self.tables.set_egress(slot, Some(egress)).map_err(text)?;
        let parts = names(slot).into_iter().zip(port.descriptors());
        let keep =
            parts.map(|(name, part)| Ok((name, copy(part)?))).collect::<Result<_, String>>()?;
        let (mode, fallback) = (port.mode(), port.fallback().map(str::to_owned));
        self.ports.insert(port.interface(), (slot, port));
        Ok(EngineReply::Attached { slot, mode, fallback, keep, release })
    }

    /// Returns what was kept of the port there, if there was one.
    fn detach(&mut self, interface: &str) -> Result<Vec<String>, String> {
        let found = self.find(interface).and_then(|index| self.ports.remove(&index));
        let Some((slot, port)) = found else { return Ok(Vec::new()) };
        self.tables.set_egress(slot, None).map_err(text)?;
        port.detach().map_err(text)?;
        Ok(names(slot).into())
    }

    /// Forgets ports whose interfaces are gone; returns what was kept of them.
    fn forget_lost(&mut self) -> Vec<String> {
        let mut gone = std::mem::take(&mut self.gone);
        let lost = self.ports.extract_if(.., |index, _| interface_name(*index).is_none());
        gone.extend(lost.flat_map(|(_, (slot, _))| names(slot)));
        gone
    }

    /// The port at an interface.
    fn port(&self, interface: &str) -> Option<&(Slot, EnginePort)> {
        self.find(interface).and_then(|index| self.ports.get(&index))
    }

    /// The port at an interface, by the interface's number.
    fn find(&self, interface: &str) -> Option<u32> {
        self.ports
            .keys()
            .copied()
            .find(|index| interface_name(*index).as_deref() == Some(interface))
    }
}

/// The ports that an engine can have.
fn slots() -> impl Iterator<Item = Slot> {
    (1..MOST_PORTS).filter_map(NonZeroU16::new).map(Slot)
}

/// The name under which a table is kept, by its place among the descriptors.
fn table_name(index: usize) -> String {
    format!("t{index}")
}

/// The names under which a port's link, its program's variables and the place of its socket are kept.
fn names(slot: Slot) -> [String; 3] {
    ["link", "vars", "socket"].map(|part| format!("p{}-{part}", slot.0))
}

fn not_open(engine: &str) -> String {
    format!("the packet engine `{}` is not open", engine.escape_debug())
}

fn text(error: weft_ebpf::ProgramError) -> String {
    error.to_string()
}

fn copy(descriptor: BorrowedFd<'_>) -> Result<Handle, String> {
    let copy = descriptor.try_clone_to_owned().map(Handle::from);
    copy.map_err(|error| format!("a descriptor of a packet engine cannot be copied: {error}"))
}
