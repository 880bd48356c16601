//! Many speakers of BGP in one process: each announces some routes, and counts what it is told of all others'.
//!
//! It goes its way without being told anything, reports each step on standard output, and stays until its standard
//! input ends. A prefix that a peer is told twice counts once.

use std::collections::BTreeSet;
use std::io::Read;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weft_bgp::wire::{
    AsPath, Attributes, Context, Family, Neighbour, NextHop, Origin, UpdateEncoder, withdraw,
};
use weft_routing::Prefix;

use super::super::samples::Samples;
use super::Time;
use super::network::Peer;
use super::speaker::Ends;
use super::table::key;
use crate::bgp::session::{CHUNK, Piece, Said, Session};
use crate::output::{Outcome, print_lines};

/// How many sessions are opened at the same time.
const TOGETHER: usize = 16;
/// The first network of all; each route is one of 256 addresses.
const FIRST: u32 = 20 << 24;
/// How often one route more comes and goes.
const SINGLES: u32 = 25;
/// How long it is quiet before it does.
const QUIET: Duration = Duration::from_millis(20);
const LENGTH: u8 = 24;

/// The arguments of the process.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct CrowdArgs {
    /// How many speakers
    #[arg(long)]
    pub(super) peers: u16,
    /// How many routes each of them announces
    #[arg(long)]
    pub(super) routes: u32,
    /// Take several routes for a prefix (RFC 7911)
    #[arg(long)]
    pub(super) paths: bool,
}

impl CrowdArgs {
    /// How many routes all of them announce.
    fn of_all(&self) -> u32 {
        u32::from(self.peers) * self.routes
    }

    /// How many routes each of them is told of.
    fn of_others(&self) -> u32 {
        self.of_all() - self.routes
    }
}

/// One of them.
struct Member {
    session: Session<()>,
    /// Its own routes, by their numbers.
    own: Range<u32>,
    /// A bit for each route of all that it was told of, and how many there are.
    seen: Vec<u64>,
    count: u32,
}

/// Runs the process.
pub(super) fn run(args: &CrowdArgs) -> Outcome {
    let first = Time::now();
    let mut members = open(args)?;
    print_lines([format!("open {}", milliseconds(first))])?;
    let begin = Time::now();
    for (number, member) in members.iter_mut().enumerate() {
        let bytes = announcement(Peer::of_crowd(number as u16), member.own.clone()).into();
        member.session.push(Piece { bytes, note: () });
    }
    exchange(&mut members, |_| args.of_others())?;
    print_lines([format!("told {}", milliseconds(begin))])?;
    print_lines([format!("one {}", singles(&mut members, args)?)])?;
    // Whoever has started this looks at the router now.
    let _ = std::io::stdin().read(&mut [0]);
    Ok(0)
}

/// One route more that the first of them announces and withdraws: after how many milliseconds all others know, the median.
fn singles(members: &mut [Member], args: &CrowdArgs) -> Result<f64, String> {
    let (others, extra) = (args.of_others(), args.of_all());
    let announced = announcement(Peer::of_crowd(0), extra..extra + 1);
    let mut withdrawn = Vec::new();
    let context = Context::new(Neighbour::External);
    withdraw(Family::IPV4_UNICAST, &context, [(0, prefix(extra))], &mut withdrawn);
    let mut times = Vec::new();
    for (bytes, more) in (0..SINGLES).flat_map(|_| [(&announced, 1), (&withdrawn, 0)]) {
        thread::sleep(QUIET);
        let begin = Time::now();
        members[0].session.push(Piece { bytes: bytes.clone().into(), note: () });
        exchange(members, |place| others + if place == 0 { 0 } else { more })?;
        times.push(milliseconds(begin));
    }
    Ok(Samples::new(times).median())
}

fn milliseconds(since: Time) -> f64 {
    Time::now().since(since).as_secs_f64() * 1e3
}

/// Opens all sessions.
fn open(args: &CrowdArgs) -> Result<Vec<Member>, String> {
    let numbers: Vec<_> = (0..args.peers).collect();
    // One route more comes and goes at the end.
    let words = (args.of_all() + 1).div_ceil(u64::BITS) as usize;
    let member = |number: &u16| {
        let peer = Peer::of_crowd(*number);
        let Peer { address, router, autonomous_system, .. } = peer;
        let session = Ends { local: address, router, autonomous_system }.open_soon(args.paths)?;
        let start = u32::from(*number) * args.routes;
        let own = start..start + args.routes;
        Ok(Member { session, own, seen: vec![0; words], count: 0 })
    };
    thread::scope(|scope| {
        let part = |numbers: &[u16]| numbers.iter().map(member).collect::<Result<Vec<_>, String>>();
        let share = numbers.len().div_ceil(TOGETHER);
        let threads: Vec<_> =
            numbers.chunks(share).map(|chunk| scope.spawn(move || part(chunk))).collect();
        let mut members = Vec::with_capacity(numbers.len());
        for thread in threads {
            members.extend(thread.join().map_err(|_| "a thread panicked".to_owned())??);
        }
        Ok(members)
    })
}

fn announcement(peer: Peer, routes: Range<u32>) -> Vec<u8> {
    let attributes = Attributes {
        as_path: AsPath::from_sequence(&[peer.autonomous_system]),
        next_hop: Some(NextHop::V4(peer.address)),
        origin: Origin::Igp,
        ..Attributes::default()
    };
    let context = Context::new(Neighbour::External);
    let encoder = UpdateEncoder::new(&attributes, Family::IPV4_UNICAST, &context)
        .expect("a number and a next hop fit");
    let mut bytes = Vec::new();
    encoder.all(routes.map(|route| (0, prefix(route))), &mut bytes);
    bytes
}

fn prefix(route: u32) -> Prefix {
    let bits = FIRST + (route << (32 - LENGTH));
    Prefix::new(&bits.to_be_bytes(), LENGTH).expect("addresses of IPv4 have 32 bits")
}

/// Which route a prefix is.
fn number(prefix: &Prefix) -> Option<u32> {
    let bits = (key(prefix) >> 8) as u32;
    (prefix.length() == LENGTH).then_some(bits.checked_sub(FIRST)? >> (32 - LENGTH))
}

impl Member {
    fn note(&mut self, said: Said, prefix: &Prefix) {
        let Some(number) = number(prefix).filter(|number| !self.own.contains(number)) else {
            return;
        };
        let Some(word) = self.seen.get_mut((number / u64::BITS) as usize) else { return };
        let bit = 1 << (number % u64::BITS);
        match said {
            Said::Announced if *word & bit == 0 => self.count += 1,
            Said::Withdrawn if *word & bit != 0 => self.count -= 1,
            _ => return,
        }
        *word ^= bit;
    }
}

/// Sends and receives until everybody, by his place, has been told of so many routes.
fn exchange(members: &mut [Member], wanted: impl Fn(usize) -> u32) -> Result<(), String> {
    let mut chunk = vec![0; CHUNK];
    let is_done = |place: usize, member: &Member| {
        member.count == wanted(place) && !member.session.is_sending()
    };
    let mut waiting: BTreeSet<usize> =
        (0..members.len()).filter(|place| !is_done(*place, &members[*place])).collect();
    while !waiting.is_empty() {
        for place in ready(members)? {
            let member = &mut members[place];
            let mut said = Vec::new();
            member.session.send(|(), _, _| {})?;
            member.session.receive(&mut chunk, |what, prefix, _| said.push((what, prefix)))?;
            said.iter().for_each(|(what, prefix)| member.note(*what, prefix));
            if is_done(place, member) {
                waiting.remove(&place);
            } else {
                waiting.insert(place);
            }
        }
    }
    Ok(())
}

/// Waits, and says whose sessions can send or receive, or have a keepalive to send.
fn ready(members: &[Member]) -> Result<Vec<usize>, String> {
    let now = Instant::now();
    let mut fds: Vec<_> = members
        .iter()
        .map(|Member { session, .. }| {
            let mut wanted = PollFlags::IN;
            wanted.set(PollFlags::OUT, session.is_sending());
            PollFd::from_borrowed_fd(session.fd(), wanted)
        })
        .collect();
    let deadline = members.iter().map(|member| member.session.deadline()).min().unwrap_or(now);
    let timeout = Timespec::try_from(deadline.saturating_duration_since(now)).ok();
    poll(&mut fds, timeout.as_ref()).map_err(|errno| errno.to_string())?;
    let now = Instant::now();
    let is_ready = |(place, fd): &(usize, &PollFd<'_>)| {
        !fd.revents().is_empty() || members[*place].session.deadline() <= now
    };
    Ok(fds.iter().enumerate().filter(is_ready).map(|(place, _)| place).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_known_by_their_prefixes() {
        for route in [0, 1, 99_999] {
            assert_eq!(number(&prefix(route)), Some(route));
        }
        assert_eq!(number(&Prefix::new(&[19, 0, 0], 24).unwrap()), None);
        assert_eq!(number(&Prefix::new(&[20, 0], 16).unwrap()), None);
    }
}
