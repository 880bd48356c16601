//! The portable engine of a router, on packet ports of the same cables: the driver that nodes run on, and in it
//! nothing but the forwarder. Its ports are those of AF_XDP, also where the kernel's engine is before it.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::process::Pid;
use rustix::thread::gettid;
use weft_base::{Handle, Instant, Packet, Token};
use weft_ebpf::PortSocket;
use weft_port::PortSpec;
use weft_runtime::{Action, Component, Event, real};
use weft_wire::ETHERNET_HEADER_LEN;
use weft_xip::forward::{Forwarder, Verdict};
use weft_xip::numbers::ETHERTYPE_XIP;
use weft_xip::{Xid, XidType};

use super::super::xip_engine::world::Names;
use super::changes::{Changes, Clock, STEP};
use super::kernel::Attached;
use super::network::{Network, Side};
use super::threads::{Processors, Work};

/// A router, while nobody runs it.
pub(super) struct Portable {
    router: Arc<Mutex<Router>>,
}

/// By which sockets packets come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sockets {
    Packet,
    Xdp,
}

/// While there is one, the portable engine forwards XIP.
pub(super) struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u8>>,
    /// The thread that forwards.
    pub(super) id: Pid,
    router: Arc<Mutex<Router>>,
}

struct Router {
    forwarder: Forwarder,
    domains: Vec<Xid>,
    neighbours: Vec<Xid>,
    changes: Changes,
    /// How fast routes change.
    clock: Clock,
}

impl Portable {
    /// A router that knows these names; `ports` are the numbers of the ports that the domains are behind.
    pub(super) fn new(forwarder: Forwarder, names: &Names, ports: &[usize]) -> Self {
        let count = names.neighbours.len();
        let router = Router {
            forwarder,
            domains: names.domains.clone(),
            neighbours: names.neighbours.clone(),
            changes: Changes::new(ports.to_vec(), count),
            clock: Clock::new(0),
        };
        Self { router: Arc::new(Mutex::new(router)) }
    }

    /// Lets it forward on all ports, which take what `before` passes on if that is there, and so many of its routes
    /// change each second.
    pub(super) fn run(
        &self,
        network: &Network,
        processors: Processors,
        sockets: Sockets,
        before: Option<&Attached>,
        updates: u32,
    ) -> Result<Running, String> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopping, router) = (Arc::clone(&stop), Arc::clone(&self.router));
        let spec = |interface| match sockets {
            Sockets::Packet => PortSpec::Ethernet { interface, ethertype: ETHERTYPE_XIP },
            Sockets::Xdp => PortSpec::Xdp { interface, ethertype: ETHERTYPE_XIP },
        };
        let interfaces = (0..network.ports()).map(|port| network.interface(Side::Router, port));
        let ports: Vec<_> = interfaces.map(spec).collect();
        let opening = network.inside(Side::Router, || match before {
            Some(engine) => adoptions(ports, engine),
            None => Ok(ports
                .into_iter()
                .zip(TOKENS)
                .map(|(spec, token)| opening(token, spec))
                .collect()),
        })?;
        let missing = opening.len();
        let (sender, started) = mpsc::channel();
        let thread = network.inside(Side::Router, || {
            let run = move || {
                // From here on it is this thread's namespace, too.
                processors.take_place(Work::Router);
                router.lock().unwrap_or_else(PoisonError::into_inner).clock = Clock::new(updates);
                let started = Started { sender, missing };
                let process =
                    Forwarding { router, stop: stopping, opening, started, now: Instant::ZERO };
                let options = real::Options { signals: false, ..real::Options::default() };
                real::run(Box::new(process), options)
            };
            let thread = thread::Builder::new().name("weft-router".to_owned()).spawn(run);
            thread.map_err(|error| format!("no thread for the router: {error}"))
        })?;
        let id = wait(&started)?;
        Ok(Running { stop, thread: Some(thread), id, router: Arc::clone(&self.router) })
    }
}

/// The forwarder's ports are numbered from 1 in their order, and so are the driver's.
const TOKENS: std::ops::RangeFrom<u32> = 1..;

/// What opens a port.
fn opening(token: u32, spec: PortSpec) -> Action {
    Action::OpenPort { token: Token(token), spec }
}

/// What makes the driver adopt ports of AF_XDP, which get what an engine passes on.
fn adoptions(ports: Vec<PortSpec>, engine: &Attached) -> Result<Vec<Action>, String> {
    let adoption = |((spec, place), token): ((PortSpec, &PortSocket), u32)| {
        let options = weft_port::Options::default();
        let (descriptors, info) =
            weft_port::open_descriptors(&spec, &options).map_err(|error| error.to_string())?;
        place.set(descriptors[0].as_fd()).map_err(|error| error.to_string())?;
        let handles = descriptors.into_iter().map(Handle::from).collect();
        Ok(Action::AdoptPort { token: Token(token), spec, handles, info })
    };
    ports.into_iter().zip(engine.sockets()).zip(TOKENS).map(adoption).collect()
}

/// Waits until all ports are open.
fn wait(started: &Receiver<Result<Pid, String>>) -> Result<Pid, String> {
    started.recv().map_err(|_| "the router ended before it began".to_owned())?
}

impl Running {
    /// Routes that changed each second.
    pub(super) fn updates(&self) -> f64 {
        self.router.lock().unwrap_or_else(PoisonError::into_inner).clock.achieved()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A router that has failed has said so.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Whom to tell when all ports are open, or why one is not.
struct Started {
    sender: mpsc::Sender<Result<Pid, String>>,
    missing: usize,
}

/// The process: frames in, frames out.
struct Forwarding {
    router: Arc<Mutex<Router>>,
    stop: Arc<AtomicBool>,
    /// What opens the ports.
    opening: Vec<Action>,
    started: Started,
    now: Instant,
}

impl Component for Forwarding {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => out.append(&mut self.opening),
            Event::PortOpened { token, port, .. } => {
                debug_assert_eq!(token.0, port.0, "ports are numbered in order");
                self.started.missing -= 1;
                if self.started.missing == 0 {
                    // Nobody who waits has gone.
                    let _ = self.started.sender.send(Ok(gettid()));
                }
            }
            Event::PortFailed { error, .. } | Event::PortLost { error, .. } => {
                let _ = self.started.sender.send(Err(error));
                out.push(Action::Exit { status: 1 });
            }
            Event::Packets { packets, .. } => {
                let mut router = self.router.lock().unwrap_or_else(PoisonError::into_inner);
                router.forward(now, packets, out);
            }
            Event::Tick => {
                self.now = now;
                self.router.lock().unwrap_or_else(PoisonError::into_inner).change();
                if self.stop.load(Ordering::Relaxed) {
                    out.push(Action::Exit { status: 0 });
                }
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.now + STEP)
    }
}

impl Router {
    /// As the stack of a node does it.
    fn forward(&mut self, now: Instant, mut frames: Vec<Packet>, out: &mut Vec<Action>) {
        frames.retain_mut(|frame| frame.pull_front(ETHERNET_HEADER_LEN));
        let mut verdicts = Vec::with_capacity(frames.len());
        self.forwarder.route_batch(now, &mut frames, &mut verdicts);
        out.extend(verdicts.into_iter().filter_map(|verdict| match verdict {
            Verdict::Transmit { port, packet } => Some(Action::Transmit { port, packet }),
            Verdict::Deliver { .. } => None,
        }));
    }

    /// Makes the changes that are due.
    fn change(&mut self) {
        let Some(mut ad) = self.forwarder.principal_mut(XidType::AD) else { return };
        for _ in 0..self.clock.due() {
            let (domain, neighbour) = self.changes.next();
            // The gateway is another one each time, and no domain is local.
            let _ = ad.redirect(self.domains[domain], &[self.neighbours[neighbour]]);
        }
    }
}
