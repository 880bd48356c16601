//! Finding out by doing: what a lab needs, tried in namespaces that end with the trying process.
//!
//! The parent starts this program once more, with `doctor --trial`. That child enters namespaces of
//! its own, does everything once and prints what came of it as JSON: a name for each attempt, and
//! `null` or the reason for which it failed. A second child does the same as root of a user namespace,
//! into which unshare(1) takes it, as it takes labs without root.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::process::{Command, Stdio};

use serde_json::{Map, Value};
use weft_ebpf::{EngineMode, EngineProgram, EngineTables, PortSocket, ProgramError, Steering};
use weft_port::{OpenError, PortSpec, namespace};
use weft_xia_kernel::TableSizes;
use weft_xip::numbers::ETHERTYPE_XIP;

use crate::node::open_packet_socket;

/// Where namespaces are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the user namespace of this process, as root does it.
    Here,
    /// In a user namespace of its own.
    UserNamespace,
}

/// The reason for which TUN and TAP fail where everything is allowed but the device.
pub(super) const NO_DEVICE: &str = "/dev/net/tun is not open to this user";

/// Something to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Attempt {
    /// Entering the namespaces; without it nothing else is tried.
    Enter,
    /// A namespace with a name, as `ip netns` keeps it.
    Name,
    PacketSocket,
    Tun,
    Tap,
    Veth,
    /// With the program that steers frames to it.
    XdpSocket,
    /// XIP's, in the network stack.
    KernelEngine,
    Bridge,
    Forwarding,
    Tbf,
    Netem,
    Clsact,
}

impl Attempt {
    /// All but entering, in the order in which they are made.
    pub(super) const INSIDE: [Self; 12] = [
        Self::Name,
        Self::PacketSocket,
        Self::Tun,
        Self::Tap,
        Self::Veth,
        Self::XdpSocket,
        Self::KernelEngine,
        Self::Bridge,
        Self::Forwarding,
        Self::Tbf,
        Self::Netem,
        Self::Clsact,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Enter => "enter",
            Self::Name => "name",
            Self::PacketSocket => "packet-socket",
            Self::Tun => "tun",
            Self::Tap => "tap",
            Self::Veth => "veth",
            Self::XdpSocket => "af-xdp",
            Self::KernelEngine => "kernel-engine",
            Self::Bridge => "bridge",
            Self::Forwarding => "forwarding",
            Self::Tbf => "tbf",
            Self::Netem => "netem",
            Self::Clsact => "clsact",
        }
    }

    /// Makes the attempt, inside.
    fn make(self) -> Result<(), String> {
        match self {
            Self::Enter => Ok(()),
            Self::Name => iproute2("ip netns add weft-doctor"),
            Self::PacketSocket => open_packet_socket().map_err(|error| error.to_string()),
            Self::Tun => open(&PortSpec::Tun { name: "weft-tun".to_owned() }),
            Self::Tap => open(&PortSpec::Tap { name: "weft-tap".to_owned() }),
            Self::Veth => iproute2("ip link add name weft-a type veth peer name weft-b"),
            Self::XdpSocket => steer_to_socket(),
            Self::KernelEngine => attach_engine(),
            Self::Bridge => iproute2("ip link add name weft-bridge type bridge"),
            Self::Forwarding => enable_forwarding(),
            Self::Tbf => iproute2("tc qdisc add dev lo root tbf rate 1gbit burst 16k latency 1ms"),
            Self::Netem => iproute2("tc qdisc replace dev lo root netem delay 1ms"),
            Self::Clsact => iproute2("tc qdisc add dev lo clsact"),
        }
    }
}

/// Makes the attempts in this process, which must be used for nothing else, and gives what came of
/// them as JSON.
pub(super) fn attempt_all() -> Value {
    let entered = namespace::enter().map_err(|error| error.to_string());
    let mut results = vec![(Attempt::Enter, entered)];
    if results[0].1.is_ok() {
        results.extend(Attempt::INSIDE.map(|attempt| (attempt, attempt.make())));
    }
    let fields = results.into_iter().map(|(attempt, result)| {
        (attempt.name().to_owned(), result.err().map_or(Value::Null, Value::String))
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

fn open(spec: &PortSpec) -> Result<(), String> {
    match weft_port::open(spec, &weft_port::Options::default()) {
        Ok(_) => Ok(()),
        Err(OpenError::NoPrivilege { .. }) => Err(NO_DEVICE.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A port of AF_XDP at one end of the pair that was made before.
fn steer_to_socket() -> Result<(), String> {
    iproute2("ip link set weft-a up")?;
    let spec = PortSpec::Xdp { interface: "weft-a".to_owned(), ethertype: ETHERTYPE_XIP };
    let port = weft_port::open(&spec, &weft_port::Options::default());
    let port = port.map_err(|error| error.to_string())?;
    let text = |error: ProgramError| error.to_string();
    let socket = PortSocket::none().map_err(text)?;
    socket.set(port.fd()).map_err(text)?;
    Steering::attach("weft-a", ETHERTYPE_XIP, &socket).map(drop).map_err(text)
}

/// The engine of XIP at the other end.
fn attach_engine() -> Result<(), String> {
    let text = |error: ProgramError| error.to_string();
    let engine = weft_xia_kernel::engine(&TableSizes::default());
    let tables = EngineTables::create(&engine).map_err(text)?;
    let socket = PortSocket::none().map_err(text)?;
    let program = EngineProgram::load(&engine, &tables, [0; 6], socket).map_err(text)?;
    program.attach("weft-b", EngineMode::Auto).map(drop).map_err(text)
}

fn enable_forwarding() -> Result<(), String> {
    let path = "/proc/sys/net/ipv4/ip_forward";
    fs::write(path, "1").map_err(|error| format!("{path} cannot be written: {error}"))
}

/// Runs `ip` or `tc`, by the path by which a lab runs them.
fn iproute2(command: &str) -> Result<(), String> {
    let mut words = command.split_ascii_whitespace();
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(reason(&String::from_utf8_lossy(&output.stderr))),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(missing(program)),
        Err(error) => Err(format!("`{program}` cannot be run: {error}")),
    }
}

/// The reason for an attempt that was not made for lack of a program.
fn missing(program: &str) -> String {
    format!("`{program}` is missing, so that this cannot be tried")
}

/// What iproute2 says, without the words that are the same for every failure.
fn reason(said: &str) -> String {
    let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
    let line = line.trim().strip_prefix("Error: ").unwrap_or(line.trim());
    let line = line.strip_prefix("RTNETLINK answers: ").unwrap_or(line);
    line.trim_end_matches('.').to_owned()
}

/// What came of the attempts in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trial(BTreeMap<String, Option<String>>);

impl Trial {
    /// Has a child process make the attempts.
    fn run(place: Place) -> Self {
        let result = ask_child(place).and_then(|text| Self::parse(&text));
        result.unwrap_or_else(|error| {
            Self(BTreeMap::from([(Attempt::Enter.name().to_owned(), Some(error))]))
        })
    }

    /// Reads what [`attempt_all`] gave.
    fn parse(text: &str) -> Result<Self, String> {
        let fields: BTreeMap<String, Option<String>> = serde_json::from_str(text)
            .map_err(|error| format!("the trial printed no result ({error})"))?;
        match fields.contains_key(Attempt::Enter.name()) {
            true => Ok(Self(fields)),
            false => Err("the trial printed another result".to_owned()),
        }
    }

    /// Whether an attempt succeeded, or why not.
    pub(super) fn result(&self, attempt: Attempt) -> Result<(), &str> {
        match self.0.get(attempt.name()) {
            Some(None) => Ok(()),
            Some(Some(reason)) => Err(reason),
            None => Err("not tried: there is no namespace to try it in"),
        }
    }
}

fn ask_child(place: Place) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = match place {
        Place::Here => Command::new(program),
        Place::UserNamespace => {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "--"]).arg(program);
            command
        }
    };
    let output = command.args(["doctor", "--trial"]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| match (error.kind(), place) {
        (ErrorKind::NotFound, Place::UserNamespace) => missing("unshare"),
        _ => error.to_string(),
    })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(reason(&String::from_utf8_lossy(&output.stderr))),
    }
}

/// What came of the attempts in both places.
#[derive(Debug)]
pub(super) struct Trials {
    pub(super) here: Trial,
    pub(super) in_user_namespace: Trial,
    /// Whether this user is root, whose labs need no user namespace.
    pub(super) is_root: bool,
}

impl Trials {
    /// Makes all attempts; takes a moment.
    pub(super) fn run() -> Self {
        Self {
            here: Trial::run(Place::Here),
            in_user_namespace: Trial::run(Place::UserNamespace),
            is_root: rustix::process::geteuid().is_root(),
        }
    }

    /// Where labs of this user run, and what came of the attempts there.
    pub(super) fn of_labs(&self) -> (Place, &Trial) {
        match self.is_root {
            true => (Place::Here, &self.here),
            false => (Place::UserNamespace, &self.in_user_namespace),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The trial of a machine on which everything works but `failed`.
    pub(crate) fn all_but(failed: &[(Attempt, &str)]) -> Trial {
        let mut fields: BTreeMap<_, _> = [Attempt::Enter]
            .into_iter()
            .chain(Attempt::INSIDE)
            .map(|attempt| (attempt.name().to_owned(), None))
            .collect();
        for (attempt, reason) in failed {
            fields.insert(attempt.name().to_owned(), Some((*reason).to_owned()));
        }
        Trial(fields)
    }

    /// The trial of a machine that gives no namespaces.
    pub(crate) fn refused(reason: &str) -> Trial {
        Trial(BTreeMap::from([("enter".to_owned(), Some(reason.to_owned()))]))
    }

    #[test]
    fn results_are_read_as_they_were_printed() {
        let trial = Trial::parse(r#"{"enter": null, "veth": "Unknown device type"}"#).unwrap();
        assert_eq!(trial.result(Attempt::Enter), Ok(()));
        assert_eq!(trial.result(Attempt::Veth), Err("Unknown device type"));
        assert!(trial.result(Attempt::Tun).unwrap_err().contains("not tried"));
    }

    #[test]
    fn other_output_is_no_result() {
        for text in ["", "{}", "null", "[]", "{\"enter\": 1}", "thread main panicked"] {
            assert!(Trial::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn messages_of_iproute2_lose_what_they_all_have() {
        assert_eq!(reason("Error: Unknown device type.\n"), "Unknown device type");
        assert_eq!(reason("RTNETLINK answers: File exists\n"), "File exists");
        assert_eq!(reason("\nError: RTNETLINK answers: No such\nmore"), "No such");
        assert_eq!(reason(""), "no reason given");
    }

    #[test]
    fn labs_run_in_a_user_namespace_without_root() {
        let place = |is_root| {
            Trials { here: all_but(&[]), in_user_namespace: all_but(&[]), is_root }.of_labs().0
        };
        assert_eq!((place(true), place(false)), (Place::Here, Place::UserNamespace));
    }

    #[test]
    fn names_of_attempts_are_different() {
        let names: std::collections::BTreeSet<_> =
            Attempt::INSIDE.iter().map(|attempt| attempt.name()).collect();
        assert_eq!(names.len(), Attempt::INSIDE.len());
        assert!(!names.contains(Attempt::Enter.name()));
    }
}
