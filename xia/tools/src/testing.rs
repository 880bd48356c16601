//! Drives one application against a node played by the test, in virtual time.

use std::time::Duration;

use weft_base::{ChannelId, Instant, Packet, Token};
use weft_runtime::{Action, Component, DiskRequest, Event, Process};
use weft_xip::channel::{self, Request};
use weft_xip::{Address, Xid, XidType};

const CHANNEL: ChannelId = ChannelId(1);

/// An application and what it has done so far.
pub(crate) struct Harness<P> {
    process: P,
    now: Instant,
    datagrams: Vec<(Address, Vec<u8>)>,
    commands: Vec<String>,
    printed: Vec<String>,
    reported: Vec<String>,
    disk: Vec<(Token, DiskRequest)>,
    exit: Option<u8>,
}

impl<P: Process> Harness<P> {
    /// The application's channel to the node.
    pub(crate) const CHANNEL: ChannelId = CHANNEL;

    /// Starts the application and attaches it to the node.
    pub(crate) fn attached(process: P) -> Self {
        let mut harness = Self {
            process,
            now: Instant::ZERO,
            datagrams: Vec::new(),
            commands: Vec::new(),
            printed: Vec::new(),
            reported: Vec::new(),
            disk: Vec::new(),
            exit: None,
        };
        harness.give(Event::Start);
        harness
    }

    pub(crate) fn own_address() -> Address {
        Address::simple(Xid::new(XidType::XDP, [7; 20])).unwrap()
    }

    /// Gives an event and carries out what comes of it.
    pub(crate) fn give(&mut self, event: Event) {
        let mut out = Vec::new();
        self.process.handle(self.now, event, &mut out);
        for action in out {
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Connect { token, .. } => {
                self.give(Event::Connected { token, channel: CHANNEL });
            }
            Action::Send { message, .. } => match Request::parse(message.buffer.into()).unwrap() {
                Request::Bind(_) => self.answer(channel::emit_bound(&Self::own_address())),
                Request::Send { destination, payload, .. } => {
                    self.datagrams.push((destination, payload.bytes().to_vec()));
                }
                Request::Command(text) => self.commands.push(text),
            },
            Action::Print { line } => self.printed.push(line),
            Action::Report { line, .. } => self.reported.push(line),
            Action::Disk { token, request } => self.disk.push((token, request)),
            Action::Exit { status } => self.exit = Some(status),
            _ => {}
        }
    }

    /// The node goes away, and is there again when the application looks for it.
    pub(crate) fn restart_node(&mut self) {
        self.give(Event::Closed { channel: CHANNEL });
    }

    /// Sends a message of the node to the application.
    pub(crate) fn answer(&mut self, message: Packet) {
        self.give(Event::Messages { channel: CHANNEL, messages: vec![message.into()] });
    }

    /// Delivers a datagram without source.
    pub(crate) fn deliver(&mut self, payload: &[u8]) {
        let mut message = Packet::from_slice(payload);
        message.push_front(2).copy_from_slice(&[0x83, 0]);
        self.answer(message);
    }

    /// Delivers a datagram from this source.
    pub(crate) fn deliver_from(&mut self, source: Address, payload: &[u8]) {
        let mut message = Packet::from_slice(payload);
        let front = message.push_front(2 + source.wire_len());
        front[..2].copy_from_slice(&[0x83, source.len() as u8]);
        source.emit(&mut front[2..]).unwrap();
        self.answer(message);
    }

    /// Lets time pass, ticking at every deadline.
    pub(crate) fn advance(&mut self, span: Duration) {
        let end = self.now + span;
        let mut ticks = 0;
        while self.exit.is_none()
            && let Some(at) = Component::deadline(&self.process).filter(|at| *at <= end)
        {
            self.now = self.now.max(at);
            self.give(Event::Tick);
            ticks += 1;
            assert!(ticks < 10_000, "it keeps itself busy at {}", self.now);
        }
        self.now = end;
    }

    /// The datagrams sent since the last call.
    pub(crate) fn datagrams(&mut self) -> Vec<(Address, Vec<u8>)> {
        self.advance(Duration::ZERO);
        std::mem::take(&mut self.datagrams)
    }

    pub(crate) fn commands(&mut self) -> Vec<String> {
        std::mem::take(&mut self.commands)
    }

    pub(crate) fn printed(&self) -> &[String] {
        &self.printed
    }

    pub(crate) fn reported(&self) -> &[String] {
        &self.reported
    }

    /// The disk requests made since the last call.
    pub(crate) fn disk(&mut self) -> Vec<(Token, DiskRequest)> {
        std::mem::take(&mut self.disk)
    }

    pub(crate) fn exit_status(&self) -> Option<u8> {
        self.exit
    }
}
