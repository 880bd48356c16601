//! What goes wrong, and when it is mended.

use std::collections::BTreeSet;
use std::time::Duration;

use weft_base::Random;

use crate::plan::{Plan, ROUTERS};
use crate::router::PROCESSES;

/// For how long faults happen.
const TIME: u64 = 120_000;

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Link(usize, bool),
    Stub(usize, bool),
    Kill(usize, usize),
    Start(usize, usize),
    /// The session of a router over a link is cleared.
    Clear(usize, usize, Option<&'static str>),
}

/// All of it, in order, by the time since the beginning; and what is never mended.
pub(crate) struct Faults {
    pub(crate) events: Vec<(Duration, Event)>,
    pub(crate) down: BTreeSet<usize>,
    pub(crate) stubs_down: BTreeSet<usize>,
}

impl Faults {
    pub(crate) fn new(plan: &Plan, random: &mut Random) -> Self {
        let mut faults =
            Self { events: Vec::new(), down: BTreeSet::new(), stubs_down: BTreeSet::new() };
        for _ in 0..6 + random.below(10) {
            faults.one(plan, random);
        }
        for link in 0..plan.links.len() {
            if random.below(10) == 0 {
                faults.down.insert(link);
                faults.push(TIME, Event::Link(link, false));
            }
        }
        for router in 0..ROUTERS {
            if random.below(10) == 0 {
                faults.stubs_down.insert(router);
                faults.push(TIME, Event::Stub(router, false));
            }
        }
        // Those at the same time stay in their order.
        faults.events.sort_by_key(|(at, _)| *at);
        faults
    }

    fn push(&mut self, at: u64, event: Event) {
        self.events.push((Duration::from_millis(at), event));
    }

    fn one(&mut self, plan: &Plan, random: &mut Random) {
        // Everything is mended before what stays for ever happens.
        let at = random.below(TIME - 30_000);
        let until = at + 1 + random.below(20_000);
        let router = random.below(ROUTERS as u64) as usize;
        let link = random.below(plan.links.len() as u64) as usize;
        match random.below(6) {
            0 | 1 => {
                self.push(at, Event::Link(link, false));
                self.push(until, Event::Link(link, true));
            }
            2 => {
                self.push(at, Event::Stub(router, false));
                self.push(until, Event::Stub(router, true));
            }
            3 => {
                let place = random.below(PROCESSES.len() as u64) as usize;
                self.push(at, Event::Kill(router, place));
                self.push(at + 1 + random.below(3000), Event::Start(router, place));
            }
            4 => {
                // The machine fails.
                (0..PROCESSES.len()).for_each(|place| self.push(at, Event::Kill(router, place)));
                (0..PROCESSES.len())
                    .for_each(|place| self.push(until, Event::Start(router, place)));
            }
            _ => {
                let soft = [None, Some("in"), Some("out")][random.below(3) as usize];
                let router = plan.links[link].ends[random.below(2) as usize];
                self.push(at, Event::Clear(router, link, soft));
            }
        }
    }
}
