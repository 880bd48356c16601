//! The network: a router in a namespace, its peers in another one, and a cable for each.

use std::io::Write;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::thread;

use super::super::xip_forward::network::{enter_namespace, run};

/// The namespace of the peers, which only the thread sees that has made it.
pub(super) const PEERS: &str = "peers";

/// The first of many peers.
const CROWD: Ipv4Addr = Ipv4Addr::new(10, 254, 0, 1);

/// A peer of the router: both addresses, and the number of its autonomous system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) router: Ipv4Addr,
    pub(super) address: Ipv4Addr,
    pub(super) autonomous_system: u32,
    /// Whether the router tells it of routes.
    pub(super) is_told: bool,
    /// Whether a policy of its own decides of which, as in a route server: not of those that have a community which says so.
    pub(super) has_policy: bool,
    /// Whether the router tells it of all routes to a prefix, not of the best alone.
    pub(super) hears_paths: bool,
    /// It is no peer but a cache of the RPKI: routes that are invalid by it are not taken.
    pub(super) tells_payloads: bool,
}

/// What the router does with its third peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Third {
    /// It takes routes from it, and tells it of none.
    IsNotTold,
    IsTold,
}

impl Peer {
    /// Where a cache listens.
    pub(super) const CACHE_PORT: u16 = 3323;

    /// The cache among these, if there is one.
    pub(super) fn cache(peers: &[Self]) -> Option<Ipv4Addr> {
        peers.iter().find(|peer| peer.tells_payloads).map(|peer| peer.address)
    }

    /// Peer `number` of a thousand or more, from 0 on.
    pub(super) fn of_crowd(number: u16) -> Self {
        Self {
            router: Ipv4Addr::new(10, 254, 255, 254),
            address: Ipv4Addr::from_bits(CROWD.to_bits() + u32::from(number)),
            autonomous_system: 100_000 + u32::from(number),
            is_told: true,
            has_policy: false,
            hears_paths: false,
            tells_payloads: false,
        }
    }

    /// The peer behind cable `number`, from 1 on.
    pub(super) fn behind(number: u8, is_told: bool) -> Self {
        Self {
            router: Ipv4Addr::new(10, 255, number, 1),
            address: Ipv4Addr::new(10, 255, number, 2),
            autonomous_system: 65_000 + u32::from(number),
            is_told,
            has_policy: false,
            hears_paths: false,
            tells_payloads: false,
        }
    }

    fn cable(&self) -> Cable {
        Cable { router: self.router, length: 24, addresses: vec![self.address] }
    }
}

/// A cable, with the router's address and all those at its other end.
#[derive(Clone, Debug)]
struct Cable {
    router: Ipv4Addr,
    length: u8,
    addresses: Vec<Ipv4Addr>,
}

/// Does something in the namespace of a router with these peers, each behind a cable of its own. All of it is gone at
/// the end.
pub(super) fn within<T: Send>(
    peers: &[Peer],
    work: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    within_cables(&peers.iter().map(Peer::cable).collect::<Vec<_>>(), work)
}

/// The same with all of them behind one cable.
pub(super) fn within_one<T: Send>(
    peers: &[Peer],
    work: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    let router = peers.first().map_or(Ipv4Addr::UNSPECIFIED, |peer| peer.router);
    let addresses = peers.iter().map(|peer| peer.address).collect();
    within_cables(&[Cable { router, length: 16, addresses }], work)
}

fn within_cables<T: Send>(
    cables: &[Cable],
    work: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    let inside = || {
        enter_namespace()?;
        ip("link set lo up")?;
        ip(&format!("netns add {PEERS}"))?;
        ip(&format!("-n {PEERS} link set lo up"))?;
        cables.iter().enumerate().try_for_each(|(number, cable)| cable.lay(number))?;
        let result = work();
        // Interfaces go with their namespace, which would wait for the last process in it.
        let _ = ip(&format!("netns delete {PEERS}"));
        result
    };
    let result = thread::scope(|scope| scope.spawn(inside).join());
    result.map_err(|_| "a thread in a namespace panicked".to_owned())?
}

impl Cable {
    fn lay(&self, number: usize) -> Result<(), String> {
        let (name, Self { router, length, .. }) = (format!("cable{number}"), self);
        let mac = format!("02:00:00:00:00:{number:02x}");
        let far = format!("peer name {name} netns {PEERS} address {mac}");
        ip(&format!("link add {name} type veth {far}"))?;
        ip(&format!("address add {router}/{length} dev {name}"))?;
        ip(&format!("link set {name} up"))?;
        ip(&format!("-n {PEERS} link set {name} up"))?;
        let (mut near, mut far) = (String::new(), String::new());
        for address in &self.addresses {
            far += &format!("address add {address}/{length} dev {name}\n");
            // The kernel learns no more than a thousand neighbours by itself.
            near += &format!("neighbour add {address} lladdr {mac} dev {name} nud permanent\n");
        }
        batch(&[], &near)?;
        batch(&["-n", PEERS], &far)
    }
}

/// Runs many commands at once.
fn batch(options: &[&str], lines: &str) -> Result<(), String> {
    let child =
        Command::new("ip").args(options).args(["-batch", "-"]).stdin(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("cannot run ip: {error}"))?;
    let input = child.stdin.take();
    let written = input.map_or(Ok(()), |mut input| input.write_all(lines.as_bytes()));
    let status = child.wait().map_err(|error| format!("cannot run ip: {error}"))?;
    match (written, status.success()) {
        (Ok(()), true) => Ok(()),
        _ => Err(format!("`ip -batch` fails: {status}")),
    }
}

fn ip(words: &str) -> Result<(), String> {
    run("ip", &words.split(' ').collect::<Vec<_>>())
}
