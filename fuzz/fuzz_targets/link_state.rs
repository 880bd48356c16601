//! Link-state messages: what is read is written as the same bytes, and an engine takes any of them, in a
//! session and out of one.
//!
//! Input: a message.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use weft_base::{Instant, Random};
use weft_keys::SharedSecret;
use weft_linkstate::wire::{Body, LsaRepr, LsaView, Message, MessageRepr, TAG_LEN};
use weft_linkstate::{Authority, Destination, Input, LinkId, LinkState, NodeId, Output, Settings};
use weft_runtime::Component;

const VICTIM: NodeId = NodeId([1; 20]);
const PEER: NodeId = NodeId([2; 20]);
const SESSION: u64 = 7;
const LINK: LinkId = LinkId(1);
const LIMIT: usize = 20;

/// Believes everything, so that no message is refused for its proof.
struct Gullible;

impl Authority for Gullible {
    fn node(&self) -> NodeId {
        VICTIM
    }

    fn proof_len(&self) -> usize {
        0
    }

    fn prove(&self, _: &[u8]) -> Vec<u8> {
        Vec::new()
    }

    fn verify(&self, _: NodeId, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn agree(&self, _: &[u8], _: &[u8]) -> Option<SharedSecret> {
        Some(secret())
    }
}

fn secret() -> SharedSecret {
    SharedSecret::from_bytes([3; 32])
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(lsa) = LsaView::new_checked(bytes) {
        let written = LsaRepr::parse(&lsa).emit(lsa.proof().len().min(128), |_| {
            lsa.proof()[..lsa.proof().len().min(128)].to_vec()
        });
        assert!(lsa.proof().len() > 128 || written[..] == *bytes);
    }
    let mut victim = Victim::new();
    victim.receive(bytes.to_vec());
    let Ok(message) = Message::new_checked(bytes) else { return };
    let again =
        repr(&message).from(message.sender, message.session, message.counter, message.flags);
    let written = again.emit(message.seal.len() as u8, |_| message.seal.to_vec());
    assert_eq!(written, bytes[..written.len()]);
    victim.say(&repr(&message), message.flags);
    victim.tick();
    victim.say(&repr(&message), message.flags);
    assert!(victim.engine.database_len() <= LIMIT + 1);
});

fn repr(message: &Message) -> MessageRepr {
    match message.body {
        Body::Greeting { heard, hold } => MessageRepr::greeting(heard, hold),
        Body::Hello { hold } => MessageRepr::hello(hold),
        Body::Summary { index, count, headers } => {
            MessageRepr::summary(index, count, &headers.iter().collect::<Vec<_>>())
        }
        Body::Update(lsas) => MessageRepr::update(lsas.iter().map(|lsa| lsa.bytes())),
        Body::Ack(headers) => MessageRepr::ack(&headers.iter().collect::<Vec<_>>()),
    }
}

/// An engine with a neighbour.
struct Victim {
    engine: LinkState<Gullible>,
    now: Instant,
    counter: u64,
    out: Vec<Output>,
}

impl Victim {
    fn new() -> Self {
        let settings = Settings { database: LIMIT, ..Settings::default() };
        let engine = LinkState::new(Gullible, settings, Random::from_seed(1));
        let engine = engine.expect("the settings are right");
        let mut victim = Self { engine, now: Instant::ZERO, counter: 0, out: Vec::new() };
        let name = Destination::new(b"here").expect("a short name");
        victim.tell(Input::Advertise { destinations: BTreeMap::from([(name, 0)]) });
        victim.tell(Input::LinkUp { link: LINK, metric: 1, neighbour: None });
        let Some(Output::Send { message, .. }) = victim.out.first() else {
            panic!("the engine greets");
        };
        let session = Message::new_checked(message).expect("we send what can be read").session;
        victim.counter += 1;
        let greeting = MessageRepr::greeting(session, 4000).from(PEER, SESSION, victim.counter, 0);
        victim.receive(greeting.emit(0, |_| Vec::new()));
        victim.say(&MessageRepr::hello(4000), 1);
        assert!(victim.out.iter().any(|output| matches!(output, Output::NeighbourUp { .. })));
        victim
    }

    /// The neighbour says something, in its session unless it is a greeting.
    fn say(&mut self, repr: &MessageRepr, flags: u8) {
        self.counter += 1;
        let message = repr.clone().from(PEER, SESSION, self.counter, flags);
        self.receive(message.emit(TAG_LEN as u8, |bytes| secret().tag(bytes)[..TAG_LEN].to_vec()));
    }

    fn receive(&mut self, message: Vec<u8>) {
        self.tell(Input::Received { link: LINK, message });
    }

    fn tick(&mut self) {
        self.now = self.engine.deadline().unwrap_or(self.now).max(self.now);
        self.tell(Input::Tick);
    }

    fn tell(&mut self, input: Input) {
        self.engine.handle(self.now, input, &mut self.out);
        for output in &self.out {
            if let Output::Send { message, .. } = output {
                Message::new_checked(message).expect("we send what can be read");
            }
        }
    }
}
