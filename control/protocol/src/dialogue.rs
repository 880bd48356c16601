//! Calls to one class of component, through its lives.
//!
//! Reference: Handley et al. (XORP), §6.2 (the Finder tells of births and deaths).

use std::collections::BTreeMap;
use std::time::Duration;

use weft_base::Instant;
use weft_runtime::{Action, Event, Level};
use weft_xrl::{Call, Input, Output, Reply, Request, XrlError};

/// When somebody is asked again who has refused.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a call may take: the other side answers when it can take more.
const PATIENCE: Duration = Duration::from_secs(600);
/// Bits of a token that count calls; those above say which dialogue it is.
const COUNT: u32 = 56;

/// Who has a dialogue: what becomes of what it hears.
pub trait Client<T> {
    /// The dialogue.
    fn dialogue(&mut self) -> &mut Dialogue<T>;

    /// The other side is there, and knows nothing yet.
    fn began(&mut self, out: &mut Vec<Output>);

    /// It is gone, or there is no going on with it until it has begun again.
    fn ended(&mut self) {}

    /// It has answered the call about this.
    ///
    /// # Errors
    /// The answer makes no sense.
    fn answered(&mut self, about: &T, reply: Reply, out: &mut Vec<Output>) -> Result<(), XrlError>;

    /// It did not do what the call about this has asked, or has answered what makes no sense. Unless the client knows
    /// better, there is no going on.
    fn refused(&mut self, now: Instant, _: &T, error: XrlError, out: &mut Vec<Output>) {
        self.dialogue().failed(now, &error, out);
        self.ended();
    }

    /// Hears an input of the component; gives it back if it is not for this dialogue alone.
    fn hear(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) -> Option<Input> {
        let (heard, input) = self.dialogue().hear(now, input, out);
        match heard {
            Some(Heard::Began) => self.began(out),
            Some(Heard::Ended) => self.ended(),
            Some(Heard::Replied(about, result)) => {
                if let Err(error) = result.and_then(|reply| self.answered(&about, reply, out)) {
                    self.refused(now, &about, error, out);
                }
            }
            None => {}
        }
        input
    }
}

/// What a dialogue has heard.
enum Heard<T> {
    Began,
    Ended,
    Replied(T, Result<Reply, XrlError>),
}

/// How far the other side is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Away,
    There,
    /// It has refused, and is asked again then.
    Refused(Instant),
}

/// Calls to one class of component, each about something of type `T`. Calls of an earlier life of the other side are
/// forgotten.
#[derive(Debug)]
pub struct Dialogue<T> {
    class: &'static str,
    /// Of the dialogues of its component.
    number: u8,
    state: State,
    calls: BTreeMap<u64, T>,
    last_token: u64,
}

impl<T> Dialogue<T> {
    /// A dialogue with a class. Each of the dialogues of one component has a number of its own.
    #[must_use]
    pub fn new(class: &'static str, number: u8) -> Self {
        let last_token = u64::from(number) << COUNT;
        Self { class, number, state: State::Away, calls: BTreeMap::new(), last_token }
    }

    /// Its number among those of its component.
    pub(crate) fn number(&self) -> u8 {
        self.number
    }

    /// Hears an input: what it means here, and the input if it is not for this alone.
    fn hear(
        &mut self,
        now: Instant,
        input: Input,
        out: &mut Vec<Output>,
    ) -> (Option<Heard<T>>, Option<Input>) {
        let heard = match input {
            Input::Replied { token, result } if token >> COUNT == u64::from(self.number) => {
                let about = self.calls.remove(&token);
                return (about.map(|about| Heard::Replied(about, result)), None);
            }
            Input::Registered => {
                out.push(Output::Watch { class: Some(self.class.to_owned()) });
                None
            }
            // Told again when the Finder has come back, which changes nothing.
            Input::Born { ref class, .. } if *class == self.class => {
                (self.state != State::There).then(|| self.begin())
            }
            Input::Died { ref class, .. } if *class == self.class => {
                self.end(State::Away);
                Some(Heard::Ended)
            }
            Input::World(Event::Tick) if self.deadline().is_some_and(|again| again <= now) => {
                Some(self.begin())
            }
            _ => None,
        };
        (heard, Some(input))
    }

    fn begin(&mut self) -> Heard<T> {
        self.calls.clear();
        self.state = State::There;
        Heard::Began
    }

    fn end(&mut self, state: State) {
        self.calls.clear();
        self.state = state;
    }

    /// There is no going on: the other side did not do what it was asked, or has answered what makes no sense. It
    /// is begun again with it after a time.
    pub fn failed(&mut self, now: Instant, error: &XrlError, out: &mut Vec<Output>) {
        // If it is gone, the manager says so.
        let level = if error.is_gone() { Level::Debug } else { Level::Warning };
        let line = format!("{} refuses, and will be asked again: {error}", self.class);
        out.push(Output::World(Action::Report { level, line }));
        self.end(State::Refused(now + AGAIN));
    }

    /// Calls the other side.
    pub fn call(&mut self, about: T, request: impl Request, out: &mut Vec<Output>) {
        self.last_token += 1;
        self.calls.insert(self.last_token, about);
        out.push(Call::new(self.last_token, self.class, request).within(PATIENCE).into());
    }

    /// Whether the other side is there.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.state == State::There
    }

    /// When something is to be done at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Refused(again) => Some(again),
            State::Away | State::There => None,
        }
    }
}
