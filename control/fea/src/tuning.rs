//! How packets are taken from interfaces (GRO and NAPI), and how processes that forward share the processors.
//!
//! Reference: Handley et al. (XORP), §7 (what takes privileges is the FEA's); Linux kernel,
//! Documentation/networking/napi.rst; sched(7).
//!
//! The driver changes, and puts back (`weft_runtime::Tuning`). Here is decided when: when the configuration changes,
//! and each time when an interface may have become new, since with its NAPIs its settings and threads are new.
//! What the system refuses ends nothing: it is reported, and told to who asks.

use std::collections::{BTreeMap, BTreeSet};

use weft_base::Token;
use weft_runtime::{Action, Interface, Level, Priority, Scheduling, Tuned, Tuning};
use weft_xrl::{Called, Output, XrlError, fea};

/// What a priority is called that is none of weft's.
const OTHER: &str = "other";

#[derive(Default)]
pub(crate) struct Tunings {
    /// By the numbers of interfaces.
    interfaces: BTreeMap<u32, Own>,
    /// What was asked for an interface, by token.
    asked: BTreeMap<Token, u32>,
    /// Who waits to be scheduled.
    scheduling: BTreeMap<Token, Called>,
    /// Who waits to be told of all, and the last token that has to be answered before.
    waiting: Vec<(Token, Called)>,
    last_token: u32,
}

/// An interface of which something is wanted.
struct Own {
    name: String,
    /// What was asked for last, and what the interface was like; nothing if it has to be asked for again.
    asked: Option<(Tuning, bool, bool)>,
    tuned: Tuned,
}

impl Tunings {
    /// Asks for what is different from what was asked for before.
    pub(crate) fn settle<'a>(
        &mut self,
        wanted: impl Iterator<Item = (&'a Interface, &'a Tuning)>,
        out: &mut Vec<Output>,
    ) {
        let mut there = BTreeSet::new();
        for (interface, tuning) in wanted {
            there.insert(interface.index);
            let state = (tuning.clone(), interface.up, interface.running);
            let own = self.interfaces.entry(interface.index).or_insert_with(|| Own {
                name: String::new(),
                asked: None,
                tuned: Tuned::default(),
            });
            own.name.clone_from(&interface.name);
            if own.asked.as_ref() != Some(&state) {
                own.asked = Some(state);
                self.ask(interface.index, tuning.clone(), out);
            }
        }
        let over: Vec<_> =
            self.interfaces.keys().copied().filter(|index| !there.contains(index)).collect();
        for index in over {
            self.interfaces.remove(&index);
            self.ask(index, Tuning::default(), out);
        }
    }

    fn token(&mut self) -> Token {
        self.last_token = self.last_token.wrapping_add(1) & 0xff_ffff;
        Token(self.last_token)
    }

    fn ask(&mut self, interface: u32, tuning: Tuning, out: &mut Vec<Output>) {
        let token = self.token();
        self.asked.insert(token, interface);
        out.push(Output::World(Action::Tune { token, interface, tuning }));
    }

    /// Interfaces may have become new.
    pub(crate) fn again(&mut self) {
        self.interfaces.values_mut().for_each(|own| own.asked = None);
    }

    /// An interface was made what is wanted, as far as that can be.
    pub(crate) fn tuned(&mut self, token: Token, tuned: Tuned, out: &mut Vec<Output>) {
        let Some(interface) = self.asked.remove(&token) else { return };
        if let Some(own) = self.interfaces.get_mut(&interface) {
            // What was refused before was said before.
            let new = tuned.refused.iter().filter(|error| !own.tuned.refused.contains(error));
            for error in new {
                let line = format!("interface {}: {error}", own.name);
                out.push(Output::World(Action::Report { level: Level::Warning, line }));
            }
            own.tuned = tuned;
        } else {
            for error in tuned.refused {
                let line = format!(
                    "how packets are taken from interface number {interface} is not as it was before: {error}"
                );
                out.push(Output::World(Action::Report { level: Level::Warning, line }));
            }
        }
        let waiting = self.waiting.extract_if(.., |(last, _)| *last == token);
        let waiting: Vec<_> = waiting.map(|(_, called)| called).collect();
        for called in waiting {
            out.push(called.answer(Ok(self.reply())));
        }
    }

    /// Tells of all, when each was asked for again.
    pub(crate) fn tell<'a>(
        &mut self,
        called: Called,
        wanted: impl Iterator<Item = (&'a Interface, &'a Tuning)>,
        out: &mut Vec<Output>,
    ) {
        self.again();
        let before = self.last_token;
        self.settle(wanted, out);
        match self.last_token == before {
            true => out.push(called.answer(Ok(self.reply()))),
            // The driver answers in order.
            false => self.waiting.push((Token(self.last_token), called)),
        }
    }

    fn reply(&self) -> fea::TuningReply {
        let mut all: Vec<_> = self.interfaces.values().collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        let mut reply =
            fea::TuningReply { interfaces: Vec::new(), napis: Vec::new(), refusals: Vec::new() };
        for own in all {
            let interface = || own.name.clone();
            let gro = own.tuned.gro.unwrap_or_default();
            reply.interfaces.push(fea::Tuned { interface: interface(), gro });
            reply.napis.extend(own.tuned.napis.iter().map(|(napi, scheduling)| {
                let of = |text: fn(&Scheduling) -> String| scheduling.as_ref().map(text);
                fea::Napi {
                    interface: interface(),
                    id: napi.id,
                    thread: napi.thread.unwrap_or_default(),
                    priority: of(|one| priority(one.priority)).unwrap_or_default(),
                    processors: of(processors).unwrap_or_default(),
                    defer_interrupts: napi.defer_interrupts.unwrap_or_default(),
                    // What 64 bits do not hold are 584 years.
                    flush_timeout: napi
                        .flush_timeout
                        .map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
                }
            }));
            let refused = own.tuned.refused.iter();
            reply.refusals.extend(
                refused.map(|error| fea::Refusal { interface: interface(), error: error.clone() }),
            );
        }
        reply
    }

    /// Everything is put back.
    pub(crate) fn stop(&mut self, out: &mut Vec<Output>) {
        self.settle(std::iter::empty(), out);
    }

    /// Has a caller scheduled in another way.
    pub(crate) fn schedule(
        &mut self,
        called: Called,
        request: &fea::Schedule,
        out: &mut Vec<Output>,
    ) {
        let Some(process) = called.pid else {
            let note = "only a process of this machine can be scheduled, and by its own call";
            return out.push(called.fail(XrlError::failed(note)));
        };
        let priority = request.priority.as_deref().map(str::parse::<Priority>).transpose();
        let numbers = request.processors.iter().map(|number| u16::try_from(*number));
        let processors = numbers.collect::<Result<BTreeSet<_>, _>>();
        let processors =
            processors.map_err(|_| "processors have numbers from 0 to 1023".to_owned());
        match priority.and_then(|priority| Ok(Scheduling { priority, processors: processors? })) {
            Ok(scheduling) => {
                let token = self.token();
                self.scheduling.insert(token, called);
                let process = Some(process);
                out.push(Output::World(Action::Schedule { token, process, scheduling }));
            }
            Err(error) => out.push(called.fail(XrlError::bad_args(error))),
        }
    }

    /// A caller is scheduled, as far as that can be.
    pub(crate) fn scheduled(
        &mut self,
        token: Token,
        result: Result<(Scheduling, Vec<String>), String>,
        out: &mut Vec<Output>,
    ) {
        let Some(called) = self.scheduling.remove(&token) else { return };
        out.push(match result {
            Ok((now, refused)) => {
                let processors = now.processors.iter().copied().map(u32::from).collect();
                let priority = priority(now.priority);
                called.answer(Ok(fea::ScheduleReply { priority, processors, refused }))
            }
            Err(error) => called.fail(XrlError::failed(error)),
        });
    }
}

fn priority(priority: Option<Priority>) -> String {
    priority.map_or(OTHER.to_owned(), |priority| priority.to_string())
}

fn processors(scheduling: &Scheduling) -> String {
    let numbers: Vec<_> = scheduling.processors.iter().map(u16::to_string).collect();
    numbers.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(index: u32, up: bool) -> Interface {
        Interface {
            index,
            name: format!("eth{index}"),
            kind: "veth".to_owned(),
            mac: None,
            mtu: 1500,
            up,
            running: up,
            master: None,
            addresses: BTreeSet::new(),
        }
    }

    /// What is asked of the driver, and its tokens.
    fn asked(out: &mut Vec<Output>) -> Vec<(Token, u32, Tuning)> {
        out.drain(..)
            .filter_map(|output| match output {
                Output::World(Action::Tune { token, interface, tuning }) => {
                    Some((token, interface, tuning))
                }
                _ => None,
            })
            .collect()
    }

    #[test]
    fn an_interface_is_asked_for_when_it_is_new_changes_or_goes() {
        let (mut tunings, mut out) = (Tunings::default(), Vec::new());
        let gro = Tuning { gro: Some(true), ..Tuning::default() };
        let mut eth1 = interface(1, true);
        for expected in [1, 0] {
            tunings.settle([(&eth1, &gro)].into_iter(), &mut out);
            assert_eq!(asked(&mut out).len(), expected);
        }
        eth1.up = false;
        tunings.settle([(&eth1, &gro)].into_iter(), &mut out);
        assert_eq!(asked(&mut out)[0].2, gro);
        tunings.again();
        tunings.settle([(&eth1, &gro)].into_iter(), &mut out);
        assert_eq!(asked(&mut out).len(), 1);
        // The same name with another number is another interface.
        let other = interface(2, true);
        tunings.settle([(&other, &gro)].into_iter(), &mut out);
        let all: Vec<_> = asked(&mut out).into_iter().map(|(_, at, what)| (at, what)).collect();
        assert_eq!(all, [(2, gro), (1, Tuning::default())]);
        tunings.stop(&mut out);
        assert_eq!(asked(&mut out)[0].2, Tuning::default());
    }

    #[test]
    fn a_refusal_is_reported_once() {
        let (mut tunings, mut out) = (Tunings::default(), Vec::new());
        let gro = Tuning { gro: Some(true), ..Tuning::default() };
        let eth1 = interface(1, true);
        for expected in [1, 0] {
            tunings.again();
            tunings.settle([(&eth1, &gro)].into_iter(), &mut out);
            let (token, ..) = asked(&mut out).remove(0);
            let refused = vec!["no".to_owned()];
            tunings.tuned(token, Tuned { refused, ..Tuned::default() }, &mut out);
            assert_eq!(out.drain(..).count(), expected);
        }
        assert_eq!(tunings.reply().refusals.len(), 1);
    }
}
