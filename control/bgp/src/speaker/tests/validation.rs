//! Routes of which the RPKI says who may announce them (RFC 6811).

use std::time::Duration;

use ipnet::{IpNet, Ipv4Net};
use serde_json::Value;
use weft_xrl::{Calls, Decoder, Method, Reply, Request};

use super::*;
use crate::rpki::{self, Changes, ChangesReply, List, ListReply, Payload};

const RPKI: &str = "rpki { }";
const POLICY: &str = "policy {
    policy-statement origins {
        from { origin-validation invalid; }
        then { reject; }
    }
    policy-statement others { then { accept; } }
}";

/// Two peers, of which the first announces nothing whose origin is invalid.
fn config(rpki: &str) -> Option<Config> {
    let text = format!(
        "{POLICY} {rpki}
        bgp {{ as 65000; router-id 192.0.2.1;
            peer 10.0.1.2 {{ as 65001; passive on; hold-time {HOLD}s; import origins others; export all; }}
            peer 10.0.2.2 {{ as 65002; passive on; hold-time {HOLD}s; import all; export all; }}
        }}"
    );
    config::read("t", &text).unwrap()
}

fn world() -> World {
    let mut world = World::started_as(config(RPKI));
    world.born(false);
    world.connect(1);
    world.connect(2);
    world
}

fn net(number: u8) -> Ipv4Net {
    Ipv4Net::new([203, 0, number, 0].into(), 24).unwrap()
}

fn payload(number: u8, system: u32) -> Payload {
    Payload { net: net(number).into(), max_length: 24, system }
}

/// The last question to the process of the RPKI, and the number of the call.
fn asked(out: &[Output]) -> Option<(u64, rpki::Call)> {
    let mut calls = out.iter().filter_map(|output| match output {
        Output::Call(call) if call.target == rpki::CLASS => Some(call),
        _ => None,
    });
    let call = calls.next_back()?;
    let Method::Known(_, method) = call.method else { panic!("by text") };
    let mut from = Decoder::new(call.arguments.args.bytes(), Vec::new());
    Some((call.token, rpki::Call::decode(method, &mut from).unwrap()))
}

impl World {
    /// The process of the RPKI is there; what it is asked.
    fn rpki_born(&mut self) -> Vec<Output> {
        let (class, instance) = (rpki::CLASS.to_owned(), rpki::CLASS.to_owned());
        self.input(Input::Born { class, instance })
    }

    fn rpki_died(&mut self) -> Vec<Output> {
        let (class, instance) = (rpki::CLASS.to_owned(), rpki::CLASS.to_owned());
        self.input(Input::Died { class, instance })
    }

    /// It answers the last question of these.
    fn replies<R: Request>(&mut self, out: &[Output], reply: R::Reply) -> Vec<Output> {
        let (token, _) = asked(out).expect("it was asked");
        let result = Ok(Reply::Arguments(Encoded::new(reply)));
        self.input(Input::Replied { token, result })
    }

    /// It is there, and says all this.
    fn says_everything(&mut self, payloads: Vec<Payload>) -> Vec<Output> {
        let out = self.rpki_born();
        self.replies::<List>(&out, ListReply { ready: true, edition: 5, payloads, next: None })
    }

    /// The numbers of the networks that are used.
    fn used(&self) -> Vec<u8> {
        (0..10).filter(|number| self.rib.routes.contains(&IpNet::from(net(*number)))).collect()
    }

    fn validity(&self, number: u8) -> Value {
        let prefix = Some(net(number).to_string());
        let shown = interface::Show { prefix, ..show("routes") };
        self.bgp.show(self.now, &shown).unwrap()[0]["paths"][0]["validity"].clone()
    }
}

fn changes(edition: u64, announced: Vec<Payload>, withdrawn: Vec<Payload>) -> ChangesReply {
    ChangesReply { again: false, edition, announced, withdrawn }
}

#[test]
fn what_is_accepted_follows_what_the_rpki_says() {
    let mut world = world();
    for number in 1..4 {
        world.announces(1, &net(number).prefix());
    }
    assert_eq!(world.used(), [1, 2, 3], "nobody has said anything");
    assert_eq!(world.validity(1), Value::Null);
    let out = world.says_everything(vec![payload(1, 65001), payload(2, 65009)]);
    assert_eq!(world.used(), [1, 3]);
    assert_eq!([1, 2, 3].map(|one| world.validity(one)), ["valid", "invalid", "not-found"]);
    assert_eq!(sent(2, &out), [MessageType::Update], "the other peer hears that it is gone");
    let Some((_, rpki::Call::Changes(Changes { after: 5, .. }))) = asked(&out) else {
        panic!("it asks for something else: {out:?}");
    };
    // What comes now is looked at when it comes.
    world.announces(1, &net(2).prefix());
    assert_eq!(world.used(), [1, 3]);
    // What others announce is not asked about.
    world.announces(2, &net(2).prefix());
    assert_eq!(world.used(), [1, 2, 3]);
    let out = world.replies::<Changes>(
        &out,
        changes(8, vec![payload(2, 65001), payload(3, 65009)], vec![payload(1, 65001)]),
    );
    assert_eq!(world.used(), [1, 2]);
    assert_eq!(world.validity(1), "not-found");
    // Nobody has to decide again who is told the same.
    let told = sent(2, &out);
    let out = world.replies::<Changes>(&out, changes(9, vec![payload(7, 65009)], Vec::new()));
    assert_eq!(
        (told.len(), sent(2, &out).len()),
        (2, 0),
        "it hears that 2 comes from here, and that 3 is gone"
    );
}

#[test]
fn prefixes_within_one_that_is_told_are_looked_at_and_no_others() {
    let mut world = world();
    let out = world.says_everything(vec![payload(9, 65009)]);
    for number in 1..4 {
        world.announces(1, &net(number).prefix());
    }
    let wide = |system, max_length| {
        let net = "203.0.2.0/23".parse().unwrap();
        Payload { net, max_length, system }
    };
    let out = world.replies::<Changes>(&out, changes(6, vec![wide(65001, 23)], Vec::new()));
    assert_eq!(world.used(), [1], "they are longer than it allows");
    let out = world.replies::<Changes>(&out, changes(7, vec![wide(65001, 24)], Vec::new()));
    assert_eq!(world.used(), [1, 2, 3], "one allows it");
    let gone = vec![wide(65001, 24), wide(65001, 23)];
    world.replies::<Changes>(&out, changes(9, Vec::new(), gone));
    assert_eq!((world.used(), world.bgp.routes.validation.len()), (vec![1, 2, 3], 1));
}

#[test]
fn what_was_told_counts_while_its_process_is_away_but_not_for_ever() {
    let mut world = world();
    world.announces(1, &net(2).prefix());
    world.says_everything(vec![payload(2, 65009)]);
    world.rpki_died();
    assert_eq!(world.used(), [0; 0]);
    // It comes back, knows nothing yet, and then something else.
    let out = world.rpki_born();
    let nothing = ListReply { ready: false, edition: 0, payloads: Vec::new(), next: None };
    let out = world.replies::<List>(&out, nothing);
    assert_eq!(world.used(), [0; 0]);
    let pages = [(payload(1, 65009), Some("page")), (payload(3, 65009), None)];
    let mut last = out;
    for (payload, next) in pages {
        assert_eq!(world.used(), [0; 0], "it has not told everything");
        let next = next.map(str::to_owned);
        let page = ListReply { ready: true, edition: 9, payloads: vec![payload], next };
        last = world.replies::<List>(&last, page);
    }
    assert_eq!((world.used(), world.bgp.routes.validation.len()), (vec![2], 2));
    // It cannot say what has changed.
    let again = ChangesReply { again: true, ..changes(0, Vec::new(), Vec::new()) };
    let out = world.replies::<Changes>(&last, again);
    let all = vec![payload(2, 65009)];
    world.replies::<List>(&out, ListReply { ready: true, edition: 20, payloads: all, next: None });
    assert_eq!((world.used(), world.bgp.routes.validation.len()), (vec![], 1));
    world.rpki_died();
    let until = world.bgp.from_rpki.deadline().expect("it does not count for ever");
    assert_eq!(until.since(world.now), Duration::from_secs(7200));
    world.now = until;
    world.happens(Event::Tick);
    assert_eq!(world.bgp.routes.validation.len(), 0);
}

/// Whoever is there, but does not know, is no better than nobody.
#[test]
fn what_was_told_does_not_count_for_ever_while_its_process_knows_nothing() {
    let mut world = world();
    world.announces(1, &net(2).prefix());
    world.says_everything(vec![payload(2, 65009)]);
    world.rpki_died();
    let mut out = world.rpki_born();
    let begin = world.now;
    for _ in 0..9 {
        assert_eq!(world.bgp.routes.validation.len(), 1);
        world.now += Duration::from_secs(800);
        let nothing = ListReply { ready: false, edition: 0, payloads: Vec::new(), next: None };
        out = world.replies::<List>(&out, nothing);
    }
    assert_eq!(world.now.since(begin).as_secs(), 7200);
    assert_eq!(world.bgp.routes.validation.len(), 0);
}

#[test]
fn who_says_more_than_was_asked_for_is_not_believed() {
    let mut world = world();
    let out = world.rpki_born();
    let many: Vec<_> = (1..5000).map(|system| payload(1, system)).collect();
    let list = ListReply { ready: true, edition: 5, payloads: many, next: None };
    let out = world.replies::<List>(&out, list);
    assert_eq!((world.bgp.routes.validation.len(), asked(&out).is_none()), (0, true));
    world.now += Duration::from_secs(1);
    let out = world.happens(Event::Tick);
    let Some((_, rpki::Call::List(List { from: None, .. }))) = asked(&out) else {
        panic!("it does not begin again: {out:?}");
    };
}

#[test]
fn without_the_statement_nothing_is_known() {
    let mut world = world();
    world.announces(1, &net(2).prefix());
    world.says_everything(vec![payload(2, 65009)]);
    assert_eq!(world.used(), [0; 0]);
    // Whichever is heard first.
    world.configure_as(config(""));
    world.rpki_died();
    assert_eq!(world.used(), [2]);
    world.configure_as(config(RPKI));
    world.says_everything(vec![payload(2, 65009)]);
    assert_eq!(world.used(), [0; 0]);
    world.rpki_died();
    world.configure_as(config(""));
    assert_eq!((world.used(), world.bgp.routes.validation.len()), (vec![2], 0));
}

#[test]
fn policies_for_what_is_told_cannot_ask_for_it() {
    for of in ["export origins;", "import all; export others origins;"] {
        let text = format!(
            "{POLICY} bgp {{ as 65000; router-id 192.0.2.1; peer 10.0.1.2 {{ as 65001; {of} }} }}"
        );
        let error = config::read("t", &text).unwrap_err().to_string();
        assert!(error.contains("known on import alone") && error.contains("t:7:"), "{error}");
    }
}
