//! A router with its portable engine on packet ports of the same cables: the driver that nodes run on, and in it
//! nothing but the forwarder. Its ports are those of AF_XDP, also where the kernel's engine is before it.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::process::Pid;
use rustix::thread::gettid;
use weft_base::{Handle, Instant, Token};
use weft_ebpf::PortSocket;
use weft_port::PortSpec;
use weft_runtime::{Action, Component, Event, real};
use weft_xip::forward::Forwarder;
use weft_xip::numbers::ETHERTYPE_XIP;

use super::changes::{Clock, STEP};
use super::engine::Attached;
use super::network::{Network, Side};
use super::router::Router;
use super::threads::{Processors, Work};

/// A router, while nobody runs it.
pub(in crate::bench) struct Portable {
    shared: Arc<Mutex<Shared>>,
}

/// By which sockets packets come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bench) enum Sockets {
    Packet,
    Xdp,
}

/// While there is one, the portable engine forwards XIP.
pub(in crate::bench) struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u8>>,
    /// The thread that forwards.
    pub(in crate::bench) id: Pid,
    shared: Arc<Mutex<Shared>>,
}

/// What the thread that forwards has, while there is one.
struct Shared {
    router: Router,
    /// How fast routes change.
    clock: Clock,
    /// Why the router has ended by itself.
    failure: Option<String>,
}

impl Portable {
    pub(in crate::bench) fn new(router: Router) -> Self {
        let shared = Shared { router, clock: Clock::new(0), failure: None };
        Self { shared: Arc::new(Mutex::new(shared)) }
    }

    /// Lets the kernel forward, if the router has an engine there.
    pub(in crate::bench) fn attach(&self, network: &Network) -> Result<Option<Attached>, String> {
        lock(&self.shared).router.attach(network)
    }

    /// Looks at what decides.
    pub(in crate::bench) fn look<T>(&self, look: impl FnOnce(&Forwarder) -> T) -> T {
        look(lock(&self.shared).router.forwarder())
    }

    /// Lets it forward on all ports, which take what `before` passes on if that is there, and so many of its routes
    /// change each second.
    pub(in crate::bench) fn run(
        &self,
        network: &Network,
        processors: Processors,
        sockets: Sockets,
        before: Option<&Attached>,
        updates: u32,
    ) -> Result<Running, String> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopping, shared) = (Arc::clone(&stop), Arc::clone(&self.shared));
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
                lock(&shared).clock = Clock::new(updates);
                let started = Started { sender, missing };
                let process =
                    Forwarding { shared, stop: stopping, opening, started, now: Instant::ZERO };
                let options = real::Options { signals: false, ..real::Options::default() };
                real::run(Box::new(process), options)
            };
            let thread = thread::Builder::new().name("weft-router".to_owned()).spawn(run);
            thread.map_err(|error| format!("no thread for the router: {error}"))
        })?;
        let id = wait(&started)?;
        Ok(Running { stop, thread: Some(thread), id, shared: Arc::clone(&self.shared) })
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
    /// Ends it; how many routes changed each second.
    ///
    /// # Errors
    /// The router has ended before.
    pub(in crate::bench) fn end(self) -> Result<f64, String> {
        let shared = lock(&self.shared);
        match &shared.failure {
            Some(error) => Err(format!("the router has ended: {error}")),
            None => Ok(shared.clock.achieved()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // It cannot panic.
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
    shared: Arc<Mutex<Shared>>,
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
                let _ = self.started.sender.send(Err(error.clone()));
                self.fail(error, out);
            }
            Event::Packets { packets, .. } => {
                let done = lock(&self.shared).router.forward(now, packets, out);
                done.unwrap_or_else(|error| self.fail(error, out));
            }
            Event::Tick => {
                self.now = now;
                let done = lock(&self.shared).change();
                done.unwrap_or_else(|error| self.fail(error, out));
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

impl Forwarding {
    /// A router that does not do all that it shall is not worth measuring.
    fn fail(&self, error: String, out: &mut Vec<Action>) {
        lock(&self.shared).failure = Some(error);
        out.push(Action::Exit { status: 1 });
    }
}

impl Shared {
    /// Makes the changes that are due.
    fn change(&mut self) -> Result<(), String> {
        let due = self.clock.due();
        self.router.change(due)
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
