//! The node: an FEA that is told of routes by calls.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use weft_manager::interface::Processes;
use weft_netlink::MAIN_TABLE;
use weft_xrl::{IpNet, Request, fib};

use super::super::directory::Directory;
use super::super::program::Program;
use super::super::xip_forward::prefixes::Prefix;
use super::{GATEWAYS, INTERFACE, Measured};
use crate::call::{Client, Reach};

/// How often one looks whether the node is there, and how long at most.
const GLANCE: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a call may take: the last one waits until everything is done.
const LONGEST: Duration = Duration::from_secs(600);
/// Routes of one call.
const TOGETHER: usize = 5_000;

/// A node of which only the FEA does something; it ends with this.
struct Node {
    client: Client,
    // In the order in which they end.
    _program: Program,
    _directory: Directory,
}

pub(super) fn measure(prefixes: &[Prefix]) -> Result<Measured, String> {
    let node = Node::start()?;
    let routes = calls(prefixes);
    let begin = Instant::now();
    node.tell(&routes)?;
    let into = begin.elapsed();
    let before = node.done()?;
    let begin = Instant::now();
    node.tell(&routes)?;
    let anew = begin.elapsed();
    if node.done()? != before {
        return Err("the kernel was told of routes that it has".to_owned());
    }
    let gone: Vec<_> = prefixes.chunks(TOGETHER).map(deletions).collect();
    let begin = Instant::now();
    for call in gone {
        node.call(call)?;
    }
    node.call(END)?;
    let out = begin.elapsed();
    if node.done()? != before + prefixes.len() as u64 {
        return Err("the kernel was not told of every deletion".to_owned());
    }
    Ok(Measured { into, out, anew, memory: node.memory()? })
}

/// The peak memory of an FEA that has nothing to do.
pub(super) fn idle_memory() -> Result<u64, String> {
    Node::start()?.memory()
}

const END: fib::End = fib::End { table: MAIN_TABLE, is_ipv6: false };

fn calls(prefixes: &[Prefix]) -> Vec<fib::Change> {
    let numbered: Vec<_> = prefixes.iter().enumerate().collect();
    let ways: Vec<_> = (0..GATEWAYS)
        .map(|number| fib::Way {
            set: 3 + number as u32,
            gateway: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2 + number as u8)),
            interface: INTERFACE,
            weight: 1,
        })
        .collect();
    let route = |(place, prefix): &(usize, &Prefix)| fib::Route {
        net: net(prefix),
        set: 3 + (place % GATEWAYS) as u32,
        fresh: true,
    };
    let call = |some: &[(usize, &Prefix)]| fib::Change {
        table: MAIN_TABLE,
        is_ipv6: false,
        ways: ways.clone(),
        routes: some.iter().map(route).collect(),
        gone: Vec::new(),
    };
    numbered.chunks(TOGETHER).map(call).collect()
}

fn deletions(prefixes: &[Prefix]) -> fib::Change {
    let gone = prefixes.iter().map(net).collect();
    fib::Change { table: MAIN_TABLE, is_ipv6: false, ways: Vec::new(), routes: Vec::new(), gone }
}

fn net(prefix: &Prefix) -> IpNet {
    // The lengths are those of IPv4.
    IpNet::new_assert(prefix.address.into(), prefix.length)
}

impl Node {
    fn start() -> Result<Self, String> {
        let directory = Directory::new("fib")?;
        let (file, run) = (directory.0.join("node.conf"), directory.0.join("run"));
        // A node has a stack; this one has nothing to do.
        let text = "version 1;\nnode bench;\nxia { principal xdp; }\n";
        fs::write(&file, text).map_err(|error| super::super::cannot_write(&file, &error))?;
        open_to_all(&directory.0)?;
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let log = directory.0.join("log");
        let errors =
            fs::File::create(&log).map_err(|error| super::super::cannot_write(&log, &error))?;
        let mut command = Command::new(program);
        command.arg("run").arg(&file).arg("--run-dir").arg(&run);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let child = command.spawn();
        let child = child
            .map_err(|error| format!("this program cannot be started from itself: {error}"))?;
        let program = Program(child);
        let until = Instant::now() + PATIENCE;
        loop {
            let client = Client::new(&Reach::directory(&run))?;
            if client.call("fea", fib::Tables, Duration::from_secs(1)).is_ok() {
                return Ok(Self { client, _program: program, _directory: directory });
            }
            if Instant::now() > until {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("the node does not start:\n{}", said.trim_end()));
            }
            thread::sleep(GLANCE);
        }
    }

    fn call<R: Request>(&self, request: R) -> Result<R::Reply, String> {
        self.client.call("fea", request, LONGEST).map_err(|error| error.to_string())
    }

    /// Tells everything, and waits until the kernel has it.
    fn tell(&self, routes: &[fib::Change]) -> Result<(), String> {
        let (table, is_ipv6) = (MAIN_TABLE, false);
        self.call(fib::Begin { table, is_ipv6, metric: None, keep: None })?;
        for call in routes {
            self.call(call.clone())?;
        }
        self.call(END)?;
        let refused = self.call(fib::Events { table, is_ipv6, wait: 0 })?.refused;
        match refused.first() {
            Some(first) => Err(format!("the kernel refuses {}: {}", first.net, first.error)),
            None => Ok(()),
        }
    }

    /// How many changes the kernel has made.
    fn done(&self) -> Result<u64, String> {
        let counts = self.call(weft_xrl::monitor::Counters)?.counts;
        let of = ["added", "replaced", "deleted"];
        let counts = counts
            .iter()
            .filter(|count| count.group == "fea-routes" && of.contains(&count.reason.as_str()));
        Ok(counts.map(|count| count.value).sum())
    }

    /// The most memory that the FEA has had, in bytes.
    fn memory(&self) -> Result<u64, String> {
        let all = self.client.call("manager", Processes, Duration::from_secs(10));
        let all = all.map_err(|error| error.to_string())?.processes;
        let fea = all.iter().find(|one| one.class == "fea").ok_or("the node has no FEA")?;
        let text = fs::read_to_string(Path::new("/proc").join(fea.pid.to_string()).join("status"));
        let text = text.map_err(|error| format!("nothing is known of the FEA: {error}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kibibytes
            .map(|number| number << 10)
            .ok_or_else(|| "nothing is known of its memory".to_owned())
    }
}

/// The processes of the node, which have users of their own, pass the directory.
fn open_to_all(directory: &Path) -> Result<(), String> {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(directory, mode)
        .map_err(|error| super::super::cannot_write(directory, &error))
}
