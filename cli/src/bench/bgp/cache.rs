//! A cache of the RPKI in a process of its own, which says what it is told on standard input: everything, and payloads that make
//! single routes invalid.
//!
//! Reference: RFC 8210.

use std::collections::HashSet;
use std::fmt;
use std::io::{BufRead, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::str::FromStr;
use std::sync::Mutex;
use std::thread;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use weft_rpki::Payload;
use weft_rpki::rtr::cutter::Cutter;
use weft_rpki::rtr::pdu::{Pdu, Timing, Version};

use super::Time;
use super::table::{self, PROBE_LENGTH};
use crate::output::Outcome;

/// Whoever announces what is invalid is not this system.
const NOBODY: u32 = 4_200_000_000;
/// Every so many routes of the table with this length are invalid.
const EVERY: usize = 15;
const LENGTH: u8 = 24;
/// The session, in the protocol's sense.
const SESSION: u16 = 1;

/// The arguments of the process.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct CacheArgs {
    /// Where it listens
    #[arg(long)]
    pub(super) listen: SocketAddr,
    /// How many routes the table has
    #[arg(long)]
    pub(super) routes: usize,
    /// How many payloads there are
    #[arg(long)]
    pub(super) payloads: usize,
}

/// What it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// All payloads are there.
    Everything,
    /// One more, which makes this probe invalid.
    Probe(usize),
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything => f.write_str("everything"),
            Self::Probe(probe) => write!(f, "probe {probe}"),
        }
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        match line.split_once(' ') {
            None if line == "everything" => Some(Self::Everything),
            Some(("probe", number)) => number.parse().ok().map(Self::Probe),
            _ => None,
        }
        .ok_or_else(|| format!("`{line}` is no order"))
    }
}

/// Payloads for a table of so many routes; and how many of its routes they make invalid.
pub(super) fn payloads(routes: usize, count: usize) -> (Vec<Payload>, usize) {
    let nets: Vec<_> = table::nets(routes)
        .into_iter()
        .filter_map(|net| IpNet::new(net.ip, net.prefix_length).ok())
        .collect();
    let ends = nets.iter().filter(|net| net.prefix_len() == LENGTH).step_by(EVERY);
    let named: HashSet<_> = ends.copied().collect();
    let is_within = |net: &&IpNet| {
        let supernet = IpNet::new(net.addr(), net.prefix_len().min(LENGTH)).map(|one| one.trunc());
        supernet.is_ok_and(|one| named.contains(&one))
    };
    let invalid = nets.iter().filter(is_within).count();
    let mut all: Vec<_> = named.iter().map(|net| payload(*net)).collect();
    // Others are of IPv6, of which there are no routes.
    let others = (0..count.saturating_sub(all.len()) as u128).map(|number| {
        let bits = 0x2000_u128 << 112 | number << 80;
        payload(Ipv6Net::new(bits.into(), 48).expect("there are 128 bits").into())
    });
    all.extend(others);
    (all, invalid)
}

fn payload(net: IpNet) -> Payload {
    Payload::new(net, net.prefix_len().into(), NOBODY).expect("the prefix has this length")
}

fn probe(number: usize) -> Payload {
    let bits = (table::key(&table::probe(number)) >> 8) as u32;
    payload(
        Ipv4Net::new(Ipv4Addr::from_bits(bits), PROBE_LENGTH).expect("there are 32 bits").into(),
    )
}

/// What was said, by serial numbers, and to whom.
struct State {
    said: Vec<Vec<Payload>>,
    router: Option<TcpStream>,
}

/// Runs the process until its standard input ends.
pub(super) fn run(args: &CacheArgs) -> Outcome {
    let (all, _) = payloads(args.routes, args.payloads);
    let failed = |error: std::io::Error| format!("the cache cannot listen: {error}");
    let listener = TcpListener::bind(args.listen).map_err(failed)?;
    // Of something that there is no route for, so that there is something.
    let first = payload(IpNet::V6(Ipv6Net::default()));
    let state = Mutex::new(State { said: vec![vec![first]], router: None });
    thread::scope(|scope| -> Outcome {
        scope.spawn(|| {
            for stream in listener.incoming().flatten() {
                // One that has ended is followed by the next.
                let _ = serve(stream, &state);
            }
        });
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let more = match line.trim().parse()? {
                Order::Everything => all.clone(),
                Order::Probe(number) => vec![probe(number)],
            };
            let time = Time::now();
            notify(more, &state)?;
            say(&format!("said {}", time.0));
        }
        // The other thread waits for connections as long as there is a process.
        std::process::exit(0)
    })
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever does not read any more will end this process.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// There is more to be said.
fn notify(more: Vec<Payload>, state: &Mutex<State>) -> Result<(), String> {
    let mut state = state.lock().map_err(|_| "a thread panicked")?;
    state.said.push(more);
    let pdu = Pdu::SerialNotify { session: SESSION, serial: state.said.len() as u32 };
    let router = state.router.as_mut().ok_or("the router is gone")?;
    router.write_all(&emitted(&[pdu])).map_err(|error| error.to_string())
}

fn emitted(pdus: &[Pdu<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    pdus.iter().for_each(|pdu| pdu.emit(Version::V1, &mut bytes));
    bytes
}

/// Answers a router until its connection ends.
fn serve(mut stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut cutter, mut chunk) = (Cutter::default(), [0; 4096]);
    loop {
        let length = stream.read(&mut chunk)?;
        if length == 0 {
            return Ok(());
        }
        cutter.push(&chunk[..length]);
        while let Some(bytes) = cutter.take() {
            let since = match Pdu::parse(bytes) {
                Ok((_, Pdu::ResetQuery)) => 0,
                Ok((_, Pdu::SerialQuery { serial, .. })) => serial as usize,
                _ => return Ok(()),
            };
            let Ok(mut state) = state.lock() else { return Ok(()) };
            stream.write_all(&answer(&state.said, since))?;
            state.router = Some(stream.try_clone()?);
            say("asked 0");
        }
    }
}

/// What was said after a serial number.
fn answer(said: &[Vec<Payload>], since: usize) -> Vec<u8> {
    let new = said.iter().skip(since).flatten();
    let payloads = new.map(|payload| Pdu::Payload { announced: true, payload: *payload });
    let (session, serial, timing) = (SESSION, said.len() as u32, Timing::default());
    let end = Pdu::EndOfData { session, serial, timing };
    let all: Vec<_> =
        std::iter::once(Pdu::CacheResponse { session }).chain(payloads).chain([end]).collect();
    emitted(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_make_some_routes_invalid_and_orders_are_read_as_they_are_written() {
        let (all, invalid) = payloads(10_000, 2_000);
        let of_routes = all.iter().filter(|payload| matches!(payload.net(), IpNet::V4(_))).count();
        assert_eq!(all.len(), 2_000);
        assert!(
            of_routes > 100 && invalid >= of_routes && invalid < 1_000,
            "{of_routes} {invalid}"
        );
        for order in [Order::Everything, Order::Probe(7)] {
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        assert!("probe x".parse::<Order>().is_err() && "".parse::<Order>().is_err());
        assert_eq!(probe(1).to_string(), "198.18.0.16/28-28 AS4200000000");
    }
}
