//! Asking the kernel for everything, step by step, and anew when what it says does not fit together.
//!
//! Each step is a dump; an answer may be interrupted by a change, refused, or lost.
//!
//! Reference: RFC 3549 §2.3 (dumps), netlink(7) (`ENOBUFS`, `NLM_F_DUMP_INTR`).

use netlink_packet_route::RouteNetlinkMessage;

use crate::message::{self, Message};

/// The kernel is asked for everything this often in a row before what it says is taken as it is, however
/// much it changes meanwhile.
pub(crate) const ATTEMPTS: u32 = 8;

/// What the kernel is asked for: one dump after the other.
pub(crate) type Steps = &'static [fn() -> RouteNetlinkMessage];

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Inquiry {
    steps: Steps,
    /// The step that is to be answered; none if nothing was asked.
    step: Option<usize>,
    /// The number of the latest request; never zero once there was one.
    sequence: u32,
    attempts: u32,
    /// Everything has to be asked for again when the present answer ends.
    again: bool,
}

/// What comes behind an answer.
#[derive(Debug)]
pub(crate) enum Next {
    /// A request to be sent.
    Ask(Vec<u8>),
    /// A request to be sent, with which everything begins anew: what was answered so far is void.
    AskAnew(Vec<u8>),
    /// All was answered.
    Over,
}

impl Inquiry {
    pub(crate) fn new(steps: Steps) -> Self {
        Self { steps, step: None, sequence: 0, attempts: 0, again: false }
    }

    /// Whether nothing is being asked.
    pub(crate) fn is_idle(&self) -> bool {
        self.step.is_none()
    }

    /// Whether a message answers what is being asked. If it says that the answer has gaps, everything is asked for
    /// again behind it.
    pub(crate) fn is_answer(&mut self, message: &Message) -> bool {
        let answers = self.step.is_some() && message.sequence == self.sequence;
        self.again |= answers && message.interrupted;
        answers
    }

    /// Asks for everything, or does so as soon as the kernel has answered what it is asked now: then this returns
    /// nothing.
    pub(crate) fn begin(&mut self) -> Option<Vec<u8>> {
        self.again = true;
        self.is_idle().then(|| self.ask_anew())
    }

    /// The kernel does not answer now; another answer may still be under way.
    pub(crate) fn refused(&mut self) {
        self.again = true;
    }

    /// The kernel has answered what it was asked.
    pub(crate) fn answered(&mut self) -> Next {
        if self.again && self.attempts < ATTEMPTS {
            return Next::AskAnew(self.ask_anew());
        }
        match self.step.map(|step| step + 1).filter(|step| *step < self.steps.len()) {
            Some(step) => Next::Ask(self.ask(step)),
            None => {
                (self.step, self.again, self.attempts) = (None, false, 0);
                Next::Over
            }
        }
    }

    fn ask_anew(&mut self) -> Vec<u8> {
        self.again = false;
        self.attempts += 1;
        self.ask(0)
    }

    fn ask(&mut self, step: usize) -> Vec<u8> {
        self.step = Some(step);
        self.sequence = self.sequence.wrapping_add(1).max(1);
        message::dump(self.steps[step](), self.sequence)
    }
}
