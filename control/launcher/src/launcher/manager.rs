//! The one process that the launcher starts by itself, and the channel to it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use tracing::info;

use super::Base;
use super::order::Order;
use crate::channel;
use crate::config::LauncherError;
use crate::name::Name;
use crate::protocol::{Limits, Message};
use crate::spawn::Running;
use crate::sys;

/// A manager that lived so long did not fail to start.
const SETTLED: Duration = Duration::from_secs(10);
/// The longest time between a death and the next start.
const LONGEST_DELAY: Duration = Duration::from_secs(5);
/// So many messages may wait for the manager before the launcher listens to it again.
const QUEUE: usize = 256;

/// The manager's instance and class.
pub(super) fn name() -> Name {
    "manager".parse().unwrap_or_else(|_| unreachable!("it is a name"))
}

#[derive(Default)]
pub(super) struct Manager {
    pub(super) process: Option<Running>,
    pub(super) link: Option<Link>,
    /// When to start it; `None` while it runs.
    pub(super) start_at: Option<Instant>,
    started: Option<Instant>,
    /// Deaths in a row before it had settled.
    failures: u32,
}

/// The launcher's end of the channel.
pub(super) struct Link {
    pub(super) socket: OwnedFd,
    queue: VecDeque<Vec<u8>>,
}

impl Manager {
    /// Whether it is to be started now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.process.is_none() && self.start_at.is_none_or(|start_at| now >= start_at)
    }

    pub(super) fn start(&mut self, base: &mut Base, now: Instant) -> Result<(), String> {
        self.start_at = None;
        self.started = Some(now);
        let (ours, theirs) = channel::pair().map_err(|error| error.to_string())?;
        let listeners = base.config.manager_listeners.clone();
        let process = base.start(&Order {
            instance: &name(),
            class: &name(),
            arguments: base.config.manager_arguments.clone(),
            limits: Limits::default(),
            listeners: &listeners,
            secret: None,
            channel: Some(theirs.as_fd()),
        })?;
        info!("the manager runs as process {}", process.pid);
        self.process = Some(process);
        self.link = Some(Link { socket: ours, queue: VecDeque::new() });
        Ok(())
    }

    /// Plans the next start after a death, of which `how` tells.
    pub(super) fn died(
        &mut self,
        how: String,
        limit: u32,
        now: Instant,
    ) -> Result<(), LauncherError> {
        let settled = self.started.is_some_and(|started| now - started >= SETTLED);
        self.failures = if settled { 1 } else { self.failures + 1 };
        if self.failures >= limit {
            return Err(LauncherError::Manager { failures: self.failures, last: how });
        }
        self.start_at = Some(now + delay(self.failures));
        Ok(())
    }

    /// Queues a message; nobody is told what happens while there is no manager.
    pub(super) fn tell(&mut self, message: Message) {
        if let (Some(link), Ok(bytes)) = (&mut self.link, message.encode()) {
            link.queue.push_back(bytes);
            link.flush();
        }
    }

    pub(super) fn signal(&self, number: i32) -> Result<(), String> {
        let process = self.process.as_ref().ok_or("the manager does not run now")?;
        sys::send_signal(process.pidfd.as_fd(), number).map_err(|error| error.to_string())
    }

    pub(super) fn ask_to_end(&self) {
        let _ = self.signal(libc::SIGTERM);
    }

    pub(super) fn kill(&self) {
        let _ = self.signal(libc::SIGKILL);
    }
}

/// How long to wait after so many deaths in a row: 0, 100 ms, 200 ms, …
fn delay(failures: u32) -> Duration {
    match failures {
        0 | 1 => Duration::ZERO,
        n => {
            (Duration::from_millis(100) * 2_u32.saturating_pow((n - 2).min(16))).min(LONGEST_DELAY)
        }
    }
}

impl Link {
    /// Whether the manager reads what it is told, so that more can be done for it.
    pub(super) fn takes_requests(&self) -> bool {
        self.queue.len() < QUEUE
    }

    /// What to wait for.
    pub(super) fn interest(&self) -> PollFlags {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, self.takes_requests());
        flags.set(PollFlags::OUT, !self.queue.is_empty());
        flags
    }

    /// Sends what waits, as far as the manager reads.
    pub(super) fn flush(&mut self) {
        while let Some(bytes) = self.queue.front() {
            match channel::send(self.socket.as_fd(), bytes, &[]) {
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => return,
                // Sent, or there is nobody; that is seen when the channel is read.
                Ok(()) | Err(_) => self.queue.pop_front(),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_in_a_row_are_followed_by_longer_and_longer_waits() {
        let delays: Vec<_> = (1..10).map(|n| delay(n).as_millis()).collect();
        assert_eq!(delays, [0, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(delay(u32::MAX), LONGEST_DELAY);
    }

    #[test]
    fn only_deaths_before_it_settled_count() {
        let start = Instant::now();
        let mut manager = Manager::default();
        let mut live = |time: Duration| {
            manager.started = Some(start);
            manager.died("ended".to_owned(), 3, start + time)
        };
        let short = Duration::from_secs(9);
        assert!(live(short).is_ok() && live(short).is_ok() && live(SETTLED).is_ok());
        assert!(live(short).is_ok());
        let error = live(short).unwrap_err().to_string();
        assert!(error.contains("3 times") && error.ends_with("it ended"), "{error}");
    }
}
