//! Where the machine's IP leads, for every member that watches it.
//!
//! A process that may not watch the kernel is told by the FEA: it asks what is different and is answered when something
//! is. When the FEA dies, members keep what they know, and the next FEA tells everything anew.

use std::collections::{BTreeSet, VecDeque};

use weft_base::Token;
use weft_runtime::{Action, Event, InterfaceAddress, IpChange, IpWay, Level};

use super::from_fea::{Asked, OWN, Wanted};
use super::{Host, Now};
use crate::component::{Input, Reply};
use crate::{ErrorCode, XrlError, fea};

/// How many things one answer of the FEA tells of at most.
const AT_MOST: u32 = 4096;
/// How long an answer may take, in milliseconds: less than a call.
const WAIT: u32 = 20_000;

#[derive(Default)]
pub(super) struct Ip {
    watching: BTreeSet<usize>,
    /// The number of the latest question; an answer to an earlier one is of no use any more.
    round: u64,
}

/// A question to the FEA.
#[derive(Clone, Copy)]
pub(super) struct Watching {
    round: u64,
    begin: bool,
}

impl Watching {
    pub(super) fn request(&self) -> fea::WatchIp {
        fea::WatchIp { begin: self.begin, at_most: AT_MOST, wait: WAIT }
    }
}

impl Ip {
    /// There is something to be told.
    pub(super) fn changed(&self, changes: &[IpChange], inputs: &mut VecDeque<(usize, Input)>) {
        inputs.extend(
            self.watching
                .iter()
                .map(|member| (*member, Input::World(Event::Ip { changes: changes.to_vec() }))),
        );
    }
}

impl Host {
    /// A member begins to watch. All are told everything anew.
    pub(super) fn watch_ip(&mut self, member: usize, now: &mut Now<'_>) {
        self.ip.watching.insert(member);
        match self.settings.ports_from_fea {
            true => self.ask_about_ip(true, now),
            false => now.out.push(Action::WatchIp),
        }
    }

    fn ask_about_ip(&mut self, begin: bool, now: &mut Now<'_>) {
        let asked = self.question(begin, now);
        self.ask_fea(asked, now);
    }

    fn question(&mut self, begin: bool, now: &Now<'_>) -> Asked {
        self.ip.round += 1;
        let wanted = Wanted::Ip(Watching { round: self.ip.round, begin });
        Asked { member: OWN, token: Token(0), wanted, deadline: now.time }
    }

    /// The FEA has answered.
    pub(super) fn ip_answered(
        &mut self,
        watching: Watching,
        is_away: bool,
        result: Result<Reply, XrlError>,
        now: &mut Now<'_>,
    ) {
        if watching.round != self.ip.round {
            return;
        }
        match result.and_then(|reply| reply.read::<fea::WatchIp>()).and_then(changes) {
            Ok(changes) => {
                if !changes.is_empty() {
                    self.ip.changed(&changes, &mut self.inputs);
                }
                self.ask_about_ip(false, now);
            }
            // It is being started.
            Err(error) if is_away || error.code == ErrorCode::ReplyTimedOut => {
                let asked = self.question(true, now);
                self.ask_later(asked, now);
            }
            Err(error) => {
                let line = format!("the FEA does not tell where IP leads: {error}");
                now.report(Level::Error, line);
                let none = |is_ipv6| IpChange::NoTable { is_ipv6, error: error.note.clone() };
                let changes = [IpChange::Again, none(false), none(true), IpChange::Complete];
                self.ip.changed(&changes, &mut self.inputs);
            }
        }
    }
}

/// What an answer of the FEA says.
fn changes(reply: fea::WatchIpReply) -> Result<Vec<IpChange>, XrlError> {
    let mut changes = Vec::new();
    changes.extend(reply.again.then_some(IpChange::Again));
    let missing = reply.missing.into_iter();
    changes.extend(
        missing.map(|fea::IpMissing { is_ipv6, error }| IpChange::NoTable { is_ipv6, error }),
    );
    changes.extend(
        reply
            .rules
            .into_iter()
            .map(|fea::IpRules { is_ipv6, count }| IpChange::Rules { is_ipv6, count }),
    );
    changes.extend(reply.interfaces.into_iter().map(|fea::IpInterface { index, name }| {
        IpChange::Interface { index, name: (!name.is_empty()).then_some(name) }
    }));
    for route in reply.routes {
        changes.push(read_route(&route)?);
    }
    changes.extend(reply.neighbours.into_iter().map(|one| IpChange::Neighbour {
        interface: one.interface,
        ip: one.ip,
        mac: (one.mac.0 != [0; 6]).then_some(one.mac.0),
        idle: one.idle,
    }));
    changes.extend(reply.complete.then_some(IpChange::Complete));
    Ok(changes)
}

fn read_route(route: &fea::IpRoute) -> Result<IpChange, XrlError> {
    let way = match route.way.as_str() {
        "none" => None,
        "local" => Some(IpWay::Local),
        "nowhere" => Some(IpWay::Nowhere),
        "out" => {
            let gateway = Some(route.gateway).filter(|gateway| !gateway.is_unspecified());
            Some(IpWay::Out { interface: route.interface, gateway })
        }
        other => {
            let note = format!("the FEA has told of a way that there is not: {other}");
            return Err(XrlError::bad_args(note));
        }
    };
    let (ip, prefix_length) = (route.destination.addr(), route.destination.prefix_len());
    Ok(IpChange::Route { destination: InterfaceAddress { ip, prefix_length }, way })
}
