//! User-space links: a process that moves frames between pairs of interfaces, and treats them as the
//! link's model says.
//!
//! The way of a frame: interface → port → `LinkModel` of its direction → agenda → port → interface.

pub(crate) mod config;
mod wire;

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::io::Errno;
use weft_base::{Counters, Instant, Packet, Random, Reason};
use weft_port::{Options, Port, PortSpec};

use crate::LabError;
use config::Config;
use wire::Wire;

/// Frames of every EtherType (`ETH_P_ALL` of packet(7)).
const ALL_FRAMES: u16 = 3;
/// Frames taken from one port before the next one has its turn.
const BATCH: usize = 64;
/// Frames that wait for an interface that takes no more; those beyond are dropped.
const LONGEST_QUEUE: usize = 4096;

/// Joins the interfaces that the file `config` names, until the process is ended. Changes of the file
/// are taken up at once.
///
/// A program that embeds the lab calls this for the arguments of
/// [`Host::link_arguments`](crate::Host::link_arguments) followed by the file.
///
/// # Errors
/// The file cannot be read, or an interface cannot be used.
pub fn run_links(config: &Path) -> Result<(), LabError> {
    let directory = config.parent().unwrap_or(Path::new("/"));
    let changes = watch(directory).map_err(LabError::disk("watch", directory))?;
    let mut joiner = Joiner::open(&Config::read(config)?)?;
    loop {
        joiner.wait(&changes).map_err(LabError::system("wait for frames"))?;
        if drain(&changes) {
            joiner.change(&Config::read(config)?);
        }
        joiner.turn();
    }
}

/// Readable when a file in the directory was replaced.
fn watch(directory: &Path) -> io::Result<OwnedFd> {
    let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
    let changes = inotify::init(flags)?;
    inotify::add_watch(&changes, directory, inotify::WatchFlags::MOVED_TO)?;
    Ok(changes)
}

/// Takes all events; whether there were any.
fn drain(changes: &OwnedFd) -> bool {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(changes, &mut buffer);
    let mut any = false;
    while reader.next().is_ok() {
        any = true;
    }
    any
}

weft_base::reasons! {
    /// What is dropped besides what the links' models drop.
    enum JoinerDrop {
        WireFull = "wire-full", "more frames were on their way than are kept";
        InterfaceFull = "interface-full", "an interface did not take frames as fast as they arrived";
        EndGone = "end-gone", "the interface at the other end does not exist any more";
    }
}

/// One end of a link.
struct End {
    /// `None` when its interface is gone.
    port: Option<Box<dyn Port>>,
    /// What waits to be sent out of it.
    queue: VecDeque<Packet>,
}

/// All links with their ends. End `2 n` and end `2 n + 1` are those of link `n`.
struct Joiner {
    ends: Vec<End>,
    /// Wire `n` carries what comes in at end `n`.
    wires: Vec<Wire>,
    generation: u64,
    origin: time::Instant,
    batch: Vec<Packet>,
    drops: Counters<JoinerDrop>,
}

impl Joiner {
    fn open(config: &Config) -> Result<Self, LabError> {
        let (mut ends, mut wires) = (Vec::new(), Vec::new());
        for link in &config.links {
            for (interface, seed) in &link.ends {
                let port = open(interface).map_err(LabError::system("join a link"))?;
                ends.push(End { port: Some(port), queue: VecDeque::new() });
                wires.push(Wire::new(link.model(), &Random::from_seed(*seed)));
            }
        }
        println!("{}", config.report());
        let generation = config.generation;
        let (origin, batch, drops) = (time::Instant::now(), Vec::new(), Counters::new());
        Ok(Self { ends, wires, generation, origin, batch, drops })
    }

    /// Changes the properties of the links; the links themselves stay the same.
    fn change(&mut self, config: &Config) {
        if config.generation == self.generation {
            return;
        }
        for (link, wires) in config.links.iter().zip(self.wires.chunks_exact_mut(2)) {
            wires.iter_mut().for_each(|wire| wire.set(link.model(), link.cut));
        }
        self.generation = config.generation;
        println!("{}", config.report());
    }

    fn now(&self) -> Instant {
        let nanos = self.origin.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Waits until something is to be done.
    fn wait(&self, changes: &OwnedFd) -> io::Result<()> {
        let mut fds = vec![PollFd::from_borrowed_fd(changes.as_fd(), PollFlags::IN)];
        for end in &self.ends {
            let wanted =
                if end.queue.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
            let port = end.port.as_ref();
            fds.extend(port.map(|port| PollFd::from_borrowed_fd(port.fd(), wanted)));
        }
        let next = self.wires.iter().filter_map(Wire::next).min();
        let timeout = next.map(|next| {
            let left = next.since(self.now());
            let tv_sec = i64::try_from(left.as_secs()).unwrap_or(i64::MAX);
            Timespec { tv_sec, tv_nsec: left.subsec_nanos().into() }
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes one batch in at each end, and sends out what is due.
    fn turn(&mut self) {
        for index in 0..self.ends.len() {
            let now = self.now();
            self.receive(index, now);
        }
        for index in 0..self.ends.len() {
            let now = self.now();
            self.deliver(index, now);
        }
    }

    fn receive(&mut self, index: usize, now: Instant) {
        let Some(port) = &mut self.ends[index].port else { return };
        let result = port.receive(&mut self.batch, BATCH);
        let mut refused = 0;
        for packet in self.batch.drain(..) {
            refused += u64::from(!self.wires[index].offer(now, packet));
        }
        self.dropped(JoinerDrop::WireFull, refused);
        if let Err(lost) = result {
            self.lose(index, &lost.to_string());
        }
    }

    /// Hands what has arrived on wire `index` to the end across.
    fn deliver(&mut self, index: usize, now: Instant) {
        let across = index ^ 1;
        let end = &mut self.ends[across];
        let mut dropped = 0;
        while let Some(packet) = self.wires[index].take(now) {
            if end.port.is_some() && end.queue.len() < LONGEST_QUEUE {
                end.queue.push_back(packet);
            } else {
                dropped += 1;
            }
        }
        let Some(port) = &mut end.port else { return self.dropped(JoinerDrop::EndGone, dropped) };
        let lost = port.transmit(&mut end.queue).err();
        self.dropped(JoinerDrop::InterfaceFull, dropped);
        if let Some(lost) = lost {
            self.lose(across, &lost.to_string());
        }
    }

    /// Counts what was dropped, and says so when the number doubles.
    fn dropped(&mut self, reason: JoinerDrop, frames: u64) {
        let before = self.drops.get(reason);
        self.drops.add(reason, frames);
        let now = before + frames;
        if now.checked_ilog2() > before.checked_ilog2() {
            eprintln!("{now} frames dropped so far ({}): {}", reason.name(), reason.help());
        }
    }

    fn lose(&mut self, index: usize, why: &str) {
        eprintln!("a link lost one of its ends: {why}");
        self.ends[index].port = None;
        self.ends[index].queue.clear();
    }
}

fn open(interface: &str) -> Result<Box<dyn Port>, weft_port::OpenError> {
    let spec = PortSpec::Ethernet { interface: interface.to_owned(), ethertype: ALL_FRAMES };
    // The near ends shape nothing, so that queueing disciplines are not missed.
    let options = Options { promiscuous: true, qdisc_bypass: true, ..Options::default() };
    weft_port::open(&spec, &options)
}
