//! Frames of a hostile peer: a component's process and the Finder take anything on a connection without
//! a panic, and nobody who has shown nothing has a method called.
//!
//! Input: the first octet says who is talked to; then messages, each with its length in two octets,
//! little-endian, in front. A length with the high bit set lets ten seconds pass instead.
#![no_main]

use std::path::PathBuf;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use weft_base::{ChannelId, Instant, Message, Packet};
use weft_finder::Finder;
use weft_runtime::{Action, ChannelAddress, Component, Event, Peer};
use weft_xrl::frame::Frame;
use weft_xrl::{Host, Identity, Input, Output, Part, Settings, XrlError, finder};

/// A component that must not be called.
struct Untouched;

impl Component for Untouched {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, _: Instant, input: Input, out: &mut Vec<Output>) {
        if let Input::Called(called) = input {
            out.push(called.fail(XrlError::failed("never")));
            panic!("a stranger has called a method");
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((first, rest)) = input.split_first() else { return };
    let peer = Peer::Process { pid: 7, uid: if first & 2 == 0 { 1000 } else { 1 }, gid: 7 };
    if first & 1 == 0 {
        talk(&mut finder(), rest, peer);
    } else {
        talk(&mut host(), rest, peer);
    }
});

fn finder() -> Finder {
    Finder::new(weft_finder::Settings {
        users: Box::new(weft_finder::Nobody),
        listen: ChannelAddress::Stream(PathBuf::from("/run/finder")),
        owner: [1; 32],
        operator: 1000,
        seed: [9; 32],
    })
}

fn host() -> Host {
    let settings = Settings {
        finder: Some(ChannelAddress::Stream(PathBuf::from("/run/finder"))),
        listen: Some(ChannelAddress::Stream(PathBuf::from("/run/host"))),
        credential: Identity::User,
        ports_from_fea: false,
    };
    let part = Part {
        class: "probe".to_owned(),
        instance: "probe".to_owned(),
        sole: true,
        interfaces: vec![&finder::INTERFACE],
        component: Box::new(Untouched),
    };
    Host::new(settings, vec![part])
}

/// Lets a peer connect and say what the input holds; what is answered must be frames.
fn talk<C: Component<Input = Event, Output = Action>>(
    process: &mut C,
    mut rest: &[u8],
    peer: Peer,
) {
    let mut now = Instant::ZERO;
    let mut out = Vec::new();
    process.handle(now, Event::Start, &mut out);
    let listener = out.drain(..).find_map(|action| match action {
        Action::Listen { token, .. } => Some(token),
        _ => None,
    });
    let Some(token) = listener else { return };
    let channel = ChannelId(1);
    process.handle(now, Event::Accepted { token, channel, peer }, &mut out);
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = u16::from_le_bytes(*length);
        if length & 0x8000 != 0 {
            now += Duration::from_secs(10);
            process.handle(now, Event::Tick, &mut out);
            rest = behind;
            continue;
        }
        let (bytes, behind) = behind.split_at(usize::from(length).min(behind.len()));
        let messages = vec![Message::from(Packet::from_slice(bytes))];
        process.handle(now, Event::Messages { channel, messages }, &mut out);
        rest = behind;
        let mut closed = false;
        for action in out.drain(..) {
            match action {
                Action::Send { mut message, .. } => {
                    Frame::parse(&mut message.buffer).expect("a process sends frames");
                }
                Action::Close { .. } => closed = true,
                _ => {}
            }
        }
        if closed {
            return;
        }
    }
    process.handle(now, Event::Closed { channel }, &mut out);
}
