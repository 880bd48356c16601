//! `weft bench xia-push`: a file to four receivers through the demo's network, on this machine.
//!
//! Reference: Machado et al., "Linux XIA", §6.1 and Figure 4; the network is that of
//! examples/push.lab, in network namespaces with real packets, each link losing one in a hundred.
//!
//! Weft's side runs the demo's first scenario. The peer's side, `linux.lab`, is the limit of the same
//! machine: the same links with Linux in the place of every node, and the kernel's multicast
//! forwarding of packets of the same length, from iperf to iperf. It neither repairs losses nor keeps
//! what arrives.
//!
//! * *goodput*: weft's is that of its slowest receiver, file bits from the first datagram to the
//!   last block; the peer's is what its slowest receiver got of UDP payload when the sender sent as
//!   fast as it could.
//! * *processor time*: what all processors of the machine were busy, for each byte that a receiver
//!   got, at the same sending rate. For weft it begins with the start of the sender, which hashes the
//!   file first, and ends with the last receiver.

mod processors;

use std::path::PathBuf;
use std::time::Duration;

use weft_lab::{EngineKind, Observer, Options, Outcome, Progress, Variables};

use self::processors::Processors;
use super::directory::Directory;
use super::measure::{Bench, Experiment, Figure, Plan, Program, Session};
use super::report::{Bound, Goal, Row};
use crate::lab::{WeftHost, become_root, parse, push};

const LINUX: &[u8] = include_bytes!("linux.lab");

/// What the sender of both sides may send, in the form of lab files and of iperf.
const RATE: &str = "320Mbit/s";
const IPERF_RATE: &str = "320m";
/// More than any machine of today forwards eight times over.
const IPERF_UNLIMITED: &str = "100g";

/// The benchmark.
pub(super) struct XiaPush;

impl Bench for XiaPush {
    fn name(&self) -> &'static str {
        "xia-push"
    }

    fn summary(&self) -> &'static str {
        "a file pushed to four receivers, beside the same packets multicast by Linux"
    }

    fn needs(&self, _: &Plan) -> Vec<Program> {
        vec![
            Program { name: "iperf", package: "iperf" },
            Program { name: "smcrouted", package: "smcroute" },
        ]
    }

    fn duration(&self, plan: &Plan) -> Duration {
        Duration::from_secs(if plan.quick { 20 } else { 30 }) * plan.runs as u32
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        become_root(EngineKind::Netns)?;
        let directory = Directory::new("xia-push")?;
        let (size, seconds) = if plan.quick { (32 << 20, "2") } else { (128 << 20, "5") };
        let file = directory.0.join("file.bin");
        let mut bytes = vec![0; size];
        weft_base::Random::from_seed(1).fill(&mut bytes);
        std::fs::write(&file, bytes).map_err(|error| super::cannot_write(&file, &error))?;
        Ok(Box::new(Push { host: WeftHost::new()?, directory, file, seconds }))
    }
}

/// Everything that lasts for all runs.
struct Push {
    host: WeftHost,
    directory: Directory,
    file: PathBuf,
    seconds: &'static str,
}

impl Push {
    /// Runs a scenario; returns its outcome and how long the processors were busy from the step that
    /// contains `begin` to the next step that begins with `end`.
    fn run(
        &self,
        lab: &weft_lab::Lab,
        scenario: &str,
        begin: &'static str,
        end: &'static str,
    ) -> Result<(Outcome, Duration), String> {
        let options = Options {
            engine: EngineKind::Netns,
            scenario: Some(scenario.to_owned()),
            output: Some(self.directory.0.join(scenario)),
            capture: None,
        };
        // What an earlier run has written shall not be brought to the disk during this one.
        rustix::fs::sync();
        let mut watch = Watch { begin, end, marks: [None, None] };
        let outcome = weft_lab::run(lab, &options, &self.host, &mut watch)
            .map_err(|error| error.to_string())?;
        if let Some(error) = &outcome.error {
            return Err(format!("the lab {} failed: {error}", lab.name()));
        }
        match watch.marks {
            [Some(first), Some(last)] => Ok((outcome, last?.busy_since(&first?))),
            _ => Err(format!("the lab {} has no step `{begin}` before `{end}`", lab.name())),
        }
    }

    /// Runs the peer's lab; what the slowest receiver got in Mbit/s, and busy nanoseconds for each
    /// byte received.
    fn multicast(&self, rate: &str) -> Result<[f64; 2], String> {
        let variables = [("RATE", rate), ("SECONDS", self.seconds)];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let lab = parse("linux.lab", LINUX, Variables::from(variables), None)?;
        let (outcome, busy) = self.run(&lab, "default", "iperf -c", "stop")?;
        let seconds: f64 = self.seconds.parse().map_err(|_| "the seconds are no number")?;
        let received = push::receivers(&outcome)
            .map(|receiver| {
                let text = std::fs::read_to_string(outcome.output.join(&receiver.stdout));
                iperf_bytes(&text.unwrap_or_default())
                    .ok_or_else(|| format!("iperf at {} reports no bytes", receiver.node))
            })
            .collect::<Result<Vec<f64>, String>>()?;
        Ok([slowest(&received) * 8.0 / seconds / 1e6, per_byte(busy, &received)])
    }
}

impl Session for Push {
    fn experiments(&self) -> Vec<Experiment> {
        let panel = "A file to four receivers at once, 1 % loss on every link";
        let figure = |case: &str, unit: &'static str| Figure { case: case.to_owned(), unit, panel };
        vec![Experiment {
            peer_name: "the same packets multicast by Linux, unrepaired".to_owned(),
            figures: vec![
                figure("goodput of the slowest receiver", "Mbit/s"),
                figure("processor time for a byte received", "ns"),
            ],
            most_runs: None,
        }]
    }

    fn weft(&mut self, _: usize, _: usize) -> Result<Vec<f64>, String> {
        let variables = [("FILE", self.file.display().to_string()), ("RATE", RATE.to_owned())];
        let lab = push::lab(variables.map(|(name, value)| (name.to_owned(), value)).into())?;
        let (outcome, busy) = self.run(&lab, "three-node", "weft xia push", "stop")?;
        let reports = push::receivers(&outcome)
            .map(|receiver| {
                push::received(&outcome, receiver)
                    .ok_or_else(|| format!("{} received nothing", receiver.node))
            })
            .collect::<Result<Vec<_>, String>>()?;
        let goodputs: Vec<f64> = reports.iter().map(push::goodput).collect();
        let bytes: Vec<f64> =
            reports.iter().map(|report| report["bytes"].as_f64().unwrap_or(0.0)).collect();
        Ok(vec![slowest(&goodputs), per_byte(busy, &bytes)])
    }

    fn peer(&mut self, _: usize, _: usize) -> Result<Vec<f64>, String> {
        let [limit, _] = self.multicast(IPERF_UNLIMITED)?;
        let [_, cost] = self.multicast(IPERF_RATE)?;
        Ok(vec![limit, cost])
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        let measured = rows.first().map_or(f64::NAN, |row| row.weft.median());
        vec![Goal {
            name: "goodput of the slowest of four receivers, Mbit/s".to_owned(),
            bound: Bound::AtLeast(200.0),
            measured,
        }]
    }
}

/// Looks at the processors when a step begins, and when the one that it ends with does.
struct Watch {
    begin: &'static str,
    end: &'static str,
    marks: [Option<Result<Processors, String>>; 2],
}

impl Observer for Watch {
    fn see(&mut self, _: Duration, progress: Progress<'_>) {
        let Progress::Step { text, .. } = progress else { return };
        let [first, last] = &mut self.marks;
        if first.is_none() && text.contains(self.begin) {
            *first = Some(Processors::now());
        } else if first.is_some() && last.is_none() && text.starts_with(self.end) {
            *last = Some(Processors::now());
        }
    }
}

fn slowest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn per_byte(busy: Duration, received: &[f64]) -> f64 {
    busy.as_nanos() as f64 / received.iter().sum::<f64>()
}

/// The bytes that iperf's server reports last: `[  1] 0.00-2.00 sec  71234567 Bytes  284938268 bits/sec …`.
fn iperf_bytes(text: &str) -> Option<f64> {
    let report = text.lines().rev().find_map(|line| line.split_once(" Bytes "))?;
    report.0.split_ascii_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_report_of_iperf_counts() {
        let text = "UDP buffer size: 212992 Byte (default)\n\
            [ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams\n\
            [  1] 0.0000-1.0000 sec  59674640 Bytes  477397120 bits/sec   0.004 ms 8492/89776 (9.5%)\n\
            [  1] 0.0000-1.9967 sec  118674640 Bytes  475475725 bits/sec   0.004 ms 8492/89776 (9.5%)\n\
            [  1] 0.0000-1.9967 sec  2 datagrams received out-of-order\n";
        assert_eq!(iperf_bytes(text), Some(118_674_640.0));
        assert_eq!(iperf_bytes("Server listening on UDP port 5001\n"), None);
    }

    #[test]
    fn both_labs_have_the_steps_that_are_watched() {
        let variables = [("RATE", "1m"), ("SECONDS", "1")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let peer = parse("linux.lab", LINUX, Variables::from(variables), None).unwrap();
        assert_eq!(peer.nodes().count(), push::lab(Variables::new()).unwrap().nodes().count());
        let linux = std::str::from_utf8(LINUX).unwrap();
        assert!(linux.contains("iperf -c") && linux.contains(" stop receiver1;"));
    }
}
