//! Operators on other machines: who may speak for them, and that none of them is taken for another.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use weft_base::{ChannelId, Instant, Token};
use weft_keys::KeyHash;
use weft_runtime::sim::Spawn;
use weft_runtime::{Action, ChannelAddress, Component, Event};
use weft_xrl::frame::{Credential, Frame, PROTOCOL, Secret};
use weft_xrl::{Arguments, Call, Decoder, Encoded, ErrorCode, Input, Request, finder};

use crate::network::{Network, OWNER, probe, process};

const GATEWAY: Secret = [7; 32];
const PROBE: Secret = [8; 32];
const ALICE: KeyHash = KeyHash::from_bytes([0xaa; 20]);
const BOB: KeyHash = KeyHash::from_bytes([0xbb; 20]);

/// A network with a gateway, a probe, and two operators elsewhere who may call the probe.
fn network() -> Network {
    let mut network = Network::new();
    network.spawn("manager", Some(OWNER), Vec::new(), |_, input, out| {
        if matches!(input, Input::Registered) {
            let processes = vec![process("gateway", GATEWAY, ""), process("probe", PROBE, "")];
            out.push(Call::new(0, "finder", finder::SetProcesses { processes }).into());
            let remote = |key: KeyHash| finder::RemoteOperator {
                key: key.to_string(),
                access: "probe/probe/1.2/add?a=0..10".to_owned(),
            };
            let remote = Some(vec![remote(ALICE), remote(BOB)]);
            let request = finder::SetOperators { operators: Vec::new(), remote };
            out.push(Call::new(1, "finder", request).into());
        }
    });
    network.spawn_probe("probe", PROBE);
    network.run(Duration::from_secs(1));
    network
}

/// Where a connection leads, and what is said there first; at the end nothing.
type Said = Option<(&'static str, Vec<weft_base::Message>)>;

type Script = Box<dyn FnMut(usize, &Log) -> Said>;

/// What is said on one connection after the other, and what is answered.
struct Raw {
    /// Where each connection leads and what is said there first.
    script: Script,
    log: Log,
    step: usize,
}

type Log = Rc<RefCell<Vec<(Frame, Encoded)>>>;

impl Raw {
    fn next(&mut self, out: &mut Vec<Action>) {
        if let Some((path, _)) = (self.script)(self.step, &self.log) {
            let address = ChannelAddress::Stream(PathBuf::from(path));
            out.push(Action::Connect { token: Token(1), address });
        }
    }
}

impl Component for Raw {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, _: Instant, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => self.next(out),
            Event::Connected { channel, .. } => {
                let said = (self.script)(self.step, &self.log).map(|(_, said)| said);
                let send = |message| Action::Send { channel, message };
                out.extend(said.into_iter().flatten().map(send));
            }
            Event::Messages { messages, channel: ChannelId(_) } => {
                for mut message in messages {
                    let frame = Frame::parse(&mut message.buffer).unwrap();
                    // What the Finder calls its own methods is of no interest.
                    if matches!(frame, Frame::Name { .. }) {
                        continue;
                    }
                    let over = !matches!(frame, Frame::Welcome { .. });
                    let arguments = Encoded { args: message.buffer, handles: message.handles };
                    self.log.borrow_mut().push((frame, arguments));
                    if over {
                        self.step += 1;
                        self.next(out);
                    }
                }
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

fn hello(credential: Credential) -> weft_base::Message {
    Frame::Hello { version: PROTOCOL, window: 16, credential }.emit()
}

fn resolve() -> [weft_base::Message; 2] {
    let path = finder::INTERFACE.path_of(finder::Resolve::METHOD);
    let (target, method) = ("probe".to_owned(), "probe/1.2/add".to_owned());
    let request = Encoded::new(finder::Resolve { target, method });
    let call = Frame::Call { slot: 0, id: 1, timeout: 0, text: false };
    [Frame::Name { slot: 0, path }.emit(), call.emit_with(request.args, Vec::new())]
}

fn add(a: u32) -> weft_base::Message {
    let request = Encoded::new(probe::Add { a, b: 1 });
    Frame::Call { slot: 3, id: 2, timeout: 0, text: false }.emit_with(request.args, Vec::new())
}

/// Runs what somebody says on several connections; what was answered on them.
fn answers(script: impl FnMut(usize, &Log) -> Said + 'static) -> Vec<(Frame, Encoded)> {
    let mut network = network();
    let log = Log::default();
    let raw = Raw { script: Box::new(script), log: Rc::clone(&log), step: 0 };
    let _ = network.world.spawn(network.node, Spawn::new("raw", Box::new(raw)));
    network.run(Duration::from_secs(1));
    std::mem::take(&mut *log.borrow_mut())
}

#[test]
fn only_the_gateway_speaks_for_others_and_only_for_those_who_are_named() {
    let stranger = KeyHash::from_bytes([0xcc; 20]);
    let credentials = [
        Credential::SecretFor(PROBE, ALICE),
        Credential::SecretFor([1; 32], ALICE),
        Credential::SecretFor([99; 32], ALICE),
        Credential::SecretFor(GATEWAY, stranger),
        Credential::TicketFor([0; 16], ALICE),
    ];
    let answers = answers(move |step, _| {
        let credential = *credentials.get(step)?;
        Some(("/run/finder", vec![hello(credential)]))
    });
    let notes: Vec<_> = answers
        .iter()
        .map(|(frame, _)| match frame {
            Frame::Goodbye(error) => error.note.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    for (note, part) in notes.iter().zip([
        "only the gateway",
        "only the gateway",
        "only the gateway",
        "does not name that key",
        "a ticket is for components",
    ]) {
        assert!(note.contains(part), "{note}");
    }
    assert_eq!(notes.len(), 5);
}

/// What was resolved: ticket and key.
fn resolved(log: &Log, index: usize) -> ([u8; 16], [u8; 16]) {
    let log = log.borrow();
    let mut replies = log.iter().filter(|(frame, _)| matches!(frame, Frame::Reply { .. }));
    let (_, encoded) = replies.nth(index).unwrap();
    let mut from = Decoder::new(encoded.args.bytes(), Vec::new());
    let reply = finder::ResolveReply::decode(&mut from).unwrap();
    (reply.ticket.0.try_into().unwrap(), reply.key.0.try_into().unwrap())
}

#[test]
fn tickets_keys_and_ranges_of_remote_operators_are_their_own() {
    let answers = answers(|step, log| {
        let asks = |key| {
            let mut said = vec![hello(Credential::SecretFor(GATEWAY, key))];
            said.extend(resolve());
            Some(("/run/finder", said))
        };
        let calls = |ticket, owner, key, a| {
            let bind = Frame::Bind { slot: 3, key }.emit();
            let hello = hello(Credential::TicketFor(ticket, owner));
            Some(("/run/probe", vec![hello, bind, add(a)]))
        };
        match step {
            0 => asks(ALICE),
            1 => asks(BOB),
            // Bob shows the ticket of Alice, uses her key with his ticket, and then what is his.
            2 => calls(resolved(log, 0).0, BOB, resolved(log, 0).1, 1),
            3 => calls(resolved(log, 1).0, BOB, resolved(log, 0).1, 1),
            4 => calls(resolved(log, 0).0, ALICE, resolved(log, 0).1, 11),
            _ => None,
        }
    });
    let mut frames = answers.iter().map(|(frame, _)| frame);
    for name in [ALICE, BOB] {
        let Some(Frame::Welcome { name: told, .. }) = frames.next() else { panic!("{answers:?}") };
        assert_eq!(*told, format!("operator (key {name})"));
        assert!(matches!(frames.next(), Some(Frame::Reply { .. })));
    }
    let Some(Frame::Goodbye(error)) = frames.next() else { panic!("{answers:?}") };
    assert!(error.note.contains("given to another process"), "{error}");
    for code in [ErrorCode::ResolveFailed, ErrorCode::BadArgs] {
        assert!(matches!(frames.next(), Some(Frame::Welcome { .. })));
        let Some(Frame::Failed { error, .. }) = frames.next() else { panic!("{answers:?}") };
        assert_eq!(error.code, code, "{error}");
    }
    assert!(frames.next().is_none());
}
