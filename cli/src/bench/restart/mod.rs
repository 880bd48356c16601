//! `weft bench restart`: how long a process of a node is missed that was killed.
//!
//! A host pings another one through a router, a hundred times a second. The router's processes, the
//! launcher excepted, are killed in turn (`kill -9`), and for each it is measured, from the kill on, when
//!
//! * *runs*: the process has been started again and executes;
//! * *serves*: it does its work again: the manager lists the processes, a new client resolves and calls by
//!   the Finder, the FEA opens a port, and the stack of XIA forwards a ping;
//! * *pause*: and the longest time between two answers to pings meanwhile, which is what forwarding noticed.
//!
//! The peer is the limit: the same binary started from here until it has ended (`weft --version`), and the
//! longest time between answers while nothing is killed.
//!
//! With root and BIRD, the processes of a router with a table of BGP are killed, too (`bgp/restart.rs`).
//!
//! A process that has lived for less than ten seconds is started again later each time, so none is killed
//! before.

mod line;

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::bgp;
use super::measure::{Bench, Experiment, Figure, Plan, Program, Session};
use super::report::{Bound, Goal, Row};
use crate::lab::become_root;
use line::Line;

/// Those that are killed, by their classes, which are the names of their instances, too.
const PROCESSES: [&str; 4] = ["manager", "finder", "fea", "xia"];
/// What is measured of each.
const RUNS: &str = "runs";
const SERVES: &str = "serves";
const PAUSE: &str = "pause in forwarding";
/// How long a process lives before it is killed again: the manager and the launcher give one that
/// died sooner time to think.
const LIFE: Duration = Duration::from_millis(10_100);
/// How long forwarding is watched after a process serves again, and for the peer.
const AFTERWARDS: Duration = Duration::from_millis(300);

/// The benchmark.
pub(super) struct Restart;

impl Bench for Restart {
    fn name(&self) -> &'static str {
        "restart"
    }

    fn summary(&self) -> &'static str {
        "how long a killed process of a node is missed, beside a bare start of the program"
    }

    fn needs(&self, plan: &Plan) -> Vec<Program> {
        let with_bgp = has_bgp() && plan.includes(&bgp::restart::experiment());
        if with_bgp { vec![bgp::BIRD] } else { Vec::new() }
    }

    fn duration(&self, plan: &Plan) -> Duration {
        Duration::from_secs(60) + LIFE * plan.runs as u32
    }

    fn prepare(&self, _: &Plan) -> Result<Box<dyn Session>, String> {
        // Behind the next line a user, too, looks like root.
        let has_bgp = has_bgp();
        become_root(weft_lab::EngineKind::Netns)?;
        let line = Line::start()?;
        Ok(Box::new(Kills { line, started: [Instant::now(); PROCESSES.len()], has_bgp }))
    }
}

/// Whether a router with a table of BGP is killed, too.
fn has_bgp() -> bool {
    bgp::check_root().is_ok()
}

fn case(process: &str, what: &str) -> String {
    format!("{process}: {what}")
}

/// The network, and when each of the processes was started.
struct Kills {
    line: Line,
    started: [Instant; PROCESSES.len()],
    /// Whether a router with a table of BGP is killed, too: behind the others.
    has_bgp: bool,
}

impl Session for Kills {
    fn experiments(&self) -> Vec<Experiment> {
        let figures = |process: &str| {
            let panels = [
                (RUNS, "From the kill until the process runs"),
                (SERVES, "From the kill until it serves"),
                (PAUSE, "Longest time between answers to pings"),
            ];
            panels.map(|(what, panel)| Figure { case: case(process, what), unit: "ms", panel })
        };
        let experiment = |process: &&str| Experiment {
            peer_name: "bare start; pause: nothing killed".to_owned(),
            figures: figures(process).into(),
            most_runs: None,
        };
        let own = PROCESSES.iter().map(experiment);
        own.chain(self.has_bgp.then(bgp::restart::experiment)).collect()
    }

    fn weft(&mut self, experiment: usize, _: usize) -> Result<Vec<f64>, String> {
        let Some(process) = PROCESSES.get(experiment).copied() else {
            return bgp::restart::weft();
        };
        thread::sleep(LIFE.saturating_sub(self.started[experiment].elapsed()));
        let before = self.line.process(process)?;
        let killed = Instant::now();
        before.kill()?;
        let runs = self.line.wait_until_runs(process, before)?;
        self.started[experiment] = runs;
        let serves = match process {
            "manager" => self.line.wait_until_lists()?,
            "finder" => self.line.wait_until_resolves()?,
            "fea" => self.line.wait_until_opens()?,
            _ => self.line.wait_until_answered(runs)?,
        };
        let pause = self.line.longest_pause(killed, serves + AFTERWARDS)?;
        Ok([runs - killed, serves - killed, pause].map(milliseconds).into())
    }

    fn peer(&mut self, experiment: usize, _: usize) -> Result<Vec<f64>, String> {
        if experiment >= PROCESSES.len() {
            return bgp::restart::peer();
        }
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let begin = Instant::now();
        let status = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        let bare = begin.elapsed();
        if !status.is_ok_and(|status| status.success()) {
            return Err("this program cannot be started from itself".to_owned());
        }
        let begin = Instant::now();
        let pause = self.line.longest_pause(begin, begin + AFTERWARDS)?;
        Ok([bare, bare, pause].map(milliseconds).into())
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        let goal = |process: &&str| {
            let case = case(process, SERVES);
            let row = rows.iter().find(|row| row.figure.case == case);
            Goal {
                name: format!("{case} again, ms"),
                bound: Bound::AtMost(1_000.0),
                measured: row.map_or(f64::NAN, |row| row.weft.median()),
            }
        };
        let bgp = if self.has_bgp { bgp::restart::goals(rows) } else { Vec::new() };
        PROCESSES.iter().map(goal).chain(bgp).collect()
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
