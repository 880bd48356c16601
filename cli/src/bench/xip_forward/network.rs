//! The network: a router and a host in network namespaces, with several cables between them.
//!
//! Every cable's end at the host is both a source and a sink.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::cases::Place;

/// One of the two namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Router,
    Host,
}

impl Side {
    fn letter(self) -> char {
        match self {
            Self::Router => 'r',
            Self::Host => 'h',
        }
    }

    /// The MAC address of its end of a cable; `world.rs` has the same.
    pub(super) fn mac(self, port: usize) -> [u8; 6] {
        let number = port as u8 + 1;
        match self {
            Self::Router => [2, 0, 0, 0, 0, number],
            Self::Host => [2, 0, 0, 0, 1, number],
        }
    }
}

/// The network, which ends with the thread that has made it.
pub(in crate::bench) struct Network {
    place: Place,
}

/// Lets the calling thread see only networks that are made from now on.
pub(in crate::bench) fn enter_namespace() -> Result<(), String> {
    weft_port::namespace::enter().map_err(|error| {
        format!("{error}; run this benchmark as root, it makes network namespaces")
    })
}

impl Network {
    /// Makes the network of a place.
    pub(in crate::bench) fn new(place: Place) -> Result<Self, String> {
        let network = Self { place };
        for side in [Side::Router, Side::Host] {
            run("ip", &["netns", "add", &network.namespace(side)])?;
        }
        for port in 0..place.ports {
            network.lay_cable(port)?;
        }
        Ok(network)
    }

    /// How many cables there are.
    pub(in crate::bench) fn ports(&self) -> usize {
        self.place.ports
    }

    fn namespace(&self, side: Side) -> String {
        format!("weft-{}{}", side.letter(), self.tag())
    }

    /// The name of a side's end of a cable, which no other network of this process has.
    pub(super) fn interface(&self, side: Side, port: usize) -> String {
        format!("x{}{}p{port}", side.letter(), self.tag())
    }

    /// What tells it from the other networks of this process.
    fn tag(&self) -> String {
        let Place { ports, changes } = self.place;
        format!("{ports}{}", if changes { "c" } else { "" })
    }

    fn lay_cable(&self, port: usize) -> Result<(), String> {
        let ends = [Side::Router, Side::Host];
        let [router, host] = ends.map(|side| self.interface(side, port));
        let [router_side, host_side] = ends.map(|side| self.namespace(side));
        let [to_router, to_host] = ends.map(|side| text_of(side.mac(port)));
        let cable = format!(
            "link add {router} address {to_router} netns {router_side} type veth \
             peer name {host} address {to_host} netns {host_side}"
        );
        run("ip", &cable.split_whitespace().collect::<Vec<_>>())?;
        for (side, interface) in ends.into_iter().zip([router, host]) {
            // With GRO an end has a queue of its own (NAPI), without which it takes no redirected frames.
            let script = format!(
                "ethtool -K {interface} gro on && ip link set {interface} up && \
                 echo 1 > /proc/sys/net/ipv6/conf/{interface}/disable_ipv6 && \
                 echo 1 > /sys/class/net/{interface}/threaded"
            );
            self.shell(side, &script)?;
        }
        Ok(())
    }

    /// Runs commands of the shell on one side.
    pub(super) fn shell(&self, side: Side, script: &str) -> Result<(), String> {
        run("ip", &["netns", "exec", &self.namespace(side), "sh", "-e", "-c", script])
    }

    /// Does `work` on one side, on a thread of its own.
    pub(super) fn inside<T: Send>(
        &self,
        side: Side,
        work: impl FnOnce() -> Result<T, String> + Send,
    ) -> Result<T, String> {
        let result = thread::scope(|scope| {
            scope
                .spawn(|| {
                    self.enter(side)?;
                    work()
                })
                .join()
        });
        result.map_err(|_| "a thread in a namespace panicked".to_owned())?
    }

    /// Moves the calling thread to one side.
    pub(super) fn enter(&self, side: Side) -> Result<(), String> {
        let path = format!("/run/netns/{}", self.namespace(side));
        let enter = || -> std::io::Result<()> {
            let file = File::open(&path)?;
            Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
        };
        enter().map_err(|error| format!("cannot enter {path}: {error}"))
    }
}

/// A MAC address as `ip` reads it.
pub(super) fn text_of(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Runs a program, and says what it says if it fails.
pub(in crate::bench) fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run {program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{program} {}` fails: {}", words.join(" "), said.trim()))
}
