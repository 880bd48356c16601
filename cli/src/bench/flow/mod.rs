//! `weft bench flow`: messages and bytes per second from one process to another, through a flow and
//! through a Unix socket.
//!
//! One process sends as fast as it can, with a call for each message; this one receives, with a call
//! for each message, and counts for a while. Both sides sleep when there is nothing to do. The peer
//! does the same with send(2) and recv(2) on a socket of type `SOCK_SEQPACKET`, which keeps the borders
//! of messages as a flow of datagrams does, or `SOCK_STREAM`. *Round trip* is how long a message of 64
//! bytes takes to the other process and back, one at a time.

mod ends;
mod source;

use std::time::{Duration, Instant};

use super::directory::Directory;
use super::measure::{Bench, Experiment, Figure, Plan, Session};
use super::report::{Bound, Goal, Row};
use ends::{Carrier, End};
use source::{Place, Source};
pub(crate) use source::{SourceArgs, run as run_source};

/// Lengths of messages, in bytes: the least, small requests, packets, large pieces.
const SIZES: [usize; 4] = [1, 64, 1400, 65_000];
/// Length of a message that goes to and fro, in bytes.
const TRIP: usize = 64;
/// What is received before the clock runs: caches are warm then and both sides busy.
const WARM: Duration = Duration::from_millis(20);

const MESSAGES: &str = "Messages per second";
const BYTES: &str = "Bytes per second";
const LATENCY: &str = "Round trip";

/// The benchmark.
pub(super) struct FlowBench;

impl Bench for FlowBench {
    fn name(&self) -> &'static str {
        "flow"
    }

    fn summary(&self) -> &'static str {
        "messages and bytes per second between processes through a flow, beside a Unix socket"
    }

    fn duration(&self, plan: &Plan) -> Duration {
        let each = span(plan) + WARM + Duration::from_millis(30);
        each * (2 * cases().len() * plan.runs) as u32
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        Transfers::new(Place::Process, span(plan)).map(|session| Box::new(session) as _)
    }
}

/// How long one side of an experiment is measured.
fn span(plan: &Plan) -> Duration {
    Duration::from_millis(if plan.quick { 200 } else { 500 })
}

/// What is done once by weft and once by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// Messages of this length one way.
    Datagrams(usize),
    /// Bytes one way, written in pieces of this length and read as they come.
    Stream(usize),
    /// A datagram there and back.
    RoundTrip,
}

fn cases() -> Vec<Case> {
    let datagrams = SIZES.into_iter().map(Case::Datagrams);
    let streams = [64, 65_000].into_iter().map(Case::Stream);
    datagrams.chain(streams).chain([Case::RoundTrip]).collect()
}

impl Case {
    fn carriers(self) -> (Carrier, Carrier) {
        match self {
            Self::Datagrams(_) | Self::RoundTrip => (Carrier::Flow, Carrier::Seqpacket),
            Self::Stream(_) => (Carrier::FlowStream, Carrier::Stream),
        }
    }

    fn experiment(self) -> Experiment {
        let figure = |case: String, unit, panel| Figure { case, unit, panel };
        let (peer_name, figures) = match self {
            Self::Datagrams(size) => (
                "Unix socket, SOCK_SEQPACKET",
                vec![
                    figure(messages_of(size), "1000/s", MESSAGES),
                    figure(format!("bytes, messages of {size} bytes"), "Mbyte/s", BYTES),
                ],
            ),
            Self::Stream(size) => (
                "Unix socket, SOCK_STREAM",
                vec![figure(format!("bytes, stream written by {size}"), "Mbyte/s", BYTES)],
            ),
            Self::RoundTrip => (
                "Unix socket, SOCK_SEQPACKET",
                vec![figure(format!("round trip of {TRIP} bytes"), "us", LATENCY)],
            ),
        };
        Experiment { peer_name: peer_name.to_owned(), figures, most_runs: None }
    }
}

fn messages_of(size: usize) -> String {
    format!("messages of {size} bytes")
}

/// Everything that lasts for all runs.
struct Transfers {
    directory: Directory,
    place: Place,
    span: Duration,
    buffer: Vec<u8>,
}

impl Session for Transfers {
    fn experiments(&self) -> Vec<Experiment> {
        cases().into_iter().map(Case::experiment).collect()
    }

    fn weft(&mut self, experiment: usize, _: usize) -> Result<Vec<f64>, String> {
        let case = cases()[experiment];
        self.measure(case, case.carriers().0)
    }

    fn peer(&mut self, experiment: usize, _: usize) -> Result<Vec<f64>, String> {
        let case = cases()[experiment];
        self.measure(case, case.carriers().1)
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        let goal = |size| Goal {
            name: format!("{}: times as many as through the socket", messages_of(size)),
            bound: Bound::AtLeast(3.0),
            measured: rows
                .iter()
                .find(|row| row.figure.case == messages_of(size))
                .map_or(f64::NAN, Row::ratio),
        };
        vec![goal(1), goal(64)]
    }
}

impl Transfers {
    fn new(place: Place, span: Duration) -> Result<Self, String> {
        let directory = Directory::new("flow")?;
        Ok(Self { directory, place, span, buffer: vec![0; weft_flow::LONGEST] })
    }

    /// Runs one side of an experiment; a value for each of its figures.
    fn measure(&mut self, case: Case, carrier: Carrier) -> Result<Vec<f64>, String> {
        let (size, echo) = match case {
            Case::Datagrams(size) | Case::Stream(size) => (size, false),
            Case::RoundTrip => (TRIP, true),
        };
        let (end, source) = self.connect(carrier, size, echo)?;
        let values = match case {
            Case::Datagrams(_) => {
                self.count(end).map(|counted| vec![counted.pieces / 1e3, counted.bytes / 1e6])
            }
            Case::Stream(_) => self.count(end).map(|counted| vec![counted.bytes / 1e6]),
            Case::RoundTrip => self.trips(end).map(|microseconds| vec![microseconds]),
        };
        // The end is closed, so the other side comes to its own.
        source.finish()?;
        values.ok_or_else(|| format!("the other process closed the {carrier:?} early"))
    }

    fn connect(&self, carrier: Carrier, size: usize, echo: bool) -> Result<(End, Source), String> {
        let socket = self.directory.0.join("socket");
        // A socket of the run before.
        let _ = std::fs::remove_file(&socket);
        let door = carrier.listen(&socket)?;
        let source = self.place.start(&SourceArgs { socket, carrier, size, echo })?;
        Ok((door.accept()?, source))
    }

    /// Receives for a while and says how much came each second; `None` if the other side went away.
    fn count(&mut self, mut end: End) -> Option<Rate> {
        self.receive_for(&mut end, WARM)?;
        self.receive_for(&mut end, self.span)
    }

    fn receive_for(&mut self, end: &mut End, span: Duration) -> Option<Rate> {
        let (mut pieces, mut bytes) = (0_u64, 0_usize);
        let begin = Instant::now();
        let mut elapsed = Duration::ZERO;
        while elapsed < span {
            // As many as make looking at the clock cheap.
            let until = bytes + 65_536;
            for _ in 0..256 {
                bytes += end.receive(&mut self.buffer)?;
                pieces += 1;
                if bytes >= until {
                    break;
                }
            }
            elapsed = begin.elapsed();
        }
        let per_second = |count: f64| count / elapsed.as_secs_f64();
        Some(Rate { pieces: per_second(pieces as f64), bytes: per_second(bytes as f64) })
    }

    /// Sends a message to and fro for a while; the mean time of a round trip in microseconds.
    fn trips(&mut self, mut end: End) -> Option<f64> {
        let message = [7; TRIP];
        let mut trip = || {
            let sent = end.send(&message);
            (sent && end.receive(&mut self.buffer) == Some(TRIP)).then_some(())
        };
        for span in [WARM, self.span] {
            let (begin, mut count) = (Instant::now(), 0_u32);
            while begin.elapsed() < span {
                trip()?;
                count += 1;
            }
            if span == self.span {
                return Some(begin.elapsed().as_secs_f64() * 1e6 / f64::from(count.max(1)));
            }
        }
        None
    }
}

/// What came each second.
struct Rate {
    pieces: f64,
    bytes: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole benchmark in small, with a thread in the place of the other process.
    #[test]
    fn every_case_moves_something_on_both_sides() {
        let mut session = Transfers::new(Place::Thread, Duration::from_millis(1)).unwrap();
        let path = session.directory.0.clone();
        for (index, experiment) in session.experiments().iter().enumerate() {
            for values in [session.weft(index, 0).unwrap(), session.peer(index, 0).unwrap()] {
                assert_eq!(values.len(), experiment.figures.len());
                assert!(values.iter().all(|value| *value > 0.0), "{values:?}");
            }
        }
        drop(session);
        assert!(!path.exists());
    }

    #[test]
    fn the_other_process_is_told_what_to_do_in_words_that_it_knows() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            source: SourceArgs,
        }
        for (carrier, word) in
            [(Carrier::FlowStream, "flow-stream"), (Carrier::Seqpacket, "seqpacket")]
        {
            let words = ["source", "--socket", "x", "--carrier", word, "--size", "9", "--echo"];
            let line = <Line as clap::Parser>::try_parse_from(words).unwrap();
            assert_eq!((line.source.carrier, line.source.size), (carrier, 9));
        }
    }
}
