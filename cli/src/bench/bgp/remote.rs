//! A speaker as whoever directs it sees it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::super::program::Program;
use super::Time;
use super::network::{PEERS, Peer};
use super::speaker::{Order, Report};

/// How long one waits for what should happen soon.
const SOON: Duration = Duration::from_secs(130);

/// The speaker; it ends with this.
pub(super) struct Speaker {
    peer: Peer,
    orders: ChildStdin,
    reports: Receiver<String>,
    /// When probes came and went.
    came: BTreeMap<usize, Time>,
    went: BTreeMap<usize, Time>,
    _program: Program,
}

impl Speaker {
    /// Starts the speaker that is this peer of the router.
    pub(super) fn start(peer: Peer) -> Result<Self, String> {
        let weft = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new("ip");
        command.args(["netns", "exec", PEERS]).arg(weft).args(["bench-bgp-end", "speaker"]);
        command.arg("--local").arg(peer.address.to_string());
        command.arg("--router").arg(peer.router.to_string());
        command.arg("--as").arg(peer.autonomous_system.to_string());
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child =
            command.spawn().map_err(|error| format!("a speaker cannot be started: {error}"))?;
        let mut program = Program(child);
        let orders = program.0.stdin.take().ok_or("a speaker takes no orders")?;
        let lines = program.0.stdout.take().ok_or("a speaker reports nothing")?;
        let (sender, reports) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(lines).lines().map_while(Result::ok);
            // When nobody listens any more, it is over.
            lines.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
        });
        let (came, went) = Default::default();
        Ok(Self { peer, orders, reports, came, went, _program: program })
    }

    pub(super) fn order(&mut self, order: &Order) -> Result<(), String> {
        let sent = writeln!(self.orders, "{order}");
        sent.map_err(|error| format!("the speaker {} is gone: {error}", self.peer.address))
    }

    /// The next report that `take` wants. Those of probes are noted on the way.
    pub(super) fn wait<T>(
        &mut self,
        patience: Duration,
        what: &str,
        mut take: impl FnMut(&Report) -> Option<T>,
    ) -> Result<T, String> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.next(left, what)? {
                None => {
                    let (address, seconds) = (self.peer.address, patience.as_secs());
                    return Err(format!("{address} has not {what} after {seconds} s"));
                }
                Some(report) => match take(&report) {
                    Some(taken) => return Ok(taken),
                    None => self.note(report, what)?,
                },
            }
        }
    }

    fn next(&mut self, patience: Duration, what: &str) -> Result<Option<Report>, String> {
        match self.reports.recv_timeout(patience) {
            Ok(line) => line.parse().map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(format!("{} has ended before it has {what}", self.peer.address))
            }
        }
    }

    fn note(&mut self, report: Report, what: &str) -> Result<(), String> {
        match report {
            Report::Came { probe, time } => drop(self.came.insert(probe, time)),
            Report::Went { probe, time } => drop(self.went.insert(probe, time)),
            Report::Lost(why) => {
                let address = self.peer.address;
                return Err(format!("{address} has lost its session before it has {what}: {why}"));
            }
            // Somebody else has waited for it no longer.
            _ => {}
        }
        Ok(())
    }

    /// Opens the session; since when it is open.
    pub(super) fn connect(&mut self) -> Result<Time, String> {
        self.order(&Order::Connect)?;
        self.wait(SOON, "opened its session", |report| match report {
            Report::Up(time) => Some(*time),
            _ => None,
        })
    }

    /// Waits until the router has ended the session.
    pub(super) fn lost(&mut self, patience: Duration) -> Result<(), String> {
        self.wait(patience, "lost its session", |report| match report {
            Report::Lost(_) => Some(()),
            _ => None,
        })
    }

    /// Closes the connection; when.
    pub(super) fn close(&mut self) -> Result<Time, String> {
        self.order(&Order::Close)?;
        self.wait(SOON, "closed its session", |report| match report {
            Report::Closed(time) => Some(*time),
            _ => None,
        })
    }

    /// Makes a table; how many bytes and messages it has.
    pub(super) fn table(&mut self, count: usize) -> Result<(usize, usize), String> {
        self.order(&Order::Table(count))?;
        self.wait(SOON, "made its table", |report| match report {
            Report::Ready { bytes, messages } => Some((*bytes, *messages)),
            _ => None,
        })
    }

    /// Waits until the table that [`Order::Send`] has asked for was sent: when that began and ended.
    pub(super) fn sent(&mut self, patience: Duration) -> Result<(Time, Time), String> {
        self.wait(patience, "sent its table", |report| match report {
            Report::Sent { first, last } => Some((*first, *last)),
            _ => None,
        })
    }

    /// Waits until as many routes have come as [`Order::Await`] has asked for; since when.
    pub(super) fn reached(&mut self, patience: Duration) -> Result<Time, String> {
        let reached = self.wait(patience, "seen all routes", |report| match report {
            Report::Reached { time, .. } => Some(*time),
            _ => None,
        });
        reached.map_err(|error| match self.count() {
            Ok((count, _)) => format!("{error}; it has {count}"),
            Err(_) => error,
        })
    }

    /// Since when as many routes are there as [`Order::Await`] has asked for, if it has said so already.
    pub(super) fn has_reached(&mut self) -> Result<Option<Time>, String> {
        while let Ok(line) = self.reports.try_recv() {
            match line.parse()? {
                Report::Reached { time, .. } => return Ok(Some(time)),
                report => self.note(report, "seen all routes")?,
            }
        }
        Ok(None)
    }

    /// How many routes it has seen that are there, and when the last one changed.
    pub(super) fn count(&mut self) -> Result<(usize, Time), String> {
        self.order(&Order::Count)?;
        self.wait(SOON, "counted", |report| match report {
            Report::Count { count, last } => Some((*count, *last)),
            _ => None,
        })
    }

    /// Announces a probe; just before when.
    pub(super) fn announce(&mut self, probe: usize) -> Result<Time, String> {
        self.order(&Order::Announce(probe))?;
        self.wait(SOON, "announced a probe", |report| match report {
            Report::Announced { probe: this, time } if *this == probe => Some(*time),
            _ => None,
        })
    }

    /// Withdraws a probe; just before when.
    pub(super) fn withdraw(&mut self, probe: usize) -> Result<Time, String> {
        self.order(&Order::Withdraw(probe))?;
        self.wait(SOON, "withdrawn a probe", |report| match report {
            Report::Withdrawn { probe: this, time } if *this == probe => Some(*time),
            _ => None,
        })
    }

    /// Waits until a probe has come; when.
    pub(super) fn wait_for(&mut self, probe: usize, patience: Duration) -> Result<Time, String> {
        if let Some(time) = self.came.get(&probe) {
            return Ok(*time);
        }
        self.wait(patience, "seen a probe", |report| match report {
            Report::Came { probe: this, time } if *this == probe => Some(*time),
            _ => None,
        })
    }

    /// Waits until a probe has gone; when.
    pub(super) fn wait_for_withdrawal(
        &mut self,
        probe: usize,
        patience: Duration,
    ) -> Result<Time, String> {
        if let Some(time) = self.went.get(&probe) {
            return Ok(*time);
        }
        self.wait(patience, "seen that a probe has gone", |report| match report {
            Report::Went { probe: this, time } if *this == probe => Some(*time),
            _ => None,
        })
    }
}
