//! What stands for descriptors of ports: one process opens a port for another, which adopts it.
//!
//! A handle is a number, behind which the world keeps what was opened. Opening one checks that the port
//! can be opened now, and chooses a UDP port if that is left open; only adopting it opens the port, so
//! packets that come in between are not kept, and an address is not reserved. A handle is for one port
//! of a process on the same node.

use std::collections::BTreeMap;

use weft_base::{Handle, PortId, Token};
use weft_port::{PortInfo, PortSpec};

use super::ids::{NodeId, ProcessId};
use super::process::Waiting;
use super::world::World;
use crate::Event;

/// The handles of a world that nobody has adopted.
#[derive(Debug, Default)]
pub(super) struct Handles {
    given: u64,
    open: BTreeMap<u64, Opened>,
}

/// What a handle stands for.
#[derive(Debug)]
struct Opened {
    node: NodeId,
    spec: PortSpec,
    info: PortInfo,
}

impl Handles {
    /// A number that stands for nothing yet.
    pub(super) fn number(&mut self) -> u64 {
        self.given += 1;
        self.given
    }
}

impl World {
    pub(super) fn open_handles(&mut self, process: ProcessId, token: Token, spec: &PortSpec) {
        let event = match self.try_open(process, spec) {
            Ok((port, info)) => {
                // It could be opened; whoever adopts the handle does so.
                self.close_port(process, port);
                let number = self.handles.number();
                let node = self.processes[process.index()].node;
                self.handles.open.insert(number, Opened { node, spec: spec.clone(), info });
                Event::HandlesOpened { token, handles: vec![Handle::from_number(number)], info }
            }
            Err(error) => Event::PortFailed { token, error },
        };
        self.post(process, Waiting::Event(event));
    }

    pub(super) fn adopt_port(
        &mut self,
        process: ProcessId,
        token: Token,
        spec: &PortSpec,
        handles: &[Handle],
        info: PortInfo,
    ) {
        let event = match self.try_adopt(process, spec, handles, info) {
            Ok((port, info)) => Event::PortOpened { token, port, info },
            Err(error) => Event::PortFailed { token, error },
        };
        self.post(process, Waiting::Event(event));
    }

    fn try_adopt(
        &mut self,
        process: ProcessId,
        spec: &PortSpec,
        handles: &[Handle],
        info: PortInfo,
    ) -> Result<(PortId, PortInfo), String> {
        let node = self.processes[process.index()].node;
        let opened = handles
            .first()
            .and_then(Handle::number)
            .and_then(|number| self.handles.open.remove(&number));
        let opened = opened.filter(|opened| opened.node == node).ok_or_else(|| {
            format!("{handles:?} stands for no port of this node that is still to be adopted")
        })?;
        if opened.spec != *spec || opened.info != info {
            return Err(format!(
                "the descriptor that was handed over is not {spec}: it is {}; ask for another one",
                opened.spec
            ));
        }
        match (spec, info.local) {
            (PortSpec::Udp { .. }, Some(local)) => self.try_open(process, &PortSpec::Udp { local }),
            _ => self.try_open(process, spec),
        }
    }
}
