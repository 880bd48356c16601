//! A network of the benchmark: a lab of twenty nodes, whose scenario cuts and mends links when it is told to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::super::cannot_write;
use super::super::directory::Directory;
use super::super::pings::Pings;
use super::super::program::Program;

/// The network of the example, whose scenarios are left out.
const EXAMPLE: &str = include_str!("../../../../examples/link-state.lab");
/// Where its scenarios begin.
const SCENARIOS: &str = "    # From corner to corner";
/// The two links of the corner.
const LINKS: [&str; 2] = ["a1:east", "a1:south"];
/// The nodes at the ends of these, which may notice that one is cut.
pub(super) const WITNESSES: [&str; 3] = ["a1", "a2", "b1"];
/// Seconds between pings.
pub(super) const INTERVAL: &str = "0.01";
/// How long a link stays cut: more than the hold time.
const CUT: Duration = Duration::from_millis(2_000);
/// How long it is given to be used again, and the network to come to rest: the hold-down time of the
/// computation of routes.
pub(super) const MENDED: Duration = Duration::from_millis(3_000);
/// How long a link is cut and mended.
pub(super) const CYCLE: Duration = CUT.saturating_add(MENDED);
/// Whatever has not happened by then will not.
const PATIENCE: Duration = Duration::from_secs(120);

/// The part of the lab file that names the nodes and links of the example.
pub(super) fn example() -> Result<&'static str, String> {
    EXAMPLE
        .split_once(SCENARIOS)
        .map(|(network, _)| network)
        .ok_or_else(|| "the example has other scenarios".to_owned())
}

/// What routes in a network.
pub(super) trait Routing {
    /// A word for directories.
    fn name(&self) -> &'static str;

    /// The lab file up to its scenario, and the steps that start what the lab does not start by itself and
    /// wait until packets get from corner to corner. `directory` is for files that last as long.
    fn lab(&self, directory: &Path) -> Result<(String, String), String>;

    /// Begins to ping from corner to corner. `output` is the directory of the lab's files.
    fn ping(&self, output: &Path) -> Result<Pings, String>;

    /// When a witness has reported that a neighbour was lost, all that is known.
    fn losses(&self, directory: &Path) -> Result<Vec<Instant>, String>;
}

/// The lab, which ends with this.
pub(super) struct Grid {
    // In the order in which they end.
    pings: Pings,
    /// `weft lab run`.
    _lab: Program,
    output: PathBuf,
    directory: Directory,
    routing: Box<dyn Routing>,
    /// How many cuts there were.
    cuts: usize,
}

/// What came of a cut.
pub(super) struct Cut {
    pub(super) detection: Duration,
    pub(super) reroute: Duration,
    pub(super) outage: Duration,
}

impl Grid {
    /// Builds the lab and waits until pings get across. Its scenario knows so many cuts.
    pub(super) fn start(routing: Box<dyn Routing>, cuts: usize) -> Result<Self, String> {
        let directory = Directory::new(&format!("link-state-{}", routing.name()))?;
        let file = directory.0.join("grid.lab");
        fs::write(&file, lab(&*routing, &directory.0, cuts)?)
            .map_err(|error| cannot_write(&file, &error))?;
        let output = directory.0.join("output");
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let log = directory.0.join("log");
        let errors = fs::File::create(&log).map_err(|error| cannot_write(&log, &error))?;
        let mut command = Command::new(&program);
        command.args(["lab", "run"]).arg(&file).arg("--output").arg(&output);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let lab = command
            .spawn()
            .map_err(|error| format!("this program cannot be started from itself: {error}"))?;
        let mut lab = Program(lab);
        let ended = |lab: &mut Program| lab.0.try_wait().is_ok_and(|status| status.is_some());
        wait_until("the lab", || output.join("ready").exists() || ended(&mut lab))?;
        if !output.join("ready").exists() {
            let said = fs::read_to_string(&log).unwrap_or_default();
            return Err(format!("the lab does not start:\n{}", said.trim_end()));
        }
        let pings = routing.ping(&output)?;
        Ok(Self { pings, _lab: lab, output, directory, routing, cuts: 0 })
    }

    /// Cuts the next link and mends it again.
    pub(super) fn cut(&mut self) -> Result<Cut, String> {
        let number = self.cuts;
        self.cuts += 1;
        let begin = Instant::now();
        self.signal(&format!("cut-{number}"))?;
        wait_until("the cut", || self.output.join(format!("is-cut-{number}")).exists())?;
        let cut = Instant::now();
        thread::sleep(CUT);
        let outage = self.pings.longest_pause(begin, cut + CUT)?;
        let losses = self.routing.losses(&self.directory.0)?;
        let detected = losses.into_iter().filter(|time| *time > begin).min();
        let detected = detected.ok_or("no node has noticed that its link was cut")?;
        let answered = self.pings.wait_for(detected)?;
        self.signal(&format!("mend-{number}"))?;
        thread::sleep(MENDED);
        let (detection, reroute) = (detected.saturating_duration_since(cut), answered - detected);
        Ok(Cut { detection, reroute, outage })
    }

    /// Tells the scenario to go on.
    fn signal(&self, name: &str) -> Result<(), String> {
        let path = self.output.join(name);
        fs::write(&path, "").map_err(|error| cannot_write(&path, &error))
    }
}

/// The lab file, with a scenario that cuts so many links when files of certain names come.
fn lab(routing: &dyn Routing, directory: &Path, cuts: usize) -> Result<String, String> {
    let wait = |name: &str| {
        format!("exec a1 \"sh -c 'until [ -e {name} ]; do sleep 0.01; done'\" timeout 24h;\n")
    };
    let (network, start) = routing.lab(directory)?;
    let mut text = format!("{network}    scenario default {{\n{start}exec a1 \"touch ready\";\n");
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
    use super::super::{ospf, xia};
    use super::*;

    #[test]
    fn the_labs_are_labs() {
        let directory = tempfile::tempdir().unwrap();
        let networks: [&dyn Routing; 2] = [&xia::Xia, &ospf::Ospf];
        for network in networks {
            let text = lab(network, directory.path(), 4).unwrap();
            let lab = weft_lab::Lab::parse("grid.lab", &text, &weft_lab::Variables::new()).unwrap();
            weft_lab::check(&lab, &crate::lab::WeftHost::new().unwrap()).unwrap();
            assert_eq!(text.matches("cut a1:").count(), 4);
        }
    }
}
