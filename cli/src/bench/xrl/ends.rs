//! Who calls and who answers.

use std::sync::mpsc::Sender;
use std::time::Instant;

use weft_runtime::{Action, Component};
use weft_xrl::{Call, Input, Interface, Output, Request, XrlError};

use super::Amount;

#[allow(missing_docs, unreachable_pub, dead_code, reason = "of the interface a part is called")]
pub(super) mod probe {
    include!(concat!(env!("OUT_DIR"), "/probe.rs"));
}

/// What is called by this name and class.
pub(super) const PROBE: &str = "probe";

/// What the probe can do.
pub(super) fn interface() -> &'static Interface {
    &probe::INTERFACE
}

/// What threads tell the one that waits for them.
#[derive(Debug)]
pub(super) enum News {
    /// The owner has said which processes there are, or the probe can be called.
    Ready,
    /// So much was done in a second.
    PerSecond(f64),
    /// Why nothing was measured.
    Failed(String),
}

/// Answers.
pub(super) struct Probe {
    pub(super) news: Option<Sender<News>>,
}

impl Component for Probe {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, _: weft_base::Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Called(mut called) => {
                out.push(match called.read::<probe::Call>() {
                    Ok(probe::Call::Zero(_) | probe::Call::Ten(_) | probe::Call::Twentyfive(_)) => {
                        called.answer(Ok(()))
                    }
                    Ok(probe::Call::Take(request)) => {
                        called.answer(Ok(probe::TakeReply { count: request.routes.len() as u32 }))
                    }
                    // The work is over; see `Caller::end`.
                    Ok(probe::Call::Add(_)) => {
                        let reply = called.answer(Ok(probe::AddReply { sum: 0 }));
                        out.extend([reply, exit()]);
                        return;
                    }
                    Ok(_) => called.fail(XrlError::failed("this is not measured")),
                    Err(error) => called.fail(error),
                });
            }
            Input::Registered => tell(self.news.as_ref(), News::Ready),
            Input::NotRegistered(why) => tell(self.news.as_ref(), News::Failed(why)),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<weft_base::Instant> {
        None
    }
}

/// Calls, so many at a time, and measures how long it takes.
pub(super) struct Caller<R: Request> {
    request: fn() -> R,
    /// How much of what is counted a reply stands for.
    worth: fn(&R::Reply) -> u64,
    amount: Amount,
    sent: usize,
    answered: usize,
    done: u64,
    /// When the measurement began; before it, everything is found and bound and gets warm.
    begin: Option<Instant>,
    /// It is over; the probe, which was told so, answers once more.
    ended: bool,
    news: Sender<News>,
}

impl<R: Request> Caller<R> {
    pub(super) fn new(
        request: fn() -> R,
        worth: fn(&R::Reply) -> u64,
        amount: Amount,
        news: Sender<News>,
    ) -> Self {
        Self {
            request,
            worth,
            amount,
            sent: 0,
            answered: 0,
            done: 0,
            begin: None,
            ended: false,
            news,
        }
    }

    fn to_do(&self) -> usize {
        if self.begin.is_some() { self.amount.calls } else { self.amount.warm }
    }

    fn call(&mut self, out: &mut Vec<Output>) {
        self.sent += 1;
        out.push(Call::new(0, PROBE, (self.request)()).into());
    }

    fn fill(&mut self, out: &mut Vec<Output>) {
        for _ in 0..self.amount.in_flight.min(self.to_do()) {
            self.call(out);
        }
    }

    fn answered(&mut self, reply: &R::Reply, out: &mut Vec<Output>) {
        self.answered += 1;
        self.done += (self.worth)(reply);
        if self.sent < self.to_do() {
            return self.call(out);
        }
        if self.answered < self.to_do() {
            return;
        }
        match self.begin {
            None => {
                (self.sent, self.answered, self.done) = (0, 0, 0);
                self.begin = Some(Instant::now());
                self.fill(out);
            }
            Some(begin) => {
                let news = News::PerSecond(self.done as f64 / begin.elapsed().as_secs_f64());
                self.end(news, out);
            }
        }
    }

    /// Has the probe end, too. That call must be answered: its method is resolved only now.
    fn end(&mut self, news: News, out: &mut Vec<Output>) {
        tell(Some(&self.news), news);
        self.ended = true;
        out.push(Call::new(0, PROBE, probe::Add { a: 0, b: 0 }).into());
    }
}

impl<R: Request> Component for Caller<R> {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, _: weft_base::Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Registered => self.fill(out),
            Input::NotRegistered(why) => self.end(News::Failed(why), out),
            Input::Replied { .. } if self.ended => out.push(exit()),
            Input::Replied { result, .. } => match result.and_then(|reply| reply.read::<R>()) {
                Ok(reply) => self.answered(&reply, out),
                Err(error) => self.end(News::Failed(error.to_string()), out),
            },
            _ => {}
        }
    }

    fn deadline(&self) -> Option<weft_base::Instant> {
        None
    }
}

pub(super) fn exit() -> Output {
    Output::World(Action::Exit { status: 0 })
}

pub(super) fn tell(whom: Option<&Sender<News>>, news: News) {
    if let Some(whom) = whom {
        // Nobody listens any more after something has failed.
        let _ = whom.send(news);
    }
}

fn number(index: u32) -> u32 {
    std::hint::black_box(1_000_000) + index
}

pub(super) fn zero() -> probe::Zero {
    probe::Zero
}

macro_rules! numbers {
    ($name:ident, $request:ident: $($field:ident $index:literal)*) => {
        pub(super) fn $name() -> probe::$request {
            probe::$request { $($field: number($index)),* }
        }
    };
}

numbers!(ten, Ten: a0 0 a1 1 a2 2 a3 3 a4 4 a5 5 a6 6 a7 7 a8 8 a9 9);
numbers!(twentyfive, Twentyfive: a0 0 a1 1 a2 2 a3 3 a4 4 a5 5 a6 6 a7 7 a8 8 a9 9 a10 10 a11 11
    a12 12 a13 13 a14 14 a15 15 a16 16 a17 17 a18 18 a19 19 a20 20 a21 21 a22 22 a23 23 a24 24);

/// A batch of routes such as a routing table holds: prefixes of 24 bits without comments.
pub(super) fn routes() -> probe::Take {
    let route = |index: u32| probe::Route {
        net: weft_xrl::Ipv4Net::new_assert((index << 8).into(), 24).into(),
        nexthop: std::net::Ipv4Addr::from(0xc000_0200 + (index & 63)).into(),
        metric: number(index),
        comment: String::new(),
    };
    probe::Take { routes: (0..super::ROUTES_PER_CALL as u32).map(route).collect() }
}
