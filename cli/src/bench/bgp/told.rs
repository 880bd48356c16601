//! What the kernel tells of its routes: how many there are, and when each change was made.
//!
//! A program in the kernel counts the messages that rtnetlink sends to whoever listens, and notes the times
//! (`told.bpf.c`). So nobody is woken for a change, no table is walked, and the times are those of the change
//! itself. It costs each change a copy of the message's header and the program's run, some 0.2 µs, for all
//! routers alike.
//!
//! Reference: rtnetlink(7); bpf(2).

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use weft_ebpf::{
    LoadedProgram, Map, MapKind, MapShape, Memory, ProgramError, ProgramType, attach_filter,
    embedded,
};

use super::Time;
use super::table::MOST_PROBES;

const OBJECT: Result<&[u8], ProgramError> = embedded!("told");

// The words; told.bpf.c has the same.
const ADDED: usize = 0;
const REPLACED: usize = 1;
const DELETED: usize = 2;
const PRESENT: usize = 3;
const WANTED: usize = 4;
const REACHED: usize = 5;
const LAST: usize = 6;
const FIRST_PROBE: usize = 8;
const WORDS: usize = FIRST_PROBE + 2 * MOST_PROBES;

/// `RTMGRP_IPV4_ROUTE` (linux/rtnetlink.h).
const IPV4_ROUTES: u32 = 1 << 6;
/// How often one looks at a word.
const GLANCE: Duration = Duration::from_millis(1);

/// The listener of a network namespace.
pub(super) struct Told {
    _socket: OwnedFd,
    words: Memory,
}

/// How many changes there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operations {
    pub(super) added: u64,
    pub(super) replaced: u64,
    pub(super) deleted: u64,
}

impl Operations {
    pub(super) fn sum(self) -> u64 {
        self.added + self.replaced + self.deleted
    }

    pub(super) fn since(self, before: Self) -> Self {
        Self {
            added: self.added - before.added,
            replaced: self.replaced - before.replaced,
            deleted: self.deleted - before.deleted,
        }
    }
}

impl Told {
    /// Listens in the network namespace that the calling thread is in. Routes that are there already do not count.
    pub(super) fn new() -> Result<Self, String> {
        let size = (WORDS * size_of::<u64>()) as u32;
        let map = Map::create("weft_told", MapShape::numbered(MapKind::Array, size, 1));
        let map = map.map_err(|error| format!("the kernel makes no map: {error}"))?;
        let object = OBJECT.map_err(|error| error.to_string())?;
        let maps = [("told", &map)];
        let program = LoadedProgram::load(object, "weft_told", ProgramType::SocketFilter, &maps);
        let program = program.map_err(|error| error.to_string())?;
        let listen = || -> std::io::Result<OwnedFd> {
            let kind = SocketType::RAW;
            // The protocol 0: NETLINK_ROUTE.
            let socket = socket_with(AddressFamily::NETLINK, kind, SocketFlags::CLOEXEC, None)?;
            attach_filter(&socket, &program)?;
            bind(&socket, &SocketAddrNetlink::new(0, IPV4_ROUTES))?;
            Ok(socket)
        };
        let socket =
            listen().map_err(|error| format!("the kernel does not tell of routes: {error}"))?;
        let words = map.memory().map_err(|error| format!("a map cannot be read: {error}"))?;
        words.words()[WANTED].store(u64::MAX, Ordering::Relaxed);
        Ok(Self { _socket: socket, words })
    }

    fn word(&self, place: usize) -> u64 {
        self.words.words()[place].load(Ordering::Relaxed)
    }

    fn time(&self, place: usize) -> Option<Time> {
        Some(self.word(place)).filter(|time| *time > 0).map(Time)
    }

    /// How many routes have come and not gone, probes excepted.
    pub(super) fn present(&self) -> u64 {
        self.word(PRESENT)
    }

    /// When a route last came or went.
    pub(super) fn last(&self) -> Option<Time> {
        self.time(LAST)
    }

    pub(super) fn operations(&self) -> Operations {
        Operations {
            added: self.word(ADDED),
            replaced: self.word(REPLACED),
            deleted: self.word(DELETED),
        }
    }

    /// Says how many routes are waited for. To be said before what brings them begins.
    pub(super) fn want(&self, count: u64) {
        self.words.words()[REACHED].store(0, Ordering::Relaxed);
        self.words.words()[WANTED].store(count, Ordering::Relaxed);
    }

    /// Waits until as many routes are there as were wanted; when that was so the last time.
    pub(super) fn wait(&self, patience: Duration) -> Result<Time, String> {
        let wanted = self.word(WANTED);
        let reached = || (self.present() == wanted).then(|| self.time(REACHED)).flatten();
        wait_until(patience, reached).ok_or_else(|| {
            let seconds = patience.as_secs();
            format!("the kernel has {} of {wanted} routes after {seconds} s", self.present())
        })
    }

    /// When the route of a probe came, if it did.
    fn came(&self, probe: usize) -> Option<Time> {
        self.time(FIRST_PROBE + 2 * probe)
    }

    /// When it went.
    fn went(&self, probe: usize) -> Option<Time> {
        self.time(FIRST_PROBE + 2 * probe + 1)
    }

    /// Waits until the route of a probe has come; when.
    pub(super) fn wait_for(&self, probe: usize, patience: Duration) -> Result<Time, String> {
        wait_until(patience, || self.came(probe)).ok_or_else(|| {
            format!("the kernel has no route of probe {probe} after {} s", patience.as_secs())
        })
    }

    /// Waits until it has gone; when.
    pub(super) fn wait_for_withdrawal(
        &self,
        probe: usize,
        patience: Duration,
    ) -> Result<Time, String> {
        wait_until(patience, || self.went(probe)).ok_or_else(|| {
            format!("the kernel has the route of probe {probe} after {} s", patience.as_secs())
        })
    }
}

fn wait_until<T>(patience: Duration, mut found: impl FnMut() -> Option<T>) -> Option<T> {
    let until = Instant::now() + patience;
    loop {
        let found = found();
        if found.is_some() || Instant::now() > until {
            return found;
        }
        thread::sleep(GLANCE);
    }
}
