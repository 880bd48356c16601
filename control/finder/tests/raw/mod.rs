//! A process that says to the Finder what it likes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use weft_base::{Instant, Message, Token};
use weft_runtime::sim::Spawn;
use weft_runtime::{Action, ChannelAddress, Component, Event};
use weft_xrl::frame::{Credential, Frame, PROTOCOL, Secret};
use weft_xrl::{Encoded, Request};

use crate::network::Network;

/// What the Finder has said.
pub(crate) type Heard = Rc<RefCell<Vec<Frame>>>;

struct Raw {
    listen: Option<PathBuf>,
    says: Vec<Message>,
    answers: bool,
    heard: Heard,
}

impl Component for Raw {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, _: Instant, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => {
                let listen = self.listen.take().map(ChannelAddress::Stream);
                out.extend(listen.map(|address| Action::Listen { token: Token(1), address }));
                let address = ChannelAddress::Stream(PathBuf::from("/run/finder"));
                out.push(Action::Connect { token: Token(2), address });
            }
            Event::Connected { channel, .. } => {
                let says = self.says.drain(..);
                out.extend(says.map(|message| Action::Send { channel, message }));
            }
            Event::Messages { channel, messages } => {
                for mut message in messages {
                    let frame = Frame::parse(&mut message.buffer).unwrap();
                    if let (Frame::Call { id, .. }, true) = (&frame, self.answers) {
                        let message = Frame::Reply { id: *id, text: false }.emit();
                        out.push(Action::Send { channel, message });
                    }
                    self.heard.borrow_mut().push(frame);
                }
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

pub(crate) fn hello(secret: Secret) -> Message {
    let credential = Credential::Secret(secret);
    Frame::Hello { version: PROTOCOL, window: 16, credential }.emit()
}

/// A number for a method of the Finder.
pub(crate) fn name<R: Request>(slot: u16) -> Message {
    Frame::Name { slot, path: R::INTERFACE.path_of(R::METHOD) }.emit()
}

pub(crate) fn call<R: Request>(slot: u16, id: u32, request: R) -> Message {
    let Encoded { args, handles } = Encoded::new(request);
    Frame::Call { slot, id, timeout: 0, text: false }.emit_with(args, handles)
}

impl Network {
    /// A process that says this to the Finder, and answers what it is asked, or does not. It takes connections at
    /// `listen`, on which it says nothing.
    pub(crate) fn spawn_raw(
        &mut self,
        listen: Option<&str>,
        says: Vec<Message>,
        answers: bool,
    ) -> Heard {
        let heard = Heard::default();
        let listen = listen.map(PathBuf::from);
        let raw = Raw { listen, says, answers, heard: Rc::clone(&heard) };
        let _ = self.world.spawn(self.node, Spawn::new("raw", Box::new(raw)));
        heard
    }
}
