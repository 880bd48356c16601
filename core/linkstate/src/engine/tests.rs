use std::collections::VecDeque;

use weft_keys::PrivateKey;

use super::*;
use crate::authority::Keys;
use crate::wire::{Body, FLAG_COMPLETE, LsaRepr, Message, MessageRepr};

/// The only link of each node in most tests.
const LINK: LinkId = LinkId(1);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn keys(seed: u8) -> Keys {
    Keys::new(PrivateKey::from_seed([seed; 32]))
}

fn engine(seed: u8) -> LinkState<Keys> {
    start(seed, u64::from(seed))
}

/// The node of a key, started with this randomness.
fn start(seed: u8, random: u64) -> LinkState<Keys> {
    LinkState::new(keys(seed), Settings::default(), Random::from_seed(random)).unwrap()
}

fn name(text: &str) -> Destination {
    Destination::new(text.as_bytes()).unwrap()
}

fn advertise(names: &[&str]) -> Input {
    Input::Advertise { destinations: names.iter().map(|text| (name(text), 0)).collect() }
}

fn up(link: LinkId) -> Input {
    Input::LinkUp { link, metric: 10, neighbour: None }
}

fn tell(engine: &mut LinkState<Keys>, ms: u64, input: Input) -> Vec<Output> {
    let mut out = Vec::new();
    engine.handle(at(ms), input, &mut out);
    out
}

fn messages(out: &[Output]) -> Vec<Vec<u8>> {
    let message = |output: &Output| match output {
        Output::Send { message, .. } => Some(message.clone()),
        _ => None,
    };
    out.iter().filter_map(message).collect()
}

/// The types of messages, by their first letters.
fn kinds(out: &[Output]) -> String {
    let letter = |bytes: Vec<u8>| match Message::new_checked(&bytes).unwrap().body {
        Body::Greeting { .. } => 'g',
        Body::Hello { hold: 0 } => 'f',
        Body::Hello { .. } => 'h',
        Body::Summary { .. } => 's',
        Body::Update(_) => 'u',
        Body::Ack(_) => 'a',
    };
    messages(out).into_iter().map(letter).collect()
}

/// Two nodes on a cable without delay.
struct Pair {
    nodes: [LinkState<Keys>; 2],
    /// What is not a message, of both.
    events: Vec<Output>,
    /// All messages that were sent, by whom.
    sent: Vec<(usize, Vec<u8>)>,
}

impl Pair {
    /// Both links come up at time 0.
    fn new() -> Self {
        let nodes = [engine(1), engine(2)];
        let mut pair = Self { nodes, events: Vec::new(), sent: Vec::new() };
        pair.tell(0, 0, advertise(&["one"]));
        pair.tell(0, 1, advertise(&["two"]));
        pair.tell(0, 0, up(LINK));
        pair.tell(0, 1, up(LINK));
        pair
    }

    /// Tells one node something, and carries messages until there are none.
    fn tell(&mut self, ms: u64, to: usize, input: Input) {
        let mut inputs = VecDeque::from([(to, input)]);
        while let Some((to, input)) = inputs.pop_front() {
            for output in tell(&mut self.nodes[to], ms, input) {
                match output {
                    Output::Send { link, message } => {
                        self.sent.push((to, message.clone()));
                        inputs.push_back((1 - to, Input::Received { link, message }));
                    }
                    other => self.events.push(other),
                }
            }
        }
    }

    /// Lets time go by, in the steps that the nodes ask for.
    fn run(&mut self, from: u64, to: u64) {
        for ms in from..=to {
            for node in 0..2 {
                if self.nodes[node].deadline().is_some_and(|due| due <= at(ms)) {
                    self.tell(ms, node, Input::Tick);
                }
            }
        }
    }

    fn states(&self) -> [NeighbourState; 2] {
        self.nodes.each_ref().map(|node| node.neighbours().next().unwrap().state)
    }
}

#[test]
fn two_nodes_find_each_other_and_what_is_behind() {
    let mut pair = Pair::new();
    pair.run(0, 300);
    assert_eq!(pair.states(), [NeighbourState::Usable; 2]);
    let [one, two] = &pair.nodes;
    let hop = one.route(&name("two")).unwrap().first().unwrap();
    assert_eq!((hop.node, hop.link), (two.node(), LINK));
    assert_eq!(two.route(&name("one")).unwrap().distance, 10);
    assert_eq!(one.route(&name("one")), None, "what is here needs no route");
    assert_eq!(one.distance(two.node()), Some(10));
    let ups = pair.events.iter().filter(|event| matches!(event, Output::NeighbourUp { .. }));
    assert_eq!(ups.count(), 2);
}

#[test]
fn a_session_takes_three_greetings() {
    let mut nodes = [engine(1), engine(2)];
    let first = tell(&mut nodes[0], 0, up(LINK));
    assert_eq!(kinds(&first), "g");
    tell(&mut nodes[1], 0, up(LINK));
    let receive = |node: &mut LinkState<Keys>, message: &[u8]| {
        tell(node, 1, Input::Received { link: LINK, message: message.to_vec() })
    };
    // Its number is not known yet: only an answer.
    let second = receive(&mut nodes[1], &messages(&first)[0]);
    assert_eq!(kinds(&second), "g");
    // It is heard: a session that waits for a tag.
    let third = receive(&mut nodes[0], &messages(&second)[0]);
    assert_eq!(kinds(&third), "gh");
    let fourth = receive(&mut nodes[1], &messages(&third)[0]);
    assert_eq!(kinds(&fourth), "gh");
    // The first tag: the session is up, and says what is known.
    let fifth = receive(&mut nodes[1], &messages(&third)[1]);
    assert_eq!(kinds(&fifth), "sh");
    assert_eq!(nodes[1].neighbours().next().unwrap().state, NeighbourState::Loading);
}

#[test]
fn hellos_are_sent_each_second_or_a_little_earlier() {
    let mut pair = Pair::new();
    pair.run(0, 5000);
    let before = pair.sent.len();
    pair.run(5001, 65_000);
    let hellos = pair.sent[before..].iter().filter(|(from, _)| *from == 0).count();
    assert!((60..=80).contains(&hellos), "{hellos} in a minute");
}

#[test]
fn a_neighbour_that_is_silent_is_lost_after_its_hold_time() {
    let mut pair = Pair::new();
    pair.run(0, 2000);
    pair.events.clear();
    let [one, _] = &mut pair.nodes;
    let last = one.links[&LINK].sessions.until.since(Instant::ZERO).as_millis() as u64 - 4000;
    let mut lost = Vec::new();
    for ms in 2000..8000 {
        if one.deadline().is_some_and(|due| due <= at(ms)) {
            let out = tell(one, ms, Input::Tick);
            let down = |output: &Output| {
                matches!(output, Output::NeighbourDown { reason: Loss::Silent, .. })
            };
            lost.extend(out.iter().any(down).then_some((ms, kinds(&out))));
        }
    }
    // It is told so, in case that it hears us, and greeted anew.
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].0, last + 4000);
    assert!(lost[0].1.starts_with('f') && lost[0].1.contains('g'), "{}", lost[0].1);
    assert_eq!(one.route(&name("two")), None);
}

#[test]
fn a_node_that_was_held_up_hears_its_neighbour_out() {
    let lost =
        |out: &[Output]| out.iter().any(|output| matches!(output, Output::NeighbourDown { .. }));
    // Half a second late: a hello that has waited comes next, or none does.
    for waits in [true, false] {
        let mut pair = Pair::new();
        pair.run(0, 2000);
        let [one, two] = &mut pair.nodes;
        let hello = messages(&tell(two, 3000, Input::Tick));
        let until = |one: &LinkState<Keys>| one.links[&LINK].sessions.until;
        let late = until(one).since(at(0)).as_millis() as u64 + 500;
        assert!(!lost(&tell(one, late, Input::Tick)));
        assert_eq!(until(one), at(late + 1000), "a quarter of the hold time");
        for message in hello.into_iter().filter(|_| waits) {
            tell(one, late + 1, Input::Received { link: LINK, message });
        }
        assert_eq!(lost(&tell(one, late + 1000, Input::Tick)), !waits);
    }
}

#[test]
fn a_link_that_is_down_is_not_used_after_the_initial_delay() {
    let mut pair = Pair::new();
    pair.run(0, 20_000);
    let [one, _] = &mut pair.nodes;
    let out = tell(one, 20_000, Input::LinkDown { link: LINK });
    assert!(matches!(out[..], [Output::NeighbourDown { reason: Loss::LinkDown, .. }]), "{out:?}");
    assert_eq!(one.deadline(), Some(at(20_010)));
    let out = tell(one, 20_010, Input::Tick);
    assert_eq!(out, [Output::Route { destination: name("two"), route: None }]);
}

#[test]
fn a_node_that_was_started_again_is_noticed_and_outbids_itself() {
    let mut pair = Pair::new();
    pair.run(0, 5000);
    pair.events.clear();
    let before = pair.nodes[0].database(at(5000)).find(|lsa| lsa.id.origin == keys(2).node());
    pair.nodes[1] = start(2, 99);
    pair.tell(5001, 1, advertise(&["three"]));
    pair.tell(5001, 1, up(LINK));
    pair.run(5001, 8000);
    let is_restart =
        |event: &Output| matches!(event, Output::NeighbourDown { reason: Loss::Restarted, .. });
    assert!(pair.events.iter().any(is_restart), "{:?}", pair.events);
    assert_eq!(pair.states(), [NeighbourState::Usable; 2]);
    let [one, two] = &pair.nodes;
    assert!(one.route(&name("three")).is_some() && one.route(&name("two")).is_none());
    assert!(two.route(&name("one")).is_some());
    assert!(two.counted().get(Activity::OwnFromBefore) > 0);
    let after = one.database(at(8000)).find(|lsa| lsa.id.origin == keys(2).node());
    assert!(after.unwrap().sequence > before.unwrap().sequence);
}

#[test]
fn who_goes_is_forgotten_at_once() {
    let mut pair = Pair::new();
    pair.run(0, 20_000);
    pair.events.clear();
    pair.tell(20_000, 1, Input::Stop);
    assert!(
        matches!(pair.events[..], [Output::NeighbourDown { reason: Loss::Farewell, .. }]),
        "{:?}",
        pair.events
    );
    assert_eq!(pair.nodes[1].deadline(), None);
    let [one, _] = &pair.nodes;
    let content = one.database(at(20_000)).find(|lsa| lsa.id.origin == keys(2).node());
    assert!(content.unwrap().content.unwrap().lifetime == 0, "it has withdrawn what it said");
}

#[test]
fn nothing_that_was_sent_does_anything_a_second_time() {
    let mut pair = Pair::new();
    pair.run(0, 5000);
    let [one, two] = pair.nodes.each_ref().map(|node| node.counted().get(Activity::BadTag));
    assert_eq!((one, two), (0, 0));
    let replayed: Vec<_> = pair.sent.iter().filter(|(from, _)| *from == 1).cloned().collect();
    let until = pair.nodes[0].links[&LINK].sessions.until;
    for (number, (_, message)) in replayed.iter().enumerate() {
        let ms = 5001 + number as u64;
        let out =
            tell(&mut pair.nodes[0], ms, Input::Received { link: LINK, message: message.clone() });
        let harmless = |output: &Output| matches!(output, Output::Send { .. });
        assert!(out.iter().all(harmless), "{out:?}");
    }
    let [one, _] = &pair.nodes;
    assert_eq!(one.links[&LINK].sessions.until, until, "it is not believed in any longer for it");
    assert_eq!(pair.states(), [NeighbourState::Usable; 2]);
    // The same after the node was started again: none of it brings the old session back.
    pair.nodes[0] = start(1, 77);
    tell(&mut pair.nodes[0], 6000, up(LINK));
    for (_, message) in replayed {
        let input = Input::Received { link: LINK, message };
        let out = tell(&mut pair.nodes[0], 6000, input);
        assert!(out.iter().all(|output| matches!(output, Output::Send { .. })));
    }
    assert_eq!(pair.states()[0], NeighbourState::Greeted);
}

#[test]
fn only_the_node_that_was_named_is_taken_for_the_neighbour() {
    let mut pair = Pair::new();
    let input = Input::LinkUp { link: LINK, metric: 10, neighbour: Some(keys(3).node()) };
    pair.tell(0, 0, input);
    pair.run(0, 5000);
    assert_eq!(pair.states(), [NeighbourState::Greeted; 2]);
    assert!(pair.nodes[0].counted().get(Activity::Stranger) > 0);
}

/// What a node greets with that has drawn the number `session`, and has heard `heard`.
fn emit_greeting(by: &Keys, session: u64, heard: u64, hold: u32) -> Vec<u8> {
    let repr = MessageRepr::greeting(heard, hold).from(by.node(), session, 1, 0);
    repr.emit(96, |bytes| by.prove(&[b"weft link-state greeting", bytes].concat()))
}

/// Sends a node messages of a neighbour that keeps to the protocol, but for what it advertises.
struct Liar {
    victim: LinkState<Keys>,
    peer: crate::session::Peer,
    counter: u64,
}

impl Liar {
    fn new() -> Self {
        Self::with(Settings::default())
    }

    /// The victim has these settings.
    fn with(settings: Settings) -> Self {
        let mut victim = LinkState::new(keys(1), settings, Random::from_seed(1)).unwrap();
        tell(&mut victim, 0, advertise(&["one"]));
        let greeting = messages(&tell(&mut victim, 0, up(LINK))).remove(0);
        let theirs = Message::new_checked(&greeting).unwrap();
        let (liar, session) = (keys(2), theirs.session);
        let context = crate::session::Sessions::context((liar.node(), 5), (victim.node(), session));
        let secret = liar.agree(theirs.seal, &context).unwrap();
        let message = emit_greeting(&liar, 5, session, 4000);
        tell(&mut victim, 0, Input::Received { link: LINK, message });
        let peer = crate::session::Peer::new(liar.node(), 5, secret, Duration::from_secs(4));
        let mut liar = Self { victim, peer, counter: 1 };
        liar.say(0, &MessageRepr::hello(4000));
        assert_eq!(liar.victim.neighbours().next().unwrap().state, NeighbourState::Usable);
        liar
    }

    fn say(&mut self, ms: u64, repr: &MessageRepr) -> Vec<Output> {
        self.counter += 1;
        let repr = repr.clone().from(self.peer.node, 5, self.counter, FLAG_COMPLETE);
        let message = repr.emit(16, |bytes| self.peer.tag(bytes));
        tell(&mut self.victim, ms, Input::Received { link: LINK, message })
    }

    fn count(&self, activity: Activity) -> u64 {
        self.victim.counted().get(activity)
    }
}

fn lsa(by: &Keys, about: NodeId, sequence: u64) -> Vec<u8> {
    emit_lsa(by, about, sequence, &[&keys(1)], &[])
}

/// What a node says of itself: links to the nodes of `to`, and these destinations.
fn own_lsa(by: &Keys, sequence: u64, to: &[&Keys], names: &[&str]) -> Vec<u8> {
    emit_lsa(by, by.node(), sequence, to, names)
}

fn emit_lsa(by: &Keys, about: NodeId, sequence: u64, to: &[&Keys], names: &[&str]) -> Vec<u8> {
    let id = LsaId { origin: about, fragment: 0 };
    let links = to.iter().map(|keys| (keys.node(), 1)).collect();
    let destinations = names.iter().map(|text| (name(text), 0)).collect();
    let repr = LsaRepr { id, sequence, lifetime: 3600, links, destinations };
    let prove = |bytes: &[u8]| by.prove(&[crate::origin::PURPOSE, bytes].concat());
    repr.emit(by.proof_len(), prove).to_vec()
}

#[test]
fn a_session_that_is_not_up_does_not_say_how_long_to_believe_in_one_that_is() {
    let mut liar = Liar::new();
    let heard = liar.victim.links[&LINK].sessions.own;
    // Of the neighbour itself, as if it had just been started again; no tag follows.
    let message = emit_greeting(&keys(2), 6, heard, 1);
    tell(&mut liar.victim, 1000, Input::Received { link: LINK, message });
    assert!(liar.victim.links[&LINK].sessions.tentative.is_some());
    liar.say(1001, &MessageRepr::ack(&[]));
    assert_eq!(liar.victim.links[&LINK].sessions.until, at(5001));
}

#[test]
fn nobody_takes_the_place_of_a_neighbour_that_speaks() {
    let mut liar = Liar::new();
    let heard = liar.victim.links[&LINK].sessions.own;
    let claim = || {
        let message = emit_greeting(&keys(3), 6, heard, 1);
        Input::Received { link: LINK, message }
    };
    // Not even an answer, which would bring it further.
    assert_eq!(kinds(&tell(&mut liar.victim, 100, claim())), "");
    assert_eq!(liar.count(Activity::Stranger), 1);
    assert!(liar.victim.links[&LINK].sessions.tentative.is_none());
    // When the neighbour has fallen silent, somebody else may be there.
    tell(&mut liar.victim, 4000, Input::Tick);
    assert_eq!(liar.victim.neighbours().next().unwrap().state, NeighbourState::Greeted);
    let heard = liar.victim.links[&LINK].sessions.own;
    let message = emit_greeting(&keys(3), 6, heard, 4000);
    tell(&mut liar.victim, 4100, Input::Received { link: LINK, message });
    assert!(liar.victim.links[&LINK].sessions.tentative.is_some());
}

#[test]
fn nobody_advertises_for_another() {
    let mut liar = Liar::new();
    let (own, other) = (keys(2), keys(3));
    let known = liar.victim.database_len();
    liar.say(1, &MessageRepr::update([&lsa(&own, other.node(), 1)[..]]));
    assert_eq!((liar.count(Activity::BadProof), liar.victim.database_len()), (1, known));
    // That the victim itself said something is not believed either, nor outbid.
    liar.say(2, &MessageRepr::update([&lsa(&own, keys(1).node(), u64::MAX - 1)[..]]));
    assert_eq!((liar.count(Activity::BadProof), liar.count(Activity::OwnFromBefore)), (2, 0));
    liar.say(3, &MessageRepr::update([&lsa(&own, own.node(), 1)[..]]));
    assert_eq!((liar.count(Activity::BadProof), liar.victim.database_len()), (2, known + 1));
    // A proof for something else is none.
    let mut changed = lsa(&other, other.node(), 1);
    changed[30] ^= 1;
    liar.say(4, &MessageRepr::update([&changed[..]]));
    assert_eq!(liar.count(Activity::BadProof), 3);
}

/// A victim whose database has room for three, which has a route to "two" at its neighbour, the liar.
fn full_of_strangers() -> Liar {
    let mut liar = Liar::with(Settings { database: 3, ..Settings::default() });
    liar.say(1, &MessageRepr::update([&own_lsa(&keys(2), 1, &[&keys(1)], &["two"])[..]]));
    tell(&mut liar.victim, 1000, Input::Tick);
    assert!(liar.victim.route(&name("two")).is_some());
    liar
}

/// Keys of nodes that the victim has no links with. In the order of names they come before it and its neighbour.
fn strangers() -> impl Iterator<Item = Keys> {
    let first = keys(1).node().min(keys(2).node());
    (10..).map(keys).filter(move |stranger| stranger.node() < first)
}

#[test]
fn strangers_displace_neither_the_node_itself_nor_its_neighbours() {
    let mut liar = full_of_strangers();
    for stranger in strangers().take(4) {
        liar.say(1000, &MessageRepr::update([&lsa(&stranger, stranger.node(), 1)[..]]));
    }
    tell(&mut liar.victim, 2000, Input::Tick);
    let kept = |node: NodeId| liar.victim.database(at(2000)).any(|lsa| lsa.id.origin == node);
    assert!(kept(keys(1).node()) && kept(keys(2).node()));
    assert!(liar.victim.route(&name("two")).is_some());
}

#[test]
fn a_neighbour_is_kept_before_routes_are_computed() {
    let mut liar = Liar::with(Settings { database: 3, ..Settings::default() });
    let own = keys(2);
    liar.say(1, &MessageRepr::update([&lsa(&own, own.node(), 1)[..]]));
    for stranger in strangers().take(4) {
        liar.say(1, &MessageRepr::update([&lsa(&stranger, stranger.node(), 1)[..]]));
    }
    assert!(liar.victim.database(at(1)).any(|lsa| lsa.id.origin == own.node()));
}

#[test]
fn what_is_displaced_is_no_longer_known_to_be_anywhere() {
    let mut liar = full_of_strangers();
    for (number, stranger) in (0..20).zip(strangers()) {
        let text = format!("behind stranger {number}");
        let lsa = own_lsa(&stranger, 1, &[], &[&text]);
        liar.say(1000, &MessageRepr::update([&lsa[..]]));
    }
    let names = liar.victim.routes.names();
    assert_eq!(names, 3, "what this node, its neighbour and the last stranger advertise");
}

#[test]
fn a_node_that_comes_back_is_believed_only_what_it_says_now() {
    let mut liar = full_of_strangers();
    let mut strangers = strangers();
    let [stranger, other] = [strangers.next().unwrap(), strangers.next().unwrap()];
    let (victim, neighbour) = (keys(1), keys(2));
    let before = own_lsa(&stranger, 1, &[&neighbour], &["before"]);
    let now = own_lsa(&stranger, 2, &[&neighbour], &["now"]);
    liar.say(1000, &MessageRepr::update([&before[..]]));
    liar.say(1000, &MessageRepr::update([&own_lsa(&other, 1, &[], &[])[..]]));
    let kept = liar.victim.database(at(1000)).any(|lsa| lsa.id.origin == stranger.node());
    assert!(!kept, "it was displaced");
    liar.say(1000, &MessageRepr::update([&now[..]]));
    // It can be reached from now on.
    let links = own_lsa(&neighbour, 2, &[&victim, &stranger], &["two"]);
    liar.say(1000, &MessageRepr::update([&links[..]]));
    tell(&mut liar.victim, 2000, Input::Tick);
    assert!(liar.victim.route(&name("now")).is_some());
    assert_eq!(liar.victim.route(&name("before")), None);
}

#[test]
fn new_settings_hold_from_the_next_hello_on_or_not_at_all() {
    let mut pair = Pair::new();
    pair.run(0, 2000);
    let wrong = Settings { hold: Duration::from_secs(1), ..Settings::default() };
    assert_eq!(pair.nodes[0].set_settings(at(2000), wrong), Err(SettingsError::Hold));
    let [hello, hold] = [100, 300].map(Duration::from_millis);
    let fast = Settings { hello, hold, ..Settings::default() };
    pair.nodes[0].set_settings(at(2000), fast).unwrap();
    pair.run(2001, 4000);
    let until = pair.nodes[1].links[&LINK].sessions.until;
    assert!(until <= at(4300), "the neighbour believes for as long as it is told: {until}");
}

#[test]
fn a_link_counts_only_if_both_ends_say_so() {
    let mut liar = Liar::new();
    liar.say(1, &MessageRepr::update([&lsa(&keys(2), keys(2).node(), 1)[..]]));
    // A third node says that it is linked to the victim, which knows nothing of that.
    liar.say(2, &MessageRepr::update([&lsa(&keys(3), keys(3).node(), 1)[..]]));
    tell(&mut liar.victim, 500, Input::Tick);
    assert_eq!(liar.victim.distance(keys(2).node()), Some(10));
    assert_eq!(liar.victim.distance(keys(3).node()), None);
}

#[test]
fn what_is_verified_in_a_second_is_bounded() {
    let mut liar = Liar::new();
    liar.victim.settings.verifications = 20;
    let forged: Vec<_> = (0..100).map(|n| lsa(&keys(2), NodeId([n; 20]), 1)).collect();
    let mut send = |ms| {
        for lsa in &forged {
            liar.say(ms, &MessageRepr::update([&lsa[..]]));
        }
        (liar.count(Activity::BadProof), liar.count(Activity::TooManyAdvertisements))
    };
    assert_eq!(send(10), (20, 80));
    assert_eq!(send(110), (22, 178));
}

#[test]
fn greetings_are_verified_ten_a_second() {
    let mut victim = engine(1);
    tell(&mut victim, 0, up(LINK));
    for number in 0..100u64 {
        let repr = MessageRepr::greeting(0, 4000).from(NodeId([9; 20]), number + 1, 1, 0);
        let message = repr.emit(96, |_| vec![0; 96]);
        assert_eq!(tell(&mut victim, 1, Input::Received { link: LINK, message }), []);
    }
    assert_eq!(victim.counted().get(Activity::BadProof), 10);
    assert_eq!(victim.counted().get(Activity::TooManyGreetings), 90);
}

#[test]
fn a_change_of_destinations_needs_no_new_paths() {
    let mut pair = Pair::new();
    pair.run(0, 20_000);
    let trees = |pair: &Pair| pair.nodes[0].counted().get(Activity::Trees);
    let before = trees(&pair);
    pair.tell(20_000, 1, advertise(&["two", "three"]));
    pair.run(20_000, 20_100);
    assert!(pair.nodes[0].route(&name("three")).is_some());
    assert_eq!(trees(&pair), before);
    assert!(pair.nodes[0].counted().get(Activity::Partial) > 0);
}

#[test]
fn of_two_links_to_a_neighbour_the_cheaper_is_used_and_of_equal_ones_both() {
    let mut pair = Pair::new();
    let second = LinkId(2);
    for node in 0..2 {
        pair.tell(0, node, up(second));
    }
    pair.run(0, 10_000);
    let ways = |pair: &Pair| {
        let route = pair.nodes[0].route(&name("two")).unwrap();
        route.next_hops.iter().map(|hop| hop.link).collect::<Vec<_>>()
    };
    assert_eq!(ways(&pair), [LINK, second]);
    for (next_hops, expected) in [(1, &[LINK][..]), (8, &[LINK, second])] {
        let settings = Settings { next_hops, ..Settings::default() };
        pair.nodes[0].set_settings(at(10_000), settings).unwrap();
        pair.run(10_000, 12_000);
        assert_eq!(ways(&pair), expected);
    }
    pair.tell(12_000, 0, Input::Metric { link: LINK, metric: 11 });
    pair.run(12_000, 20_000);
    assert_eq!(ways(&pair), [second]);
    pair.tell(20_000, 0, Input::LinkDown { link: second });
    pair.run(20_000, 20_100);
    assert_eq!(ways(&pair), [LINK]);
    assert_eq!(pair.nodes[0].distance(keys(2).node()), Some(11));
}

#[test]
fn what_nobody_refreshes_is_forgotten() {
    let mut pair = Pair::new();
    pair.run(0, 5000);
    let [one, two] = &mut pair.nodes;
    tell(one, 5000, Input::LinkDown { link: LINK });
    let known = |node: &LinkState<Keys>, ms| {
        node.database(at(ms)).filter(|lsa| lsa.content.is_some()).count()
    };
    assert_eq!((known(one, 5000), known(two, 5000)), (2, 2));
    let mut ms = 5000;
    while ms < 3_700_000 {
        ms = one.deadline().map_or(ms, |due| due.as_nanos().div_ceil(1_000_000)).max(ms + 1);
        tell(one, ms, Input::Tick);
    }
    assert_eq!(known(one, ms), 1, "its own is refreshed");
    assert_eq!(one.counted().get(Activity::Expired), 1);
}
