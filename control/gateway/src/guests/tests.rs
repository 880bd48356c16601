//! What operators on other machines say first.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use weft_base::Buffer;
use weft_xrl::frame::PROTOCOL;

use super::*;

const KEY: KeyHash = KeyHash::from_bytes([5; 20]);
const GUEST: ChannelId = ChannelId(1);
const INWARD: ChannelId = ChannelId(2);

/// A gateway with one connection that came in.
struct Bench {
    guests: Guests,
    counters: Counters<Activity>,
}

impl Bench {
    fn new() -> Self {
        let guests = Guests::new(Settings { sockets: "/run/n/xrl/".into(), secret: [3; 32] });
        let mut bench = Self { guests, counters: Counters::new() };
        let address = "192.0.2.7:40000".parse().unwrap();
        let mut out = Vec::new();
        bench.guests.accepted(GUEST, KEY, address, &mut bench.counters, &mut out);
        assert!(out.is_empty());
        bench
    }

    fn say(&mut self, messages: Vec<Message>) -> Vec<Action> {
        self.on(GUEST, messages)
    }

    fn on(&mut self, channel: ChannelId, messages: Vec<Message>) -> Vec<Action> {
        let mut out = Vec::new();
        self.guests.messages(channel, messages, &mut self.counters, &mut out);
        actions(out)
    }
}

fn actions(out: Vec<Output>) -> Vec<Action> {
    let action = |output| match output {
        Output::World(action) => action,
        other => panic!("{other:?}"),
    };
    out.into_iter().map(action).collect()
}

fn via(target: &str) -> Message {
    Frame::Via { target: target.to_owned() }.emit()
}

fn hello(credential: Credential) -> Message {
    Frame::Hello { version: PROTOCOL, window: 9, credential }.emit()
}

/// The frame that an action sends, and where.
fn sent(action: Action) -> (ChannelId, Frame) {
    let Action::Send { channel, mut message } = action else { panic!("{action:?}") };
    (channel, Frame::parse(&mut message.buffer).unwrap())
}

#[test]
fn a_connection_leads_where_it_says_with_the_word_of_the_gateway() {
    for (target, shown, written) in [
        ("finder", Credential::None, Credential::SecretFor([3; 32], KEY)),
        ("bgp-1", Credential::Ticket([4; 16]), Credential::TicketFor([4; 16], KEY)),
    ] {
        let mut bench = Bench::new();
        let said = bench.say(vec![via(target), hello(shown), Buffer::from_slice(b"next").into()]);
        let [Action::Connect { token, address }] = &said[..] else { panic!("{said:?}") };
        assert_eq!(*address, ChannelAddress::Stream(format!("/run/n/xrl/{target}").into()));
        let mut out = Vec::new();
        bench.guests.connected(*token, INWARD, &mut out);
        let mut said = actions(out).into_iter().peekable();
        // Not of the Finder's, which takes none.
        let long = said.next_if(|one| matches!(one, Action::TakeLong { channel: GUEST }));
        assert_eq!(long.is_some(), target != "finder");
        let credential = written;
        let expected = Frame::Hello { version: PROTOCOL, window: 9, credential };
        assert_eq!(sent(said.next().unwrap()), (INWARD, expected));
        let Some(Action::Send { channel: INWARD, message }) = said.next() else { panic!() };
        assert_eq!(message.bytes(), b"next");
        // From now on everything passes, as it is, both ways.
        for (from, to) in [(GUEST, INWARD), (INWARD, GUEST)] {
            let said = bench.on(from, vec![Buffer::from_slice(b"\xff any").into()]);
            let [Action::Send { channel, message }] = &said[..] else { panic!("{said:?}") };
            assert_eq!((*channel, message.bytes()), (to, &b"\xff any"[..]));
        }
        assert_eq!(bench.guests.all()[0].target, target);
        let mut out = Vec::new();
        bench.guests.closed(INWARD, &mut out);
        assert!(matches!(actions(out)[..], [Action::Close { channel: GUEST }]));
        assert!(bench.guests.all().is_empty());
    }
}

#[test]
fn what_does_not_say_where_it_leads_is_refused() {
    let all: [&[Message]; 9] = [
        &[hello(Credential::None)],
        &[via("")],
        &[via("../manager")],
        &[via(".")],
        &[via("a/b")],
        &[via(&"x".repeat(65))],
        &[via("finder"), via("finder")],
        &[via("finder"), hello(Credential::Secret([1; 32]))],
        &[via("bgp"), hello(Credential::TicketFor([4; 16], KEY))],
    ];
    for messages in all {
        let mut bench = Bench::new();
        let copies = messages.iter().map(|one| one.buffer.duplicate().into()).collect();
        let mut said = bench.say(copies).into_iter();
        assert!(matches!(sent(said.next().unwrap()), (GUEST, Frame::Goodbye(_))), "{messages:?}");
        assert!(matches!(said.next(), Some(Action::Close { channel: GUEST })));
        assert!(said.next().is_none() && bench.guests.all().is_empty());
        assert_eq!(bench.counters.get(Activity::Nonsense), 1);
    }
}

#[test]
fn replies_with_descriptors_become_errors() {
    let mut bench = Bench::new();
    let _ = bench.say(vec![via("finder"), hello(Credential::None)]);
    bench.guests.connected(Token(FIRST_TOKEN + 1), INWARD, &mut Vec::new());
    let handles = vec![weft_base::Handle::from_number(1)];
    let reply = Frame::Reply { id: 7, text: false }.emit_with(Buffer::from_slice(b"x"), handles);
    let mut said = bench.on(INWARD, vec![reply]).into_iter();
    let (channel, frame) = sent(said.next().unwrap());
    let Frame::Failed { id: 7, error } = frame else { panic!("{frame:?}") };
    assert!(channel == GUEST && error.note.contains("descriptor"), "{error}");
}

#[test]
fn what_one_key_may_have_is_limited() {
    let mut bench = Bench::new();
    let address = "192.0.2.7:40000".parse().unwrap();
    let mut refused = 0;
    for number in 0..100 {
        let (channel, mut out) = (ChannelId(100 + number), Vec::new());
        bench.guests.accepted(channel, KEY, address, &mut bench.counters, &mut out);
        refused += usize::from(!out.is_empty());
    }
    assert_eq!((bench.guests.all().len(), refused), (MOST_OF_ONE, 101 - MOST_OF_ONE));
    // Another key's are its own.
    let (other, mut out) = (KeyHash::from_bytes([6; 20]), Vec::new());
    bench.guests.accepted(ChannelId(3), other, address, &mut bench.counters, &mut out);
    assert!(out.is_empty());
    // What waits for a connection is limited, too.
    let _ = bench.say(vec![via("finder"), hello(Credential::None)]);
    let flood = (0..3).map(|_| Buffer::from_slice(&[0; 500_000]).into()).collect();
    assert!(matches!(bench.say(flood).last(), Some(Action::Close { channel: GUEST })));
}

proptest! {
    /// Whatever comes first: nobody is reached but by a name and the gateway's own word, and nothing that
    /// came in leaves before.
    #[test]
    fn any_first_messages_reach_nobody_they_should_not(
        messages in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 1..80),
                "[a-z./]{0,9}".prop_map(|name| via(&name).bytes().to_vec()),
                any::<[u8; 16]>().prop_map(|t| hello(Credential::Ticket(t)).bytes().to_vec()),
                Just(hello(Credential::None).bytes().to_vec()),
            ],
            0..6,
        )
    ) {
        let mut bench = Bench::new();
        let mut closed = false;
        for bytes in messages {
            for action in bench.say(vec![Buffer::from_slice(&bytes).into()]) {
                match action {
                    Action::Connect { address: ChannelAddress::Stream(path), .. } => {
                        prop_assert!(!closed);
                        let parent = path.parent().unwrap();
                        prop_assert_eq!(parent, std::path::Path::new("/run/n/xrl"));
                        prop_assert!(path.file_name().is_some());
                    }
                    Action::Send { channel, .. } => prop_assert_eq!(channel, GUEST),
                    Action::Close { channel } => {
                        prop_assert_eq!(channel, GUEST);
                        closed = true;
                    }
                    other => prop_assert!(false, "{:?}", other),
                }
            }
        }
    }
}
