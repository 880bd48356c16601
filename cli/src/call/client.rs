//! Calls from a program that waits for each answer, such as a shell.
//!
//! A thread of its own runs the [`Host`](weft_xrl::Host); calls go to it and answers come back through queues, and a byte
//! on a socket wakes it.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use weft_base::Instant;
use weft_runtime::{Action, Component, Event, Level, real};
use weft_xrl::{Call, ErrorCode, Input, Output, Reply, Request, XrlError};

use super::{Reach, caller};

type Answer = Result<Reply, XrlError>;

/// A client of a node's components; see the module's text.
pub(crate) struct Client {
    calls: Sender<Call>,
    answers: Receiver<Answer>,
    wake: OwnedFd,
}

impl Client {
    /// A client of a node.
    ///
    /// # Errors
    /// The system gives no sockets or threads.
    pub(crate) fn new(reach: &Reach) -> Result<Self, String> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (wake, woken) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .map_err(|errno| format!("no socket can be made: {errno}"))?;
        let (calls, to_make) = channel();
        let (made, answers) = channel();
        let reach = reach.clone();
        thread::Builder::new()
            .name("calls".to_owned())
            .spawn(move || run(&reach, woken, to_make, made))
            .map_err(|error| format!("no thread can be started: {error}"))?;
        Ok(Self { calls, answers, wake })
    }

    /// Calls a method and waits for its answer.
    ///
    /// # Errors
    /// The call's.
    pub(crate) fn call<R: Request>(
        &self,
        target: &str,
        request: R,
        timeout: Duration,
    ) -> Result<R::Reply, XrlError> {
        let gone = || XrlError::new(ErrorCode::SendFailed, "the thread for calls has ended");
        self.calls
            .send(Call::new(0, target.to_owned(), request).within(timeout))
            .map_err(|_| gone())?;
        rustix::io::write(&self.wake, &[1]).map_err(|_| gone())?;
        self.answers.recv().map_err(|_| gone())??.read::<R>()
    }
}

fn run(reach: &Reach, woken: OwnedFd, calls: Receiver<Call>, answers: Sender<Answer>) {
    let bridge = Bridge { calls, answers, waiting: false, refused: None };
    let socket = real::Inherited::Channel { name: "calls".to_owned(), socket: woken };
    let options = real::Options {
        signals: false,
        level: Level::Error,
        inherited: vec![socket],
        ..reach.options()
    };
    let _ = real::run(caller("shell", Box::new(bridge), reach), options);
}

/// The component that makes the calls.
struct Bridge {
    calls: Receiver<Call>,
    answers: Sender<Answer>,
    /// Whether the program waits for an answer.
    waiting: bool,
    /// Why the Finder does not serve this user.
    refused: Option<String>,
}

impl Bridge {
    fn answer(&mut self, answer: Answer) {
        if std::mem::replace(&mut self.waiting, false) {
            // A program that has ended wants no answer.
            let _ = self.answers.send(answer);
        }
    }

    fn refuse(&mut self) {
        if let Some(why) = &self.refused {
            let error = XrlError::new(ErrorCode::ResolveFailed, why.clone());
            self.answer(Err(error));
        }
    }
}

impl Component for Bridge {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, _: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::World(Event::Messages { .. }) => match self.calls.try_recv() {
                Ok(call) => {
                    self.waiting = true;
                    out.push(call.into());
                    self.refuse();
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => {
                    out.push(Output::World(Action::Exit { status: 0 }));
                }
            },
            Input::World(Event::Closed { .. }) => {
                out.push(Output::World(Action::Exit { status: 0 }));
            }
            Input::Replied { result, .. } => self.answer(result),
            Input::Registered => self.refused = None,
            Input::NotRegistered(why) => {
                self.refused = Some(why);
                self.refuse();
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}
