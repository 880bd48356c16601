//! What brings the frames of AF_XDP ports to their sockets: a program at XDP of their own, or the one of a packet
//! engine where that is attached to the same interface, which has room for one.
//!
//! A port may be another process's: whoever opens one gets a lease beside it, the writing end of a pipe. When it
//! is closed, the port is gone, however that came about, and so is its program.
//!
//! Reference: Linux kernel, Documentation/networking/af_xdp.rst.

use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use weft_ebpf::{PortSocket, Steering};
use weft_port::PortSpec;

use super::poller::{Interest, Poller, Source};

/// The ports that there are.
#[derive(Default)]
pub(super) struct Steered {
    /// By numbers of their own.
    ports: BTreeMap<u32, Port>,
    last: u32,
}

struct Port {
    interface: String,
    ethertype: u16,
    socket: PortSocket,
    /// `None` where an engine does it.
    steering: Option<Steering>,
    /// Hangs up when the port is gone.
    lease: OwnedFd,
}

/// What goes with a port: descriptors that are closed with it.
pub(super) type Beside = Vec<OwnedFd>;

impl Steered {
    /// Steers frames to the socket of a port that was opened; `engine` is where the engine at its interface looks
    /// for a socket. Nothing if the port needs none of it.
    pub(super) fn add(
        &mut self,
        spec: &PortSpec,
        socket: BorrowedFd<'_>,
        engine: Option<&PortSocket>,
        poller: &Poller,
    ) -> Result<Beside, String> {
        let PortSpec::Xdp { interface, ethertype } = spec else { return Ok(Vec::new()) };
        let failed = |error: String| format!("opening {spec} failed: {error}");
        let text = |error: weft_ebpf::ProgramError| failed(error.to_string());
        let system = |error: std::io::Error| failed(error.to_string());
        // A port that is gone, and has not been noticed yet, must not be in the way.
        let over = |port: &Port| port.interface == *interface && is_over(&port.lease);
        let over: Vec<_> =
            self.ports.iter().filter(|(_, port)| over(port)).map(|(number, _)| *number).collect();
        over.into_iter().for_each(|number| self.lease_over(number, poller));
        let place = match engine {
            Some(place) => place.try_clone().map_err(system)?,
            None => PortSocket::none().map_err(text)?,
        };
        place.set(socket).map_err(text)?;
        let steering = match engine {
            Some(_) => None,
            None => Some(Steering::attach(interface, *ethertype, &place).map_err(text)?),
        };
        let (lease, given) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| system(error.into()))?;
        let mut beside = vec![given];
        // Should this process end before the one that has the port, its program stays.
        if let Some(steering) = &steering {
            beside.push(steering.descriptor().try_clone_to_owned().map_err(system)?);
        }
        self.last += 1;
        let waiting = poller.add(&lease, Source::Lease(self.last), Interest::Read);
        waiting.map_err(|error| system(error.into()))?;
        let (interface, ethertype) = (interface.clone(), *ethertype);
        let port = Port { interface, ethertype, socket: place, steering, lease };
        self.ports.insert(self.last, port);
        Ok(beside)
    }

    /// The lease with this number is over.
    pub(super) fn lease_over(&mut self, number: u32, poller: &Poller) {
        if let Some(port) = self.ports.remove(&number) {
            poller.remove(&port.lease);
        }
    }

    /// Makes room for an engine at an interface: where it shall look for a socket, if there is a port.
    pub(super) fn give_way(&mut self, interface: &str) -> Result<PortSocket, String> {
        let Some(port) = self.at(interface) else {
            return PortSocket::none().map_err(|error| error.to_string());
        };
        if let Some(steering) = port.steering.take() {
            steering.detach().map_err(|error| error.to_string())?;
        }
        port.socket.try_clone().map_err(|error| error.to_string())
    }

    /// There is no engine at an interface any more. What a port cannot get otherwise comes by its packet socket.
    pub(super) fn come_back(&mut self, interface: &str) -> Result<(), String> {
        let Some(port) = self.at(interface).filter(|port| port.steering.is_none()) else {
            return Ok(());
        };
        let steering = Steering::attach(&port.interface, port.ethertype, &port.socket);
        port.steering = Some(steering.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Whether a program is one that brings frames to a port.
    pub(super) fn is_own(&self, program: u32) -> bool {
        let mut steering = self.ports.values().filter_map(|port| port.steering.as_ref());
        steering.any(|steering| steering.program() == Some(program))
    }

    /// The port at an interface that there is; the latest, if earlier ones are not over yet.
    fn at(&mut self, interface: &str) -> Option<&mut Port> {
        self.ports.values_mut().rev().find(|port| port.interface == interface)
    }
}

/// Whether nobody has the other end of a lease any more.
fn is_over(lease: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(lease, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok() && polled[0].revents().contains(PollFlags::HUP)
}
