//! The network whose nodes are weft's: that of the example, with the timers of the benchmark.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weft_xrl::monitor;

use super::super::pings::Pings;
use super::grid::{INTERVAL, Routing, WITNESSES, example};
use crate::call::{Client, Reach};
use crate::show::monotonic;

/// The hold time of the example, and that of the benchmark.
const HOLD: [&str; 2] = ["variable HOLD default 700ms;", "variable HOLD default 1s;"];

/// Link-state routing of XIA nodes.
pub(super) struct Xia;

impl Routing for Xia {
    fn name(&self) -> &'static str {
        "xia"
    }

    fn lab(&self, directory: &Path) -> Result<(String, String), String> {
        let [own, wanted] = HOLD;
        let network = example()?;
        if !network.contains(own) || !network.contains("variable HELLO default 200ms;") {
            return Err("the example has other timers".to_owned());
        }
        let mut start = String::new();
        for node in WITNESSES {
            let told = directory.join(node);
            start += &format!("exec {node} \"sh -c 'echo $WEFT_RUN_DIR > {}'\";\n", told.display());
        }
        start += "exec a1 \"weft xia ping @d5 --count 30 --interval 0.1 --quiet\";\n";
        start += "exec a1 \"sh -c 'echo $WEFT_RUN_DIR @d5 > corner'\";\n";
        Ok((network.replace(own, wanted), start))
    }

    fn ping(&self, output: &Path) -> Result<Pings, String> {
        let corner =
            fs::read_to_string(output.join("corner")).map_err(|error| error.to_string())?;
        let (run_directory, to) =
            corner.trim().split_once(' ').ok_or("the lab names no address")?;
        Pings::start(to, INTERVAL, run_directory)
    }

    fn losses(&self, directory: &Path) -> Result<Vec<Instant>, String> {
        let moment = (Instant::now(), monotonic());
        let mut losses = Vec::new();
        for node in WITNESSES {
            let told =
                fs::read_to_string(directory.join(node)).map_err(|error| error.to_string())?;
            let client = Client::new(&Reach::directory(&PathBuf::from(told.trim())))?;
            let request = monitor::Log { after: None, level: None, wait: None };
            let reply = client.call("xia", request, Duration::from_secs(5));
            let entries = reply.map_err(|error| error.to_string())?.entries;
            let lost = entries
                .iter()
                .filter(|entry| entry.level == "warning" && entry.text.contains("neighbour hid-"));
            losses.extend(lost.map(|entry| instant(moment, entry.time)));
        }
        Ok(losses)
    }
}

/// A time of a log as one of answers; `moment` is one on both clocks.
fn instant((instant, nanos): (Instant, u64), time: u64) -> Instant {
    match time.checked_sub(nanos) {
        Some(later) => instant + Duration::from_nanos(later),
        None => instant - Duration::from_nanos(nanos - time),
    }
}
