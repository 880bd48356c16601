//! RFC 7606 through sessions: what comes of each malformed UPDATE for the session, the routes, the RIB and another peer.
//!
//! In each world the first peer announces good routes, then what is malformed, and behind it in the same bytes another good
//! route. The second peer hears of all that.

use std::collections::BTreeSet;

use ipnet::IpNet;
use serde_json::Value;

use super::*;
use crate::numbers::error_code;
use crate::wire::malformed::{
    Demand, GLOBAL, NEXT_HOP, NLRI, ORIGIN, PREFIX6, Row, Sender, body, message, mp_reach, rows,
};
use crate::wire::{Families, Notification};

/// The networks that malformed messages may be about, and one beside each.
const NET4: &str = "198.51.100.0/24";
const NET6: &str = "2001:db8::/32";
const BESIDE4: &str = "192.88.99.0/24";
const BESIDE6: &str = "2a00::/16";
/// What is announced behind the malformed message.
const BEHIND: &str = "203.0.113.0/24";
const BEHIND_NLRI: &[u8] = &[24, 203, 0, 113];
/// So that the first routes are told from those that malformed messages bring.
const MED: &[u8] = &[0x80, 4, 4, 0, 0, 0, 7];

fn nets<'a>(texts: impl IntoIterator<Item = &'a str>) -> BTreeSet<IpNet> {
    texts.into_iter().map(|text| text.parse().unwrap()).collect()
}

/// The second peer, and the first one as the sender of a row, with good routes.
struct Case {
    world: World,
    sender: Sender,
}

impl Case {
    fn new(sender: Sender) -> Self {
        let mut world = World::started("");
        world.born(false);
        let (system, families) = match sender {
            Sender::Internal => (65000, "ipv4-unicast ipv6-unicast"),
            Sender::Ipv4 => (65001, "ipv4-unicast"),
            Sender::External | Sender::TwoOctets => (65001, "ipv4-unicast ipv6-unicast"),
        };
        let peer = |number, system, families| {
            let address = address(number);
            format!(
                "peer {address} {{ as {system}; passive on; hold-time {HOLD}s; import all; export all; family {families}; }}"
            )
        };
        let first = peer(1, system, families);
        let second = peer(2, 65002, "ipv4-unicast ipv6-unicast");
        let text = format!("bgp {{ as 65000; router-id 192.0.2.9; {first} {second} }}");
        world.configure_as(config::read("t", &text).unwrap());
        // Without an address of IPv6 here the second peer could be told no routes of that.
        [1, 2].into_iter().for_each(|number| drop(world.happens(link(number, true))));
        world.connect_with(2, &families_of(Sender::External));
        let mut case = Self { world, sender };
        case.connect();
        case
    }

    /// The first peer connects, and announces good routes.
    fn connect(&mut self) {
        let system = if self.sender == Sender::Internal { 65000 } else { 65001 };
        let mut open = Open::new(system, HOLD, address(1));
        if self.sender == Sender::TwoOctets {
            open.capabilities.clear();
        }
        self.world.connect_as(1, open, &families_of(self.sender));
        self.announce(&[NLRI, &[24, 192, 88, 99]].concat(), &[PREFIX6, &[16, 0x2A, 0]].concat());
    }

    /// The first peer announces these.
    fn announce(&mut self, four: &[u8], six: &[u8]) -> Vec<Output> {
        let path = self.sender.path();
        let mut bytes = message(&body(&[ORIGIN, path, NEXT_HOP, MED], four));
        if self.sender != Sender::Ipv4 && !six.is_empty() {
            bytes.extend(message(&body(&[&mp_reach(&GLOBAL, six), ORIGIN, path, MED], &[])));
        }
        self.world.says(1, &bytes)
    }

    /// The first peer sends this body, and a good route behind it.
    fn says(&mut self, malformed: &[u8]) -> Vec<Output> {
        let behind = body(&[ORIGIN, self.sender.path(), NEXT_HOP], BEHIND_NLRI);
        self.world.says(1, &[message(malformed), message(&behind)].concat())
    }

    fn peer(&self) -> &Peer {
        &self.world.bgp.peers[&IpAddr::from(address(1))]
    }

    /// All routes, as they came from the first peer, and as the second one is told them.
    fn shown(&self) -> [Value; 2] {
        let received = interface::Show { received_from: Some(address(1).into()), ..show("routes") };
        let told = interface::Show { advertised_to: Some(address(2).into()), ..show("routes") };
        [received, told].map(|request| self.world.bgp.show(self.world.now, &request).unwrap())
    }

    /// The session stays, the fault was counted, and the log has said so.
    fn goes_on(&self, row: &Row, out: &[Output]) {
        let (name, peer) = (row.name, self.peer());
        assert!(peer.up.is_some(), "{name}: {:?}", peer.ending);
        assert_eq!((sent(1, out), peer.tally.sessions), (vec![], 1), "{name}");
        let counted = (peer.tally.faults, self.world.bgp.counters.get(Activity::Faults));
        assert!(counted.0 > 0 && counted.0 == counted.1, "{name}: {counted:?}");
        let is_said = |one: &Output| {
            matches!(one, Output::World(Action::Report { level: Level::Warning, line })
                if line.starts_with("10.0.1.2: in an UPDATE"))
        };
        assert!(out.iter().any(is_said), "{name}: {out:?}");
    }
}

fn families_of(sender: Sender) -> Vec<Capability> {
    sender.context().families.iter().map(Capability::Multiprotocol).collect()
}

/// What the second peer is told: which networks come, and which go.
fn heard(out: &[Output]) -> [BTreeSet<IpNet>; 2] {
    let families = Families::from_iter([Family::IPV4_UNICAST, Family::IPV6_UNICAST]);
    let context = Context { families, ..Context::new(Neighbour::External) };
    let (mut come, mut gone) = (BTreeSet::new(), BTreeSet::new());
    for (_, body) in messages(2, out).into_iter().filter(|one| one.0 == MessageType::Update) {
        let update = Update::new_checked(&body, &context).unwrap();
        let nets = |family, nlri: crate::wire::Nlri<'_>| -> Vec<_> {
            let version = crate::incoming::version(family).unwrap();
            nlri.iter().map(|(_, prefix)| version.net(&prefix)).collect()
        };
        update.reach().for_each(|reach| come.extend(nets(reach.family, reach.nlri)));
        update.withdrawn().for_each(|(family, nlri)| gone.extend(nets(family, nlri)));
    }
    [come, gone]
}

/// Each row with such a demand, in a world of its own.
fn each(is_asked: impl Fn(&Demand) -> bool, check: impl Fn(&Row, Case)) {
    let asked: Vec<_> = rows().into_iter().filter(|row| is_asked(&row.demand)).collect();
    assert!(!asked.is_empty());
    asked.iter().for_each(|row| check(row, Case::new(row.sender)));
}

#[test]
fn what_is_discarded_is_as_if_it_had_never_been_there() {
    each(
        |demand| matches!(demand, Demand::Discard(_)),
        |row, mut case| {
            let Demand::Discard(same) = &row.demand else { unreachable!() };
            let (mut other, before) = (Case::new(row.sender), case.world.rib.routes.clone());
            let (out, same) = (case.says(&row.body), other.says(same));
            case.goes_on(row, &out);
            assert_eq!(case.shown(), other.shown(), "{}", row.name);
            assert_eq!(messages(2, &out), messages(2, &same), "{}", row.name);
            // All routes stay, and what is behind is there, too.
            assert_eq!(case.world.rib.routes, &before | &nets([BEHIND]), "{}", row.name);
        },
    );
}

#[test]
fn what_is_taken_for_withdrawn_is_gone_and_may_come_again() {
    each(
        |demand| matches!(demand, Demand::Withdraw(_)),
        |row, mut case| {
            let is_six = row.demand == Demand::Withdraw(Family::IPV6_UNICAST);
            let gone = nets([if is_six { NET6 } else { NET4 }]);
            let rest = &nets([NET4, NET6, BESIDE4, BESIDE6, BEHIND]) - &gone;
            let out = case.says(&row.body);
            case.goes_on(row, &out);
            assert_eq!(heard(&out), [nets([BEHIND]), gone.clone()], "{}", row.name);
            assert_eq!(case.world.rib.routes, rest, "{}", row.name);
            let text = gone.first().unwrap().to_string();
            assert!(case.shown().iter().all(|shown| !shown.to_string().contains(&text)));
            let out = case.announce(NLRI, PREFIX6);
            assert!(heard(&out)[0].is_superset(&gone), "{}", row.name);
            assert_eq!(case.world.rib.routes, &rest | &gone, "{}", row.name);
        },
    );
}

#[test]
fn a_family_that_is_disabled_is_forgotten_until_the_session_ends() {
    each(
        |demand| matches!(demand, Demand::Disable { .. }),
        |row, mut case| {
            let withdraw = row.demand == Demand::Disable { withdraw: true };
            let four = nets([BESIDE4, BEHIND].into_iter().chain((!withdraw).then_some(NET4)));
            let gone = nets([NET6, BESIDE6].into_iter().chain(withdraw.then_some(NET4)));
            let out = case.says(&row.body);
            case.goes_on(row, &out);
            assert_eq!(heard(&out)[1], gone, "{}", row.name);
            assert_eq!(case.world.rib.routes, four, "{}", row.name);
            // Routes of the other family come as before, those of this one are passed over.
            let out = case.announce(&[24, 198, 51, 101], PREFIX6);
            assert_eq!(heard(&out), [nets(["198.51.101.0/24"]), nets([])], "{}", row.name);
            assert_eq!(case.world.rib.routes, &four | &nets(["198.51.101.0/24"]), "{}", row.name);
            assert!(case.peer().up.is_some());
            // In the next session it is as ever.
            case.world.happens(Event::Closed { channel: ChannelId(1) });
            case.connect();
            assert!(case.world.rib.routes.is_superset(&nets([NET6, BESIDE6])), "{}", row.name);
        },
    );
}

#[test]
fn a_session_that_is_reset_says_why_takes_its_routes_along_and_begins_again() {
    each(
        |demand| matches!(demand, Demand::Reset { .. }),
        |row, mut case| {
            let Demand::Reset { subcode, data } = &row.demand else { unreachable!() };
            let out = case.says(&row.body);
            let expected = Notification::new(error_code::UPDATE, *subcode, data.clone());
            let told: Vec<_> = messages(1, &out).into_iter().map(|one| one.0).collect();
            assert_eq!(told, [MessageType::Notification], "{}: nothing else", row.name);
            assert_eq!(Notification::parse(&messages(1, &out)[0].1), expected, "{}", row.name);
            let closes = |one: &Output| matches!(one, Output::World(Action::Close { channel }) if channel.0 == 1);
            assert!(case.peer().up.is_none() && out.iter().any(closes), "{}", row.name);
            assert_eq!(case.peer().ending, Some(format!("sent: {expected}")), "{}", row.name);
            // What was behind it in the same bytes does not count.
            assert_eq!(
                heard(&out),
                [nets([]), nets([NET4, NET6, BESIDE4, BESIDE6])],
                "{}",
                row.name
            );
            assert!(case.world.rib.routes.is_empty(), "{}", row.name);
            while case.peer().state() != crate::fsm::State::Active {
                case.world.now = case.world.bgp.deadline().unwrap();
                case.world.happens(Event::Tick);
                case.world.says(2, &keepalive());
            }
            case.connect();
            let all = nets([NET4, NET6, BESIDE4, BESIDE6]);
            assert_eq!(case.world.rib.routes, all, "{}", row.name);
        },
    );
}
