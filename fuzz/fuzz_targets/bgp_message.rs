//! BGP messages, for each set of capabilities: what is read is written so that the same is read again; and a session
//! takes any of them.
//!
//! Input: a byte that says what was agreed on, and the bytes of a connection.
#![no_main]

use std::net::Ipv4Addr;

use libfuzzer_sys::fuzz_target;
use weft_base::{Instant, Random};
use weft_bgp::fsm::{AttemptId, ConnectionId, Input, Output, PeerAs, Session, Settings};
use weft_bgp::wire::{
    Attributes, Context, Cutter, Disposition, Families, Family, GracefulRestart, HEADER_LEN,
    MAX_EXTENDED_MESSAGE, MAX_MESSAGE, MessageType, Neighbour, Notification, Open, RouteRefresh,
    Update, UpdateEncoder, withdraw,
};

fuzz_target!(|bytes: &[u8]| {
    let Some((&agreed, stream)) = bytes.split_first() else { return };
    session(stream);
    let bit = |n: u8| agreed >> n & 1 != 0;
    let all = Families::from_iter(Family::ALL);
    let set = |on| if on { all } else { Families::EMPTY };
    let context = Context {
        neighbour: match (bit(0), bit(1)) {
            (false, false) => Neighbour::External,
            (false, true) => Neighbour::Confederation,
            (true, _) => Neighbour::Internal,
        },
        four_octet_as: !bit(2),
        families: all,
        add_path_receive: set(bit(3)),
        add_path_send: set(bit(3)),
        extended_next_hop: set(bit(4)),
        send_limit: if bit(5) { MAX_EXTENDED_MESSAGE } else { MAX_MESSAGE },
        accept_as_sets: bit(6),
    };
    let mut cutter = Cutter::new();
    if bit(5) {
        cutter.allow_extended();
    }
    cutter.push(stream);
    while let Ok(Some(message)) = cutter.take() {
        let body = message.body();
        match message.kind {
            MessageType::Open => open(body),
            MessageType::Update => update(body, &context),
            MessageType::Notification => {
                let read = Notification::parse(body);
                let _ = (read.to_string(), read.shutdown_text());
                assert_eq!(Notification::parse(&read.emit()[HEADER_LEN..]).code, read.code);
            }
            MessageType::Keepalive => {}
            MessageType::RouteRefresh => {
                if let Ok(Some(read)) = RouteRefresh::parse(body, bit(7)) {
                    assert_eq!(
                        RouteRefresh::parse(&read.emit()[HEADER_LEN..], bit(7)),
                        Ok(Some(read))
                    );
                }
            }
        }
    }
});

/// A peer sends the bytes on two connections.
fn session(stream: &[u8]) {
    let mut settings = Settings::new(65001, Ipv4Addr::new(192, 0, 2, 1), PeerAs::Any);
    let (restarted, notification, families) = (false, true, Vec::new());
    let restart = GracefulRestart { restarted, notification, time: 120, families };
    (settings.graceful_restart, settings.long_lived) = (Some(restart), Some(Vec::new()));
    let mut session = Session::new(settings, Random::from_seed(1));
    let (ours, theirs) = (ConnectionId(1), ConnectionId(2));
    let (mut now, mut out) = (Instant::ZERO, Vec::new());
    for input in [
        Input::Start,
        Input::Opened { attempt: AttemptId(1), connection: ours },
        Input::Accepted(theirs),
        Input::Received { connection: ours, bytes: stream },
        Input::Received { connection: theirs, bytes: stream },
        Input::Tick,
        Input::Tick,
        Input::Tick,
    ] {
        if matches!(input, Input::Tick) {
            now = session.deadline().unwrap_or(now);
        }
        session.handle(now, input, &mut out);
    }
    for output in out {
        if let Output::Send { bytes, .. } = output {
            let mut cutter = Cutter::new();
            cutter.push(&bytes);
            assert!(cutter.take().is_ok_and(|message| message.is_some()));
        }
    }
}

fn open(body: &[u8]) {
    let Ok(read) = Open::parse(body) else { return };
    let again = Open::parse(&read.emit()[HEADER_LEN..]).expect("we write what can be read");
    // A parameter for each capability takes more space, which a message may not have.
    let is_short = body.len() + 3 * read.capabilities.len() < 4000;
    assert!(!is_short || again == read);
}

fn update(body: &[u8], context: &Context) {
    let Ok(read) = Update::new_checked(body, context) else { return };
    let judgement = read.judge(context);
    let is_usable =
        matches!(judgement.disposition, Disposition::Use | Disposition::DiscardAttributes);
    assert_eq!(judgement.faults.is_empty(), judgement.disposition == Disposition::Use);
    let mut stream = Vec::new();
    for (family, nlri) in read.withdrawn() {
        stream.clear();
        withdraw(family, context, nlri, &mut stream);
        assert!(told(&stream, context).1.into_iter().eq(nlri));
    }
    for reach in read.reach().filter(|_| is_usable) {
        let attributes = match reach.next_hop {
            Some(next_hop) => judgement.attributes.clone().with_next_hop(next_hop),
            None => judgement.attributes.clone(),
        };
        let Ok(encoder) = UpdateEncoder::new(&attributes, reach.family, context) else { continue };
        stream.clear();
        encoder.all(reach.nlri, &mut stream);
        let (announced, _, all) = told(&stream, context);
        assert!(announced.into_iter().eq(reach.nlri));
        // Two octets cannot say where in a path the confederation was.
        if context.four_octet_as {
            assert!(all.iter().all(|one| *one == attributes));
        }
    }
}

type Told<P> = (Vec<P>, Vec<P>, Vec<Attributes>);

/// What a stream of UPDATEs announces and withdraws.
fn told(
    stream: &[u8],
    context: &Context,
) -> Told<<weft_bgp::wire::NlriIter<'static> as Iterator>::Item> {
    let (mut announced, mut withdrawn, mut all) = (Vec::new(), Vec::new(), Vec::new());
    let mut cutter = Cutter::new();
    cutter.allow_extended();
    cutter.push(stream);
    while let Some(message) = cutter.take().expect("we write what can be cut") {
        let update = Update::new_checked(message.body(), context).expect("we write what is right");
        let judgement = update.judge(context);
        assert_eq!(judgement.disposition, Disposition::Use, "{:?}", judgement.faults);
        for reach in update.reach() {
            announced.extend(reach.nlri);
            all.push(match reach.next_hop {
                Some(next_hop) => judgement.attributes.clone().with_next_hop(next_hop),
                None => judgement.attributes.clone(),
            });
        }
        update.withdrawn().for_each(|(_, nlri)| withdrawn.extend(nlri));
    }
    (announced, withdrawn, all)
}
