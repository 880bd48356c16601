//! The principal as XIP sees it: statements and news of interfaces in, answers out.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;
use weft_base::{Instant, LinkAddress, PortId};
use weft_port::PortInfo;
use weft_runtime::{InterfaceAddress, IpChange, Level};
use weft_wire::MacAddr;
use weft_xip::changes::Change;
use weft_xip::forward::DropReason;
use weft_xip::principal::{Answer, BindError, Input, NextHop, Output, Principal, SocketId};
use weft_xip::words::WordError;
use weft_xip::{Xid, XidType};

use crate::{Ether, to_xid};

const NOW: Instant = Instant::ZERO;

fn mac(last: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, last])
}

fn xid(index: u32, last: u8) -> Xid {
    to_xid(index, mac(last)).unwrap()
}

fn to(port: u32, last: u8) -> Answer {
    Answer::Forward(NextHop { port: PortId(port), link: LinkAddress::Mac(mac(last).0) })
}

fn ask(ether: &Ether, xid: Xid) -> Answer {
    ether.lookup(&xid, &mut Vec::new())
}

fn try_set(ether: &mut Ether, line: &str) -> Result<Vec<Output>, WordError> {
    let mut out = Vec::new();
    ether.set(NOW, &line.split(' ').collect::<Vec<_>>(), &mut out).map(|()| out)
}

fn set(ether: &mut Ether, line: &str) {
    try_set(ether, line).unwrap();
}

fn delete(ether: &mut Ether, line: &str) -> Result<(), WordError> {
    ether.delete(NOW, &line.split(' ').collect::<Vec<_>>(), &mut Vec::new())
}

fn neighbour(last: u8, interface: &str) -> String {
    format!("neighbour {} interface {interface}", mac(last))
}

/// Tells it something; returns what it reports.
fn tell(ether: &mut Ether, input: Input) -> Vec<String> {
    let mut out = Vec::new();
    ether.handle(NOW, input, &mut out);
    let line = |output| match output {
        Output::Report { level: Level::Error, line } => line,
        other => panic!("{other:?}"),
    };
    out.into_iter().map(line).collect()
}

fn up(name: &str, port: u32, last: u8) -> Input {
    let info = PortInfo { mac: mac(last).0, mtu: 1500, local: None };
    Input::InterfaceUp { name: name.to_owned(), port: PortId(port), info }
}

fn down(port: u32) -> Input {
    Input::InterfaceDown { port: PortId(port) }
}

fn told(ether: &mut Ether, changes: Vec<IpChange>) {
    assert_eq!(tell(ether, Input::Ip { changes }), [""; 0]);
}

fn named(index: u32, name: &str) -> IpChange {
    IpChange::Interface { index, name: Some(name.to_owned()) }
}

fn gone(index: u32) -> IpChange {
    IpChange::Interface { index, name: None }
}

/// The XIDs of which it tells that their answers may have changed.
fn changes(ether: &mut Ether) -> Vec<Xid> {
    let mut changes = Vec::new();
    ether.drain_changes(&mut changes);
    let xid = |change| match change {
        Change::Xid(xid) => xid,
        other => panic!("{other:?}"),
    };
    let mut changes: Vec<_> = changes.into_iter().map(xid).collect();
    changes.sort_unstable();
    changes
}

/// A node with the interfaces `left` (index 3, port 1, address …01) and `right` (4, 2, …02), of which `left` is stated;
/// the neighbours …11 and …12 are on the left, and …11 on the right, too.
fn router() -> Ether {
    let mut ether = Ether::new();
    set(&mut ether, "interface left");
    for line in [neighbour(0x11, "left"), neighbour(0x12, "left"), neighbour(0x11, "right")] {
        set(&mut ether, &line);
    }
    tell(&mut ether, up("left", 1, 1));
    tell(&mut ether, up("right", 2, 2));
    told(
        &mut ether,
        vec![
            IpChange::Again,
            named(1, "lo"),
            named(3, "left"),
            named(4, "right"),
            IpChange::Complete,
        ],
    );
    assert_eq!(changes(&mut ether), [xid(3, 1), xid(3, 0x11), xid(3, 0x12), xid(4, 0x11)]);
    ether
}

#[test]
fn answers_by_the_roles_of_an_ether() {
    let mut ether = router();
    assert_eq!(ask(&ether, xid(3, 1)), Answer::Through);
    assert_eq!(ask(&ether, xid(3, 0x11)), to(1, 0x11));
    assert_eq!(ask(&ether, xid(4, 0x11)), to(2, 0x11));
    // Not stated, of the other interface, of no interface.
    for other in [xid(4, 2), xid(3, 0x13), xid(4, 0x12), xid(3, 2), xid(5, 0x11), xid(0, 1)] {
        assert_eq!(ask(&ether, other), Answer::Unknown, "{other}");
    }
    assert_eq!(ether.locals(), [xid(3, 1)]);
    assert_eq!(ether.bind(xid(3, 1), SocketId(1)), Err(BindError::NoSockets));
}

#[test]
fn what_names_no_station_is_refused() {
    let ether = router();
    let mut tail = xid(3, 0x11);
    tail.id[19] = 1;
    let mut group = xid(3, 0x11);
    group.id[4] = 3;
    let zero = Xid::new(XidType::ETHER, [0; 20]);
    for wrong in [tail, group, zero] {
        assert_eq!(ask(&ether, wrong), Answer::Refuse(DropReason::MalformedXid), "{wrong}");
    }
}

#[test]
fn it_asks_for_indexes_when_the_first_statement_comes() {
    let mut ether = Ether::new();
    assert_eq!(tell(&mut ether, Input::Tick), [""; 0]);
    assert!(try_set(&mut ether, "neighbour x interface left").is_err());
    let out = try_set(&mut ether, "interface left").unwrap();
    assert!(matches!(out[..], [Output::WatchIp]), "{out:?}");
    assert!(try_set(&mut ether, "interface right").unwrap().is_empty());
    assert_eq!(ether.deadline(), None);
}

#[test]
fn statements_count_at_once_and_until_they_are_deleted() {
    let mut ether = router();
    set(&mut ether, &neighbour(0x12, "right"));
    assert_eq!(changes(&mut ether), [xid(4, 0x12)]);
    assert_eq!(ask(&ether, xid(4, 0x12)), to(2, 0x12));
    set(&mut ether, &neighbour(0x12, "right"));
    assert_eq!(changes(&mut ether), [], "it was stated before");
    delete(&mut ether, &neighbour(0x12, "right")).unwrap();
    assert_eq!(changes(&mut ether), [xid(4, 0x12)]);
    assert_eq!(ask(&ether, xid(4, 0x12)), Answer::Unknown);
    delete(&mut ether, "interface left").unwrap();
    assert_eq!(changes(&mut ether), [xid(3, 1)]);
    assert_eq!((ask(&ether, xid(3, 1)), ether.locals()), (Answer::Unknown, vec![]));
    assert_eq!(ask(&ether, xid(3, 0x11)), to(1, 0x11), "its neighbours need it not");
    for absent in ["interface left", "interface x", &neighbour(0x12, "right"), &neighbour(1, "x")] {
        assert!(delete(&mut ether, absent).unwrap_err().is_absent, "{absent}");
    }
    let error = try_set(&mut ether, "local x").unwrap_err();
    assert!(error.word == Some(0) && error.text.contains("interface NAME"), "{error}");
}

#[test]
fn an_interface_that_goes_takes_its_answers_along_and_brings_them_back() {
    let mut ether = router();
    let of_left = [xid(3, 1), xid(3, 0x11), xid(3, 0x12)];
    tell(&mut ether, down(1));
    assert_eq!(changes(&mut ether), of_left);
    assert!(of_left.iter().all(|xid| ask(&ether, *xid) == Answer::Unknown));
    assert_eq!(ask(&ether, xid(4, 0x11)), to(2, 0x11));
    tell(&mut ether, down(1));
    told(&mut ether, vec![gone(3)]);
    assert_eq!(changes(&mut ether), [], "it is gone already");
    // Another index, another port, the same address.
    told(&mut ether, vec![named(7, "left")]);
    assert_eq!(changes(&mut ether), []);
    tell(&mut ether, up("left", 9, 1));
    assert_eq!(changes(&mut ether), [xid(7, 1), xid(7, 0x11), xid(7, 0x12)]);
    assert_eq!(ask(&ether, xid(7, 0x11)), to(9, 0x11));
    assert_eq!(ask(&ether, xid(3, 0x11)), Answer::Unknown);
    tell(&mut ether, up("left", 10, 1));
    assert_eq!(changes(&mut ether), [xid(7, 0x11), xid(7, 0x12)], "it is this node on any port");
}

#[test]
fn another_address_of_an_interface_is_another_xid_and_changes_nothing_else() {
    let mut ether = router();
    tell(&mut ether, up("left", 1, 5));
    assert_eq!(changes(&mut ether), [xid(3, 1), xid(3, 5)]);
    assert_eq!(
        (ask(&ether, xid(3, 1)), ask(&ether, xid(3, 5))),
        (Answer::Unknown, Answer::Through)
    );
    // It takes the address of a neighbour.
    tell(&mut ether, up("left", 1, 0x11));
    assert_eq!(changes(&mut ether), [xid(3, 5), xid(3, 0x11)]);
    assert_eq!(ask(&ether, xid(3, 0x11)), Answer::Through);
    delete(&mut ether, "interface left").unwrap();
    assert_eq!(ask(&ether, xid(3, 0x11)), Answer::Unknown, "nobody is his own neighbour");
    assert_eq!(changes(&mut ether), [xid(3, 0x11)]);
    tell(&mut ether, up("left", 1, 1));
    assert_eq!(ask(&ether, xid(3, 0x11)), to(1, 0x11));
    assert_eq!(changes(&mut ether), [xid(3, 0x11)]);
}

#[test]
fn an_interface_without_an_address_has_no_xid() {
    let mut ether = router();
    let info = PortInfo { mac: [0; 6], mtu: 1500, local: None };
    tell(&mut ether, Input::InterfaceUp { name: "left".to_owned(), port: PortId(1), info });
    assert_eq!(changes(&mut ether), [xid(3, 1)]);
    assert_eq!(ether.locals(), []);
    assert_eq!(ether.show()["interfaces"][0]["xid"], json!(null));
}

#[test]
fn a_name_that_goes_to_another_interface_takes_its_statements_along() {
    let mut ether = router();
    told(&mut ether, vec![named(3, "old")]);
    assert_eq!(changes(&mut ether), [xid(3, 1), xid(3, 0x11), xid(3, 0x12)]);
    told(&mut ether, vec![named(8, "left")]);
    assert_eq!(changes(&mut ether), [xid(8, 1), xid(8, 0x11), xid(8, 0x12)]);
}

#[test]
fn what_is_not_told_again_is_gone_and_until_then_it_counts() {
    let mut ether = router();
    told(&mut ether, vec![IpChange::Again, named(4, "right")]);
    assert_eq!(ask(&ether, xid(3, 0x11)), to(1, 0x11));
    assert_eq!(changes(&mut ether), []);
    told(&mut ether, vec![IpChange::Complete]);
    assert_eq!(changes(&mut ether), [xid(3, 1), xid(3, 0x11), xid(3, 0x12)]);
    told(&mut ether, vec![IpChange::Complete]);
    assert_eq!(ask(&ether, xid(4, 0x11)), to(2, 0x11));
}

#[test]
fn what_else_is_told_of_ip_is_of_no_use() {
    let mut ether = router();
    let destination = InterfaceAddress { ip: [10, 0, 0, 0].into(), prefix_length: 8 };
    let ip = [10, 0, 0, 1].into();
    told(
        &mut ether,
        vec![
            IpChange::Rules { is_ipv6: false, count: 1 },
            IpChange::Route { destination, way: None },
            IpChange::Neighbour { interface: 3, ip, mac: Some(mac(0x11).0), idle: false },
            IpChange::NoTable { is_ipv6: true, error: "none here".to_owned() },
        ],
    );
    assert_eq!(changes(&mut ether), []);
}

#[test]
fn that_nothing_can_be_watched_is_told_loudly() {
    let mut ether = Ether::new();
    let none = IpChange::NoTable { is_ipv6: false, error: "none here".to_owned() };
    let changes = vec![IpChange::Again, none, IpChange::Complete];
    let lines = tell(&mut ether, Input::Ip { changes });
    assert_eq!(lines, ["ether knows the index of no interface: none here"]);
    assert_eq!(ether.show()["error"], json!("none here"));
    told(&mut ether, vec![IpChange::Again, IpChange::Complete]);
    assert_eq!(ether.show()["error"], json!(null));
}

#[test]
fn shows_what_is_stated_and_what_is_known_of_it() {
    let mut ether = router();
    set(&mut ether, "interface away");
    set(&mut ether, &neighbour(0x13, "away"));
    set(&mut ether, &neighbour(2, "right"));
    let row = |xid: Option<Xid>, link: u8, interface: &str| {
        json!({
            "xid": xid.map(|xid| xid.to_string()),
            "link": mac(link).to_string(),
            "interface": interface,
            "origin": "configured",
            "used": xid.is_some(),
        })
    };
    let expected = json!({
        "interfaces": [
            { "name": "away", "index": null, "link": null, "xid": null },
            { "name": "left", "index": 3, "link": "02:00:00:00:00:01", "xid": xid(3, 1).to_string() },
        ],
        "neighbours": [
            row(None, 0x13, "away"),
            row(Some(xid(3, 0x11)), 0x11, "left"),
            row(Some(xid(3, 0x12)), 0x12, "left"),
            row(None, 2, "right"),
            row(Some(xid(4, 0x11)), 0x11, "right"),
        ],
        "error": null,
    });
    assert_eq!(ether.show(), expected);
}

#[derive(Clone, Debug)]
enum Step {
    Interface {
        name: usize,
        stated: bool,
    },
    Neighbour {
        name: usize,
        mac: u8,
        stated: bool,
    },
    Port {
        name: usize,
        mac: Option<u8>,
    },
    Name {
        index: u32,
        name: Option<usize>,
    },
    /// All is told anew, without some interfaces.
    Again {
        without: u8,
    },
}

const NAMES: [&str; 2] = ["left", "right"];

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..2usize, any::<bool>()).prop_map(|(name, stated)| Step::Interface { name, stated }),
        (0..2usize, 1..4u8, any::<bool>()).prop_map(|(name, mac, stated)| Step::Neighbour {
            name,
            mac,
            stated
        }),
        (0..2usize, prop::option::of(1..4u8)).prop_map(|(name, mac)| Step::Port { name, mac }),
        (3..6u32, prop::option::of(0..2usize)).prop_map(|(index, name)| Step::Name { index, name }),
        any::<u8>().prop_map(|without| Step::Again { without }),
    ]
}

#[derive(Default)]
struct Model {
    stated: BTreeSet<usize>,
    neighbours: BTreeSet<(usize, u8)>,
    macs: BTreeMap<usize, u8>,
    names: BTreeMap<u32, usize>,
}

impl Model {
    fn answer(&self, index: u32, mac: u8) -> Answer {
        let Some(name) = self.names.get(&index) else { return Answer::Unknown };
        match self.macs.get(name) {
            Some(own) if *own == mac && self.stated.contains(name) => Answer::Through,
            Some(own) if *own != mac && self.neighbours.contains(&(*name, mac)) => {
                to(1 + *name as u32, mac)
            }
            _ => Answer::Unknown,
        }
    }

    /// Carries out a step; returns what the principal is told of it, if it is no statement.
    fn step(&mut self, step: &Step) -> Result<Input, (String, bool)> {
        match *step {
            Step::Interface { name, stated } => {
                set_or_remove(&mut self.stated, name, stated);
                Err((format!("interface {}", NAMES[name]), stated))
            }
            Step::Neighbour { name, mac, stated } => {
                set_or_remove(&mut self.neighbours, (name, mac), stated);
                Err((neighbour(mac, NAMES[name]), stated))
            }
            Step::Port { name, mac: Some(mac) } => {
                self.macs.insert(name, mac);
                Ok(up(NAMES[name], 1 + name as u32, mac))
            }
            Step::Port { name, mac: None } => {
                self.macs.remove(&name);
                Ok(down(1 + name as u32))
            }
            Step::Name { index, name } => {
                match name {
                    Some(name) => self.names.insert(index, name),
                    None => self.names.remove(&index),
                };
                let name = name.map(|name| NAMES[name].to_owned());
                Ok(Input::Ip { changes: vec![IpChange::Interface { index, name }] })
            }
            Step::Again { without } => {
                self.names.retain(|index, _| without >> index & 1 == 0);
                let told = self.names.iter().map(|(index, name)| named(*index, NAMES[*name]));
                let changes =
                    std::iter::once(IpChange::Again).chain(told).chain([IpChange::Complete]);
                Ok(Input::Ip { changes: changes.collect() })
            }
        }
    }
}

fn set_or_remove<T: Ord>(all: &mut BTreeSet<T>, one: T, stated: bool) {
    match stated {
        true => drop(all.insert(one)),
        false => drop(all.remove(&one)),
    }
}

proptest! {
    /// What is told to have changed is exactly what is answered otherwise, unless a name goes from one index to another.
    #[test]
    fn agrees_with_a_model_and_tells_every_change(steps in prop::collection::vec(steps(), 1..60)) {
        let (mut ether, mut model) = (Ether::new(), Model::default());
        let all: Vec<_> = (3..6u32).flat_map(|index| (1..4u8).map(move |mac| (index, mac))).collect();
        for step in steps {
            let before: Vec<_> = all.iter().map(|(index, mac)| model.answer(*index, *mac)).collect();
            let is_renamed = matches!(step, Step::Name { index, name: Some(_) }
                if model.names.contains_key(&index));
            match model.step(&step) {
                Ok(input) => prop_assert!(tell(&mut ether, input).is_empty()),
                Err((line, true)) => set(&mut ether, &line),
                // Whether it was stated does not matter.
                Err((line, false)) => drop(delete(&mut ether, &line)),
            }
            let told = changes(&mut ether);
            for ((index, mac), before) in all.iter().zip(before) {
                let (asked, answer) = (xid(*index, *mac), model.answer(*index, *mac));
                prop_assert_eq!(ask(&ether, asked), answer, "{}", asked);
                let is_told = told.contains(&asked);
                prop_assert!(is_told || before == answer, "{} changed untold", asked);
                prop_assert!(!is_told || before != answer || is_renamed, "{} is told for nothing", asked);
            }
            let is_local = |(index, mac): &&(u32, u8)| model.answer(*index, *mac) == Answer::Through;
            let locals: Vec<_> =
                all.iter().filter(is_local).map(|(index, mac)| xid(*index, *mac)).collect();
            prop_assert_eq!(ether.locals(), locals);
        }
    }
}
