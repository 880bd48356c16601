//! A speaker of BGP in a process of its own, which does what it is told on standard input and reports on standard
//! output: it sends tables, announces probes, and sees what the router tells.
//!
//! Times are those of `CLOCK_MONOTONIC`, which all processes of a machine share. What arrives is stamped when it was
//! read, before it is looked at.

mod words;

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use foldhash::fast::FixedState;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use weft_bgp::wire::{Families, Family, end_of_rib};

use super::Time;
use super::table::{self, MOST_PROBES};
use crate::bgp::session::{self, CHUNK, PORT, Piece, Said, Session};
use crate::output::Outcome;
pub(super) use words::{Order, Report};

/// Who speaks with whom.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Ends {
    /// The speaker's address
    #[arg(long)]
    pub(super) local: Ipv4Addr,
    /// The router's address
    #[arg(long)]
    pub(super) router: Ipv4Addr,
    /// The speaker's autonomous system
    #[arg(long = "as")]
    pub(super) autonomous_system: u32,
}

impl Ends {
    /// Opens the session as soon as the router does, and takes several routes for a prefix or not.
    pub(super) fn open_soon<N>(&self, hears_paths: bool) -> Result<Session<N>, String> {
        Session::open_soon(&session::Ends {
            local: Some(self.local.into()),
            router: SocketAddr::new(self.router.into(), PORT),
            autonomous_system: self.autonomous_system,
            identifier: None,
            families: Families::from_iter([Family::IPV4_UNICAST]),
            offers_refresh: true,
            hears_paths,
        })
    }
}

/// The arguments of the process.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SpeakerArgs {
    #[command(flatten)]
    pub(super) ends: Ends,
}

/// What is to be reported when something was sent.
#[derive(Clone, Copy, Debug)]
enum Note {
    Table,
    End,
    Announced(usize),
    Withdrawn(usize),
}

/// What the router has told.
struct Seen {
    routes: HashSet<u64, FixedState>,
    last: Time,
    /// A number that was asked for, until it is reached.
    awaited: Option<usize>,
    /// Which probes were reported, as announced and as withdrawn.
    probes: Vec<[bool; 2]>,
}

struct Speaker {
    ends: Ends,
    session: Option<Session<Note>>,
    table: Arc<[u8]>,
    seen: Seen,
    chunk: Box<[u8]>,
    is_reading: bool,
}

/// Runs the process until its standard input ends.
pub(crate) fn run(args: &SpeakerArgs) -> Outcome {
    let mut speaker = Speaker {
        ends: args.ends,
        session: None,
        table: Arc::default(),
        seen: Seen {
            routes: HashSet::default(),
            last: Time(0),
            awaited: None,
            probes: vec![[false; 2]; MOST_PROBES],
        },
        chunk: vec![0; CHUNK].into(),
        is_reading: true,
    };
    let (mut orders, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        if speaker.wait()? {
            match std::io::stdin().lock().read(&mut chunk) {
                Ok(0) | Err(_) => return Ok(0),
                Ok(length) => orders.extend_from_slice(&chunk[..length]),
            }
        }
        while let Some(end) = orders.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = orders.drain(..=end).collect();
            speaker.obey(String::from_utf8_lossy(&line).trim().parse()?)?;
        }
        speaker.exchange();
    }
}

fn report(report: &Report) {
    // Whoever does not read any more will end this process.
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{report}").and_then(|()| out.flush());
}

impl Speaker {
    /// Waits for something to do; whether there are orders.
    fn wait(&self) -> Result<bool, String> {
        let input = std::io::stdin();
        let mut fds = vec![PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN)];
        let mut timeout = None;
        if let Some(session) = &self.session {
            let mut wanted = PollFlags::empty();
            wanted.set(PollFlags::IN, self.is_reading);
            wanted.set(PollFlags::OUT, session.is_sending());
            fds.push(PollFd::from_borrowed_fd(session.fd(), wanted));
            let left = session.deadline().saturating_duration_since(Instant::now());
            timeout = Timespec::try_from(left).ok();
        }
        poll(&mut fds, timeout.as_ref()).map_err(|error| error.to_string())?;
        Ok(!fds[0].revents().is_empty())
    }

    fn obey(&mut self, order: Order) -> Result<(), String> {
        match order {
            Order::Table(count) => {
                let Ends { autonomous_system, local, .. } = self.ends;
                let stream = table::stream(count, autonomous_system, local);
                let (bytes, messages) = (stream.bytes.len(), stream.messages);
                self.table = stream.bytes.into();
                report(&Report::Ready { bytes, messages });
            }
            Order::Connect => self.connect()?,
            Order::Close => {
                self.session = None;
                report(&Report::Closed(Time::now()));
            }
            Order::Send => self.push(Arc::clone(&self.table), Note::Table),
            Order::End => self.push(end_of_rib(Family::IPV4_UNICAST).into(), Note::End),
            Order::Await(count) => {
                self.seen.routes.reserve(count.saturating_sub(self.seen.routes.len()));
                self.seen.awaited = Some(count);
                self.seen.check();
            }
            Order::Announce(probe) => self.probe(probe, true),
            Order::Withdraw(probe) => self.probe(probe, false),
            Order::Count => {
                let Seen { routes, last, .. } = &self.seen;
                report(&Report::Count { count: routes.len(), last: *last });
            }
            Order::Pause => self.is_reading = false,
            Order::Resume => self.is_reading = true,
        }
        Ok(())
    }

    fn connect(&mut self) -> Result<(), String> {
        let session = self.ends.open_soon(false)?;
        report(&Report::Up(Time::now()));
        self.seen.routes.clear();
        self.session = Some(session);
        Ok(())
    }

    fn probe(&mut self, probe: usize, announce: bool) {
        let Ends { autonomous_system, local, .. } = self.ends;
        let bytes = table::probe_message(probe, announce, autonomous_system, local);
        let note = if announce { Note::Announced(probe) } else { Note::Withdrawn(probe) };
        self.push(bytes.into(), note);
    }

    fn push(&mut self, bytes: Arc<[u8]>, note: Note) {
        match &mut self.session {
            Some(session) => session.push(Piece { bytes, note }),
            None => report(&Report::Lost("there is no session".to_owned())),
        }
    }

    /// Sends and receives what can be.
    fn exchange(&mut self) {
        let Some(session) = &mut self.session else { return };
        let sent = session.send(|note, first, last| {
            report(&match note {
                Note::Table => Report::Sent { first, last },
                Note::End => return,
                Note::Announced(probe) => Report::Announced { probe, time: first },
                Note::Withdrawn(probe) => Report::Withdrawn { probe, time: first },
            });
        });
        let seen = &mut self.seen;
        let received = match (sent, self.is_reading) {
            (Ok(()), true) => {
                session.receive(&mut self.chunk, |said, prefix, now| seen.note(said, &prefix, now))
            }
            (sent, _) => sent,
        };
        seen.check();
        if let Err(why) = received {
            self.session = None;
            report(&Report::Lost(why));
        }
    }
}

impl Seen {
    fn note(&mut self, said: Said, prefix: &weft_routing::Prefix, now: Time) {
        if let Some(probe) = table::probe_number(prefix) {
            let was_reported = &mut self.probes[probe][usize::from(said == Said::Withdrawn)];
            if !std::mem::replace(was_reported, true) {
                report(&match said {
                    Said::Announced => Report::Came { probe, time: now },
                    Said::Withdrawn => Report::Went { probe, time: now },
                });
            }
            return;
        }
        let has_changed = match said {
            Said::Announced => self.routes.insert(table::key(prefix)),
            Said::Withdrawn => self.routes.remove(&table::key(prefix)),
        };
        if has_changed {
            self.last = now;
        }
    }

    fn check(&mut self) {
        let count = self.routes.len();
        if self.awaited == Some(count) {
            self.awaited = None;
            report(&Report::Reached { count, time: self.last });
        }
    }
}
