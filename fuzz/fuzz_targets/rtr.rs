//! What a cache of the RPKI says: the process that hears it goes on, and what it passes on is what a copy of it has that heard of
//! changes alone. What is read of it is written so that the same is read again.
//!
//! Input: the bytes of a connection, with a byte in front of each piece that says how long it is, and what happens behind it.
#![no_main]

use std::collections::BTreeSet;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use weft_base::{Buffer, ChannelId, Instant, Message};
use weft_protocol::Manage;
use weft_rpki::Rpki;
use weft_rpki::interface::{Changes, List, Payload};
use weft_rpki::rtr::cutter::Cutter;
use weft_rpki::rtr::pdu::Pdu;
use weft_runtime::{Action, Component, Event, StreamEvent};
use weft_xrl::{Called, Input, Output, Reply, Request};

/// The reply to a call that need not wait.
fn ask<R: Request>(rpki: &mut Rpki, now: Instant, request: R) -> R::Reply {
    let mut out = Vec::new();
    rpki.handle(now, Input::Called(Called::directly(request)), &mut out);
    let answer = out.into_iter().find_map(|output| match output {
        Output::Answer { result, .. } => Some(result.expect("it is answered well")),
        _ => None,
    });
    Reply::Arguments(answer.expect("it need not wait")).read::<R>().expect("it is the reply")
}

fuzz_target!(|bytes: &[u8]| {
    let mut cutter = Cutter::default();
    cutter.push(bytes);
    while let Some(bytes) = cutter.take() {
        let Ok((version, pdu)) = Pdu::parse(bytes) else { break };
        let mut again = Vec::new();
        pdu.emit(version, &mut again);
        assert!(pdu == Pdu::RouterKey || Pdu::parse(&again) == Ok((version, pdu)));
    }
    let (mut rpki, mut now, mut channel) = (Rpki::new(), Instant::ZERO, 0);
    let config = rpki.read("fuzz", "rpki { cache one { address 192.0.2.1; } }").expect("it is right");
    let mut out = Vec::new();
    rpki.configure(now, config, &mut out);
    let key = |one: &Payload| (one.net, one.max_length, one.system);
    let (mut copy, mut edition) = (BTreeSet::new(), 0);
    let mut rest = bytes;
    while let Some((&first, behind)) = rest.split_first() {
        for output in std::mem::take(&mut out) {
            if let Output::World(Action::Stream { token, .. }) = output {
                channel += 1;
                let address = "192.0.2.1:323".parse().expect("it is an address");
                let opened =
                    StreamEvent::Opened { channel: ChannelId(channel), local: address, peer: address };
                rpki.handle(now, Input::World(Event::Stream { token, event: opened }), &mut out);
            }
        }
        let (piece, behind) = behind.split_at(usize::from(first & 0x3f).min(behind.len()));
        let messages = vec![Message::from(Buffer::from_slice(piece))];
        let channel = ChannelId(channel);
        rpki.handle(now, Input::World(Event::Messages { channel, messages }), &mut out);
        match first >> 6 {
            0 => {
                now += Duration::from_secs(700);
                rpki.handle(now, Input::World(Event::Tick), &mut out);
            }
            1 => rpki.handle(now, Input::World(Event::Closed { channel }), &mut out),
            _ => {}
        }
        rest = behind;
        let changes = ask(&mut rpki, now, Changes { after: edition, at_most: 1000, wait: 0 });
        assert!(!changes.again, "nothing was missed");
        edition = changes.edition;
        copy.extend(changes.announced.iter().map(key));
        for one in &changes.withdrawn {
            copy.remove(&key(one));
        }
        let list = ask(&mut rpki, now, List { from: None, at_most: 1000, wait: 0 });
        let listed: BTreeSet<_> = list.payloads.iter().map(key).collect();
        assert!(if list.ready { listed == copy } else { copy.is_empty() });
    }
});
