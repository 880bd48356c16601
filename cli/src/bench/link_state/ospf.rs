//! The peer: the same grid of twenty Linux routers, with OSPF from FRR.
//!
//! Each router has an address of its own on its loopback interface, from and to which the pings go, so that
//! they do not depend on the links of a router. FRR runs as its own user, with its files in the directory of
//! the benchmark.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::super::cannot_write;
use super::super::measure::Program;
use super::super::pings::Pings;
use super::grid::{INTERVAL, Routing, WITNESSES, example};

/// What routes.
pub(super) const FRR: Program = Program { name: "vtysh", package: "frr" };
/// What pings.
pub(super) const PING: Program = Program { name: "ping", package: "iputils-ping" };

/// Where the package of Debian has the daemons.
const DAEMONS: &str = "/usr/lib/frr";
/// Its user and group.
const USER: &str = "frr";
/// The timers of the module's text; FRR counts a dead interval of one second in hellos.
const INTERFACE: &str = " ip ospf network point-to-point
 ip ospf dead-interval minimal hello-multiplier 5
 ip ospf area 0
";
const ROUTER: &str = "router ospf
 log-adjacency-changes detail
 timers throttle spf 10 50 500
 timers throttle lsa all 0
 timers lsa min-arrival 0
";
const DAY: u64 = 86_400_000_000;

/// OSPF of Linux routers.
pub(super) struct Ospf;

/// The nodes and links of the example.
fn network() -> Result<(Vec<&'static str>, Vec<[&'static str; 2]>), String> {
    let words = |line: &'static str| line.trim().trim_end_matches([';', '{']).split_whitespace();
    let (mut nodes, mut links) = (Vec::new(), Vec::new());
    for line in example()?.lines() {
        match words(line).collect::<Vec<_>>()[..] {
            ["node", node] => nodes.push(node),
            ["link", one, other] => links.push([one, other]),
            _ => {}
        }
    }
    Ok((nodes, links))
}

/// The address of a router that does not belong to a link.
fn loopback(node: usize) -> String {
    format!("10.255.0.{}", node + 1)
}

/// What FRR is told on a node with these interfaces.
fn configuration(address: &str, interfaces: &[&str], log: &Path) -> String {
    let mut text = format!("log file {}\nlog timestamp precision 6\n", log.display());
    for interface in interfaces {
        text += &format!("interface {interface}\n{INTERFACE}");
    }
    text + &format!("interface lo\n ip ospf area 0\n{ROUTER} ospf router-id {address}\n")
}

impl Routing for Ospf {
    fn name(&self) -> &'static str {
        "ospf"
    }

    fn lab(&self, directory: &Path) -> Result<(String, String), String> {
        let (nodes, links) = network()?;
        let mut text = "version 1;\nlab ospf {\n".to_owned();
        for node in &nodes {
            text += &format!("node {node} {{ kind linux; }}\n");
        }
        for (number, [one, other]) in links.iter().enumerate() {
            let subnet = format!("10.0.{number}");
            text += &format!("link {one} {other} {{ address {subnet}.1/24 {subnet}.2/24; }}\n");
        }
        let mut start = String::new();
        for (number, node) in nodes.iter().enumerate() {
            let ends = links.iter().flatten().filter_map(|end| end.split_once(':'));
            let interfaces: Vec<_> =
                ends.filter(|(of, _)| of == node).map(|(_, interface)| interface).collect();
            let (address, place) = (loopback(number), directory.join(node));
            let write = |name: &str, content: &str| {
                let path = place.join(name);
                fs::write(&path, content).map_err(|error| cannot_write(&path, &error))
            };
            fs::create_dir_all(&place).map_err(|error| cannot_write(&place, &error))?;
            let log = place.join("ospfd.log");
            write("ospfd.conf", &configuration(&address, &interfaces, &log))?;
            write("zebra.conf", "")?;
            start += &start_daemons(node, &address, &place);
        }
        let last = loopback(nodes.len() - 1);
        start += &format!(
            "exec a1 \"sh -c 'until ping -c 1 -W 1 -I {} {last}; do sleep 0.1; done'\";\n\
             exec a1 \"sh -c 'echo {} {last} > corner'\";\n\
             run a1 \"sh -c 'echo $$ > corner-process; exec sleep 86400'\" as corner;\n\
             exec a1 \"sh -c 'until [ -s corner-process ]; do sleep 0.01; done'\";\n",
            loopback(0),
            loopback(0),
        );
        Ok((text, start))
    }

    fn ping(&self, output: &Path) -> Result<Pings, String> {
        let read = |name: &str| {
            fs::read_to_string(output.join(name)).map_err(|error| format!("{name}: {error}"))
        };
        let (corner, process) = (read("corner")?, read("corner-process")?);
        let (from, to) = corner.trim().split_once(' ').ok_or("the lab names no address")?;
        let mut command = Command::new("nsenter");
        command.args(["--target", process.trim(), "--net"]);
        command.args(["ping", "-n", "-i", INTERVAL, "-I", from, to]);
        Pings::of(&mut command)
    }

    fn losses(&self, directory: &Path) -> Result<Vec<Instant>, String> {
        let moment = (Instant::now(), SystemTime::now());
        let mut losses = Vec::new();
        for node in WITNESSES {
            let path = directory.join(node).join("ospfd.log");
            let log = fs::read_to_string(&path)
                .map_err(|error| format!("FRR has written no {}: {error}", path.display()))?;
            let lost = log.lines().filter(|line| line.contains("Full -> Deleted"));
            losses.extend(lost.filter_map(|line| instant(moment, time_of_day(line)?)));
        }
        Ok(losses)
    }
}

/// The steps that start FRR on a node.
fn start_daemons(node: &str, address: &str, place: &Path) -> String {
    let place = place.display();
    let daemon = |name: &str| {
        format!(
            "env TZ=UTC {DAEMONS}/{name} -u {USER} -g {USER} -P 0 -z {place}/zserv \
             -i {place}/{name}.pid --vty_socket {place} -f {place}/{name}.conf"
        )
    };
    let mut steps = String::new();
    // Writing into a text does not fail.
    let _ = write!(
        steps,
        "exec {node} \"ip address add {address}/32 dev lo\";\n\
         exec {node} \"chown -R {USER}:{USER} {place}\";\n\
         run {node} \"{}\" as zebra-{node};\n\
         run {node} \"sh -c 'until [ -S {place}/zserv ]; do sleep 0.01; done; exec {}'\" as ospf-{node};\n",
        daemon("zebra"),
        daemon("ospfd"),
    );
    steps
}

/// The microseconds of the day in a line such as `2026/11/22 15:26:43.345293 OSPF: …`.
fn time_of_day(line: &str) -> Option<u64> {
    let (clock, micros) = line.split_whitespace().nth(1)?.split_once('.')?;
    let parts: Vec<u64> = clock.split(':').map_while(|part| part.parse().ok()).collect();
    let [hours, minutes, seconds] = parts[..] else { return None };
    let micros: u64 = micros.parse().ok().filter(|_| micros.len() == 6)?;
    Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros)
}

/// A time of the last day as one of answers; `moment` is one on both clocks.
fn instant((instant, now): (Instant, SystemTime), time: u64) -> Option<Instant> {
    let now = u64::try_from(now.duration_since(UNIX_EPOCH).ok()?.as_micros()).ok()? % DAY;
    instant.checked_sub(Duration::from_micros((now + DAY - time) % DAY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_is_that_of_the_example() {
        let (nodes, links) = network().unwrap();
        assert_eq!((nodes.len(), links.len()), (20, 31));
        assert_eq!((nodes[0], nodes[19], links[0]), ("a1", "d5", ["a1:east", "a2:west"]));
    }

    #[test]
    fn times_of_logs_are_found_on_the_clock_of_answers() {
        let line = "2026/11/22 00:00:43.345293 OSPF: [Y05P2-YJVXY] AdjChg: Nbr 10.255.0.2";
        assert_eq!(time_of_day(line), Some(43_345_293));
        assert_eq!(time_of_day("2026/11/22 15:26:43 OSPF: no fraction"), None);
        let begin = Instant::now() + Duration::from_secs(100);
        let later = UNIX_EPOCH + Duration::from_micros(20 * DAY + 45_345_293);
        let found = instant((begin, later), 43_345_293).unwrap();
        assert_eq!(begin - found, Duration::from_secs(2));
        let before_midnight = instant((begin, later), DAY - 1_000_000).unwrap();
        assert_eq!(begin - before_midnight, Duration::from_micros(46_345_293));
    }
}
