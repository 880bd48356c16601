//! `weft bench xrl`: calls per second between components.
//!
//! Reference: Handley et al., "Designing Extensible IP Router Software" (XORP), §8.1 and Figure 9: a
//! caller keeps 100 calls in flight and makes another for each reply, with 0 to 25 numbers as
//! arguments, between components of one process and over sockets.
//!
//! Caller and probe have a thread each and speak through typed stubs; keys, tickets and the access list
//! are those of a node: the Finder resolves the method before the clock runs. The peer is gRPC
//! (tonic) with as many threads over the same kind of socket, with TLS where weft has it, or through a pipe
//! in memory in one thread; see `benches/grpc`. *Routes* are a million records in calls of [`ROUTES_PER_CALL`], of
//! which [`ROUTES_IN_FLIGHT`] are under way.

mod ends;
mod network;
mod peer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::measure::{Bench, Experiment, Figure, Plan, Session};
use super::report::{Bound, Goal, Row};
use ends::probe;
use network::Work;

const IN_FLIGHT: usize = 100;
const ROUTES: usize = 1_000_000;
const ROUTES_PER_CALL: usize = 5_000;
const ROUTES_IN_FLIGHT: usize = 8;

const CALLS: &str = "Calls per second";
const RECORDS: &str = "Records per second";

/// The benchmark.
pub(super) struct XrlBench;

impl Bench for XrlBench {
    fn name(&self) -> &'static str {
        "xrl"
    }

    fn summary(&self) -> &'static str {
        "calls per second between components, beside gRPC"
    }

    fn duration(&self, plan: &Plan) -> Duration {
        Duration::from_millis(if plan.quick { 10_000 } else { 32_000 }) * plan.runs as u32
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        let program = peer::find()?;
        let name = format!("weft-bench-xrl-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory)
            .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        Ok(Box::new(Calls { cases: cases(), quick: plan.quick, program, directory }))
    }
}

/// How two components reach one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    InProcess,
    Unix,
    Tcp,
    /// TLS over TCP, with keys on both sides.
    Tls,
}

impl Transport {
    fn name(self) -> &'static str {
        match self {
            Self::InProcess => "in-process",
            Self::Unix => "Unix",
            Self::Tcp => "TCP",
            Self::Tls => "TLS",
        }
    }
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Zero,
    Ten,
    Twentyfive,
    Take,
}

type Case = (Transport, Method);

fn cases() -> Vec<Case> {
    let transports = [Transport::InProcess, Transport::Unix, Transport::Tcp, Transport::Tls];
    let methods = [Method::Zero, Method::Ten, Method::Twentyfive];
    let calls = transports.into_iter().flat_map(|t| methods.map(|method| (t, method)));
    calls.chain([(Transport::Unix, Method::Take)]).collect()
}

fn case_name((transport, method): Case) -> String {
    let what = match method {
        Method::Zero => "0 arguments",
        Method::Ten => "10 arguments",
        Method::Twentyfive => "25 arguments",
        Method::Take => "a million routes",
    };
    format!("{}, {what}", transport.name())
}

/// How many calls are made.
#[derive(Clone, Copy, Debug)]
struct Amount {
    /// Before the clock runs.
    warm: usize,
    calls: usize,
    in_flight: usize,
}

impl Amount {
    fn new(calls: usize) -> Self {
        Self { warm: calls / 10, calls, in_flight: IN_FLIGHT }
    }

    fn routes() -> Self {
        let calls = ROUTES / ROUTES_PER_CALL;
        Self { warm: calls / 10, calls, in_flight: ROUTES_IN_FLIGHT }
    }
}

struct Calls {
    cases: Vec<Case>,
    quick: bool,
    program: PathBuf,
    directory: PathBuf,
}

impl Drop for Calls {
    /// Nothing stays; what cannot be removed is only a directory for such files.
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Calls {
    /// Both sides take about as long, so that the slower one makes fewer calls.
    fn amount(&self, (transport, method): Case, of_peer: bool) -> Amount {
        if method == Method::Take {
            return Amount::routes();
        }
        let calls = match (transport, of_peer) {
            (Transport::InProcess, false) => 500_000,
            (_, false) => 100_000,
            (_, true) => 20_000,
        };
        Amount::new(if self.quick { calls } else { 4 * calls })
    }
}

/// A reply of a method without return arguments is worth one call.
fn one((): &()) -> u64 {
    1
}

fn taken(reply: &probe::TakeReply) -> u64 {
    reply.count.into()
}

/// Calls, or routes, per second of weft.
fn measure((transport, method): Case, amount: Amount, directory: &Path) -> Result<f64, String> {
    match method {
        Method::Zero => {
            network::measure(Work { request: ends::zero, worth: one, amount }, transport, directory)
        }
        Method::Ten => {
            network::measure(Work { request: ends::ten, worth: one, amount }, transport, directory)
        }
        Method::Twentyfive => {
            let work = Work { request: ends::twentyfive, worth: one, amount };
            network::measure(work, transport, directory)
        }
        Method::Take => {
            let work = Work { request: ends::routes, worth: taken, amount };
            network::measure(work, transport, directory)
        }
    }
}

impl Session for Calls {
    fn experiments(&self) -> Vec<Experiment> {
        let experiment = |case: &Case| {
            let (unit, panel) = match case.1 {
                Method::Take => ("1000 records/s", RECORDS),
                _ => ("1000 calls/s", CALLS),
            };
            Experiment {
                peer_name: format!("gRPC (tonic), {}", case.0.name()),
                figures: vec![Figure { case: case_name(*case), unit, panel }],
                most_runs: None,
            }
        };
        self.cases.iter().map(experiment).collect()
    }

    fn weft(&mut self, experiment: usize, _: usize) -> Result<Vec<f64>, String> {
        let case = self.cases[experiment];
        let rate = measure(case, self.amount(case, false), &self.directory)?;
        Ok(vec![rate / 1000.0])
    }

    fn peer(&mut self, experiment: usize, _: usize) -> Result<Vec<f64>, String> {
        let case = self.cases[experiment];
        let Amount { warm, calls, in_flight } = self.amount(case, true);
        let transport = match case.0 {
            Transport::InProcess => "memory".to_owned(),
            Transport::Unix => format!("unix:{}", self.directory.join("grpc").display()),
            Transport::Tcp => "tcp".to_owned(),
            Transport::Tls => "tls".to_owned(),
        };
        let method = match case.1 {
            Method::Zero => "zero".to_owned(),
            Method::Ten => "ten".to_owned(),
            Method::Twentyfive => "twentyfive".to_owned(),
            Method::Take => format!("take:{ROUTES_PER_CALL}"),
        };
        let numbers = [warm, calls, in_flight].map(|number| number.to_string());
        let arguments: Vec<_> = [transport, method].into_iter().chain(numbers).collect();
        Ok(vec![peer::measure(&self.program, &arguments)? / 1000.0])
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        let of = |begin: &'static str, unit: &'static str| {
            rows.iter()
                .filter(move |row| row.figure.case.starts_with(begin) && row.figure.unit == unit)
        };
        let least = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::min);
        let goal = |name: &str, bound, measured: Option<f64>| Goal {
            name: name.to_owned(),
            bound: Bound::AtLeast(bound),
            measured: measured.unwrap_or(f64::NAN),
        };
        let calls = "1000 calls/s";
        vec![
            goal("Unix, over gRPC, the least", 2.0, least(&mut of("Unix", calls).map(Row::ratio))),
            goal("TCP, over gRPC, the least", 2.0, least(&mut of("TCP", calls).map(Row::ratio))),
            goal("TLS, over gRPC, the least", 2.0, least(&mut of("TLS", calls).map(Row::ratio))),
            goal(
                "in-process, the least (1000 calls/s)",
                2000.0,
                least(&mut of("in-process", calls).map(|row| row.weft.median())),
            ),
            goal(
                "routes over Unix (1000 records/s)",
                3000.0,
                least(&mut of("Unix", "1000 records/s").map(|row| row.weft.median())),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn every_case_is_measured_from_end_to_end() {
        let directory = tempfile::tempdir().unwrap();
        for case in cases() {
            let amount = Amount { warm: 3, calls: 20, in_flight: 5 };
            let rate = measure(case, amount, directory.path()).unwrap();
            assert!(rate.is_finite() && rate > 0.0, "{}: {rate}", case_name(case));
        }
    }

    #[test]
    fn a_reply_counts_what_was_taken() {
        assert_eq!(taken(&probe::TakeReply { count: 5000 }), 5000);
        assert_eq!(ends::routes().routes.len(), ROUTES_PER_CALL);
        assert_eq!(ROUTES % ROUTES_PER_CALL, 0, "a million routes are a whole number of calls");
    }
}
