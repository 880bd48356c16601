//! Waiting for descriptors, until a deadline with the resolution of the clock.
//!
//! Level-triggered epoll: what was not served in one turn is reported again in the next, and the
//! kernel moves what it reported to the end of its list, so that a full list starves nobody.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::{Errno, Result};
use weft_base::{ChannelId, FileId, PortId};

/// How many sources are reported per turn.
const READY_PER_TURN: usize = 256;

/// Who owns a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The pipe of the signal with this number.
    Signal(u32),
    Port(PortId),
    /// A listener, by the driver's own number.
    Listener(u32),
    Channel(ChannelId),
    /// What tells that a channel has room again, where that is a descriptor of its own.
    Room(ChannelId),
    Stream(FileId),
    /// What the kernel tells of interfaces.
    Interfaces,
    /// What it answers to changes of interfaces.
    Configuration,
    /// What it tells of routes and neighbours of IP.
    Ip,
    /// The lease of a port, by a number of its own.
    Lease(u32),
    /// What the kernel tells of routes that it was asked for, by a number of its own.
    Routes(u32),
    /// What it tells of routes that others delete.
    DeletedRoutes,
}

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interest {
    Read,
    Write,
    Both,
}

/// A source that is ready. Errors and hang-ups count as both: the next call on the descriptor tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) source: Source,
    pub(super) readable: bool,
    pub(super) writable: bool,
}

pub(super) struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Poller {
    /// A poller that waits for nothing yet. Makes the calling thread's timers exact.
    pub(super) fn new() -> Result<Self> {
        // The kernel would otherwise round deadlines by 50 microseconds to save wake-ups. Where
        // this is refused, deadlines are that much later.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: Vec::with_capacity(READY_PER_TURN) })
    }

    /// Starts to wait for `fd`. `PERM` means that it is always ready (a regular file).
    pub(super) fn add(&self, fd: impl AsFd, source: Source, interest: Interest) -> Result<()> {
        epoll::add(&self.epoll, fd, data(source), flags(interest))
    }

    /// Waits for something else of `fd`.
    pub(super) fn modify(&self, fd: impl AsFd, source: Source, interest: Interest) -> Result<()> {
        epoll::modify(&self.epoll, fd, data(source), flags(interest))
    }

    /// Waits for `fd` no longer. Call it before the descriptor is closed.
    pub(super) fn remove(&self, fd: impl AsFd) {
        // It fails only if the descriptor is not waited for, which is what is wanted.
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Waits until something is ready or `timeout` (`None`: forever) has passed, and appends what
    /// is ready to `ready`. A signal ends the wait early.
    pub(super) fn wait(&mut self, timeout: Option<Duration>, ready: &mut Vec<Ready>) -> Result<()> {
        self.events.clear();
        // A timeout beyond what the kernel can express is as good as none.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref()) {
            Ok(_) => ready.extend(self.events.iter().filter_map(decode)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn flags(interest: Interest) -> epoll::EventFlags {
    match interest {
        Interest::Read => epoll::EventFlags::IN,
        Interest::Write => epoll::EventFlags::OUT,
        Interest::Both => epoll::EventFlags::IN | epoll::EventFlags::OUT,
    }
}

/// A source as the number that epoll keeps: its kind in the upper half, its id in the lower.
fn data(source: Source) -> epoll::EventData {
    let (kind, id) = match source {
        Source::Signal(number) => (0, number),
        Source::Port(port) => (1, port.0),
        Source::Listener(number) => (2, number),
        Source::Channel(channel) => (3, channel.0),
        Source::Stream(file) => (4, file.0),
        Source::Interfaces => (5, 0),
        Source::Configuration => (6, 0),
        Source::Room(channel) => (7, channel.0),
        Source::Ip => (8, 0),
        Source::Lease(number) => (9, number),
        Source::Routes(number) => (10, number),
        Source::DeletedRoutes => (11, 0),
    };
    epoll::EventData::new_u64(kind << 32 | u64::from(id))
}

fn decode(event: &epoll::Event) -> Option<Ready> {
    let (flags, data) = (event.flags, event.data.u64());
    let id = (data & u64::from(u32::MAX)) as u32;
    let source = match data >> 32 {
        0 => Source::Signal(id),
        1 => Source::Port(PortId(id)),
        2 => Source::Listener(id),
        3 => Source::Channel(ChannelId(id)),
        4 => Source::Stream(FileId(id)),
        5 => Source::Interfaces,
        6 => Source::Configuration,
        7 => Source::Room(ChannelId(id)),
        8 => Source::Ip,
        9 => Source::Lease(id),
        10 => Source::Routes(id),
        11 => Source::DeletedRoutes,
        _ => return None,
    };
    let trouble = epoll::EventFlags::ERR | epoll::EventFlags::HUP;
    Some(Ready {
        source,
        readable: flags.intersects(epoll::EventFlags::IN | trouble),
        writable: flags.intersects(epoll::EventFlags::OUT | trouble),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::real::clock;

    #[test]
    fn ready_sources_are_told_apart_and_reported_until_served() {
        let mut poller = Poller::new().unwrap();
        let (a, mut to_a) = UnixStream::pair().unwrap();
        let (b, _to_b) = UnixStream::pair().unwrap();
        poller.add(&a, Source::Port(PortId(7)), Interest::Read).unwrap();
        poller.add(&b, Source::Channel(ChannelId(u32::MAX)), Interest::Both).unwrap();
        to_a.write_all(b"x").unwrap();
        for _ in 0..2 {
            let mut ready = Vec::new();
            poller.wait(None, &mut ready).unwrap();
            ready.sort_by_key(|ready| ready.writable);
            let port = Source::Port(PortId(7));
            let channel = Source::Channel(ChannelId(u32::MAX));
            assert_eq!(
                ready,
                [
                    Ready { source: port, readable: true, writable: false },
                    Ready { source: channel, readable: false, writable: true },
                ]
            );
        }
        poller.remove(&a);
        poller.modify(&b, Source::Channel(ChannelId(1)), Interest::Read).unwrap();
        let mut ready = Vec::new();
        poller.wait(Some(Duration::ZERO), &mut ready).unwrap();
        assert_eq!(ready, []);
    }

    #[test]
    fn a_wait_never_ends_before_its_deadline() {
        let mut poller = Poller::new().unwrap();
        for micros in [1, 300, 1700] {
            let span = Duration::from_micros(micros);
            let start = clock::now();
            poller.wait(Some(span), &mut Vec::new()).unwrap();
            assert!(clock::now() >= start + span);
        }
    }

    #[test]
    fn a_closed_peer_is_both_readable_and_writable() {
        let mut poller = Poller::new().unwrap();
        let (a, peer) = UnixStream::pair().unwrap();
        poller.add(&a, Source::Listener(3), Interest::Write).unwrap();
        drop(peer);
        let mut ready = Vec::new();
        poller.wait(None, &mut ready).unwrap();
        assert_eq!(ready, [Ready { source: Source::Listener(3), readable: true, writable: true }]);
    }
}
