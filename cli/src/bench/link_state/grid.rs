//! The network of the benchmark: a lab of twenty nodes, whose scenario cuts and mends links when it is told to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use weft_xrl::monitor;

use super::super::directory::Directory;
use super::super::pings::Pings;
use super::super::program::Program;
use crate::call::{Client, Reach};
use crate::show::monotonic;

/// The network; its own scenarios are left out.
const LAB: &str = include_str!("../../../../examples/link-state.lab");
/// Where its scenarios begin.
const SCENARIOS: &str = "    # From corner to corner";
/// The two links of the corner.
const LINKS: [&str; 2] = ["a1:east", "a1:south"];
/// The nodes whose logs tell when a neighbour was lost.
const WITNESSES: [&str; 3] = ["a1", "a2", "b1"];
/// Seconds between pings.
const INTERVAL: &str = "0.01";
/// How long a link stays cut: more than the hold time.
const CUT: Duration = Duration::from_millis(2_000);
/// How long it is given to be used again.
const MENDED: Duration = Duration::from_millis(4_000);
/// How long a link is cut and mended.
pub(super) const CYCLE: Duration = CUT.saturating_add(MENDED);
/// Whatever has not happened by then will not.
const PATIENCE: Duration = Duration::from_secs(120);

/// The lab, which ends with this.
pub(super) struct Grid {
    // In the order in which they end.
    pings: Pings,
    /// `weft lab run`.
    _lab: Program,
    output: PathBuf,
    _directory: Directory,
    /// The run directories of the witnesses.
    witnesses: Vec<PathBuf>,
    /// How many cuts there were.
    cuts: usize,
    /// One moment on both clocks: that of answers, and that of logs.
    moment: (Instant, u64),
}

impl Grid {
    /// Builds the lab and waits until pings get across. Its scenario knows so many runs of two cuts.
    pub(super) fn start(runs: usize) -> Result<Self, String> {
        let directory = Directory::new("link-state")?;
        let file = directory.0.join("grid.lab");
        let text = lab(2 * runs)?;
        fs::write(&file, text).map_err(|error| super::super::cannot_write(&file, &error))?;
        let output = directory.0.join("output");
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let log = directory.0.join("log");
        let errors =
            fs::File::create(&log).map_err(|error| super::super::cannot_write(&log, &error))?;
        let mut command = Command::new(&program);
        command.args(["lab", "run"]).arg(&file).arg("--output").arg(&output);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let lab = command
            .spawn()
            .map_err(|error| format!("this program cannot be started from itself: {error}"))?;
        let mut lab = Program(lab);
        let ended = |lab: &mut Program| lab.0.try_wait().is_ok_and(|status| status.is_some());
        wait_until("the lab", || output.join("ready").exists() || ended(&mut lab))?;
        let text = |name: &str| fs::read_to_string(output.join(name));
        let Ok(ready) = text("ready") else {
            let said = fs::read_to_string(&log).unwrap_or_default();
            return Err(format!("the lab does not start:\n{}", said.trim_end()));
        };
        let (run_directory, to) = ready.trim().split_once(' ').ok_or("the lab names no address")?;
        let witnesses = WITNESSES.iter().map(|node| {
            let told = text(&format!("directory-{node}")).map_err(|error| error.to_string())?;
            Ok(PathBuf::from(told.trim()))
        });
        let witnesses = witnesses.collect::<Result<_, String>>()?;
        let pings = Pings::start(to, INTERVAL, run_directory)?;
        // All nodes know the whole network when nothing has changed for a while.
        thread::sleep(MENDED);
        Ok(Self {
            pings,
            _lab: lab,
            output,
            _directory: directory,
            witnesses,
            cuts: 0,
            moment: (Instant::now(), monotonic()),
        })
    }

    /// Cuts the next link and mends it again: how long it took until a neighbour counted as lost, then
    /// until a ping was answered, and how long no ping was answered.
    pub(super) fn cut(&mut self) -> Result<(Duration, Duration, Duration), String> {
        let number = self.cuts;
        self.cuts += 1;
        let begin = Instant::now();
        self.signal(&format!("cut-{number}"))?;
        wait_until("the cut", || self.output.join(format!("is-cut-{number}")).exists())?;
        thread::sleep(CUT);
        let outage = self.pings.longest_pause(begin, begin + CUT)?;
        let detected = self.detected(begin)?.ok_or("no node has noticed that its link was cut")?;
        let answered = self.pings.wait_for(detected)?;
        self.signal(&format!("mend-{number}"))?;
        thread::sleep(MENDED);
        Ok((detected - begin, answered - detected, outage))
    }

    pub(super) fn longest_pause(&self, begin: Instant, end: Instant) -> Result<Duration, String> {
        self.pings.longest_pause(begin, end)
    }

    /// When a witness first reported after `begin` that a neighbour was lost.
    fn detected(&self, begin: Instant) -> Result<Option<Instant>, String> {
        let mut first: Option<Instant> = None;
        for directory in &self.witnesses {
            let client = Client::new(&Reach::directory(directory))?;
            let request = monitor::Log { after: None, level: None, wait: None };
            let reply = client.call("xia", request, Duration::from_secs(5));
            let entries = reply.map_err(|error| error.to_string())?.entries;
            let losses = entries.iter().filter(|entry| entry.text.contains("neighbour hid-"));
            let losses = losses.filter(|entry| entry.level == "warning");
            let times = losses.map(|entry| self.instant(entry.time)).filter(|time| *time > begin);
            first = first.into_iter().chain(times).min();
        }
        Ok(first)
    }

    /// A time of a log as one of answers.
    fn instant(&self, time: u64) -> Instant {
        let (instant, nanos) = self.moment;
        match time.checked_sub(nanos) {
            Some(later) => instant + Duration::from_nanos(later),
            None => instant - Duration::from_nanos(nanos - time),
        }
    }

    /// Tells the scenario to go on.
    fn signal(&self, name: &str) -> Result<(), String> {
        let path = self.output.join(name);
        fs::write(&path, "").map_err(|error| super::super::cannot_write(Path::new(&path), &error))
    }
}

/// The lab with a scenario that cuts so many links when files of certain names come.
fn lab(cuts: usize) -> Result<String, String> {
    let (network, _) = LAB.split_once(SCENARIOS).ok_or("the example has other scenarios")?;
    let wait = |name: &str| {
        format!("exec a1 \"sh -c 'until [ -e {name} ]; do sleep 0.01; done'\" timeout 24h;\n")
    };
    let mut text = format!("{network}    scenario default {{\n");
    for node in WITNESSES {
        text += &format!("exec {node} \"sh -c 'echo $WEFT_RUN_DIR > directory-{node}'\";\n");
    }
    text += "exec a1 \"weft xia ping @d5 --count 50 --interval 0.1 --quiet\";\n";
    text += "exec a1 \"sh -c 'echo $WEFT_RUN_DIR @d5 > ready.new'\";\n";
    text += "exec a1 \"mv ready.new ready\";\n";
    for number in 0..cuts {
        let end = LINKS[number % LINKS.len()];
        text += &wait(&format!("cut-{number}"));
        text += &format!("cut {end};\nexec a1 \"touch is-cut-{number}\";\n");
        text += &wait(&format!("mend-{number}"));
        text += &format!("restore {end};\n");
    }
    text += "exec a1 \"sleep 86400\" timeout 24h;\n}\n}\n";
    Ok(text)
}

/// Waits until something has happened.
fn wait_until(what: &str, mut happened: impl FnMut() -> bool) -> Result<(), String> {
    let until = Instant::now() + PATIENCE;
    while !happened() {
        if Instant::now() > until {
            return Err(format!("{what} did not come within {} s", PATIENCE.as_secs()));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lab_is_a_lab() {
        let text = lab(4).unwrap();
        let lab = weft_lab::Lab::parse("grid.lab", &text, &weft_lab::Variables::new()).unwrap();
        weft_lab::check(&lab, &crate::lab::WeftHost::new().unwrap()).unwrap();
        assert_eq!(text.matches("cut a1:").count(), 4);
    }
}
