//! `weft bench fib`: routes into the kernel, out of it, and told anew.
//!
//! Weft's side is a node in a network namespace of its own: a caller tells the FEA by XRL, calls of 5,000 routes one
//! after the other, and the FEA, a process with its sandbox, tells the kernel. It ends when the FEA says that the
//! kernel has everything. The peer is the bare limit: one process writes the very same messages from memory to a
//! socket, and for routes that are told anew it reads what the kernel has and does nothing with it.
//!
//! The prefixes are random, with lengths as in the Internet, and lead to 16 gateways. Every round and side has a
//! namespace that is new, so that no table is warm from the one before.

mod bare;
mod node;

use std::process::Command;
use std::thread;
use std::time::Duration;

use weft_base::Random;

use super::measure::{Bench, Experiment, Figure, Plan, Session};
use super::report::{Bound, Goal, Row};
use super::xip_forward::prefixes::{Prefix, prefixes};

/// Routes of a full table, and with `--quick` of the table of which XORP was measured with (Handley et al., §8.2).
const FULL: usize = 1_000_000;
const QUICK: usize = 146_515;
/// The gateways are 192.0.2.2 and so many more.
const GATEWAYS: usize = 16;
/// The index of the interface that they are on.
const INTERFACE: u32 = 77;

const INTO: &str = "into the kernel";
const OUT: &str = "out of the kernel";
const ANEW: &str = "told anew, nothing different";
const MEMORY: &str = "peak memory of the FEA";

/// The benchmark.
pub(super) struct Fib;

impl Bench for Fib {
    fn name(&self) -> &'static str {
        "fib"
    }

    fn summary(&self) -> &'static str {
        "routes into the kernel and out of it by the FEA, beside a bare netlink socket"
    }

    fn duration(&self, plan: &Plan) -> Duration {
        Duration::from_millis(if plan.quick { 3_000 } else { 14_000 }) * plan.runs as u32
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("run this benchmark as root: it makes network namespaces".to_owned());
        }
        let count = if plan.quick { QUICK } else { FULL };
        let prefixes = prefixes(count, &mut Random::from_seed(count as u64));
        Ok(Box::new(Tables { prefixes }))
    }
}

struct Tables {
    prefixes: Vec<Prefix>,
}

/// What one side takes for everything.
struct Measured {
    into: Duration,
    out: Duration,
    anew: Duration,
    /// In bytes.
    memory: u64,
}

impl Tables {
    fn case(&self, what: &str) -> String {
        format!("IPv4, {} routes: {what}", self.prefixes.len())
    }

    fn values(&self, measured: &Measured) -> Vec<f64> {
        let rate = |duration: Duration| self.prefixes.len() as f64 / duration.as_secs_f64();
        let Measured { into, out, anew, memory } = *measured;
        vec![rate(into), rate(out), rate(anew), memory as f64 / f64::from(1 << 20)]
    }

    /// Does something in a network of its own, in which the gateways can be reached.
    fn in_network(
        work: impl FnOnce() -> Result<Measured, String> + Send,
    ) -> Result<Measured, String> {
        let inside = || {
            super::xip_forward::network::enter_namespace()?;
            for words in [
                "link add name one index 77 type veth peer name two",
                "link set one up",
                "link set two up",
                "address add 192.0.2.1/24 dev one",
            ] {
                let status = Command::new("ip").args(words.split(' ')).status();
                if !status.is_ok_and(|status| status.success()) {
                    return Err(format!("`ip {words}` fails"));
                }
            }
            work()
        };
        let result = thread::scope(|scope| scope.spawn(inside).join());
        result.map_err(|_| "a thread in a namespace panicked".to_owned())?
    }
}

impl Session for Tables {
    fn experiments(&self) -> Vec<Experiment> {
        let figure = |what, unit, panel| Figure { case: self.case(what), unit, panel };
        vec![Experiment {
            peer_name: "a bare socket; memory: an FEA without routes".to_owned(),
            figures: vec![
                figure(INTO, "routes/s", "Routes per second"),
                figure(OUT, "routes/s", "Routes per second"),
                figure(ANEW, "routes/s", "Routes per second"),
                figure(MEMORY, "MiB", "Peak memory of the FEA"),
            ],
            most_runs: None,
        }]
    }

    fn weft(&mut self, _: usize, _: usize) -> Result<Vec<f64>, String> {
        Self::in_network(|| node::measure(&self.prefixes)).map(|measured| self.values(&measured))
    }

    fn peer(&mut self, _: usize, _: usize) -> Result<Vec<f64>, String> {
        Self::in_network(|| bare::measure(&self.prefixes)).map(|measured| self.values(&measured))
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        let goal = |what: &str| {
            let row = rows.iter().find(|row| row.figure.case == self.case(what));
            Goal {
                name: format!("{what}, share of the bare limit"),
                bound: Bound::AtLeast(0.7),
                measured: row.map_or(f64::NAN, Row::ratio),
            }
        };
        vec![goal(INTO), goal(OUT)]
    }
}
