//! Packet engines of the kernel, opened and attached for those who write their tables.
//!
//! Reference: Handley et al. (XORP), §3 (the FEA hides how packets are forwarded); bpf(2).
//!
//! What holds an engine is kept by the launcher, which the manager is asked for, under names such as
//! `eng-xip-p1-link`. So an engine forwards on when this process dies, and the next one takes it over before it
//! does anything else with it. Nobody waits for something to be kept: if it cannot be, the engine ends with this
//! process, and that is reported.
//!
//! An engine sees packets before everything else does, and sends them past everything else. So it is not attached
//! where a program of weft at traffic control wants to see packets.

use std::collections::{BTreeMap, BTreeSet};

use weft_base::Token;
use weft_runtime::{Action, EngineMode, EngineReply, EngineRequest, Handle, Level};
use weft_xrl::{Call, Called, Output, Reply, XrlError, fea};

use crate::manager;

/// What the names of kept descriptors begin with.
const PREFIX: &str = "eng-";
/// Set in the numbers of calls of this module.
const OWN_CALLS: u64 = 1 << 63;
/// Who has descriptors kept.
const MANAGER: &str = "manager";

#[derive(Default)]
pub(crate) struct Engines {
    /// What an earlier FEA had kept, by engines, until it is adopted.
    kept: BTreeMap<String, Vec<(String, Handle)>>,
    /// Where engines are attached: engine and interface.
    attached: BTreeSet<(String, String)>,
    waiting: BTreeMap<Token, Job>,
    last_token: u32,
    last_call: u64,
}

/// What the driver was asked for.
enum Job {
    Adopt { engine: String },
    Open { called: Called, engine: String },
    Attach { called: Called, engine: String, interface: String },
    Detach { called: Called, engine: String, interface: String },
}

impl Engines {
    /// Something of an earlier FEA was kept; given back if it is of no engine.
    pub(crate) fn kept(&mut self, name: String, handle: Handle) -> Option<(String, Handle)> {
        // What the launcher calls it begins with the name of this process.
        let own = name.rsplit_once("--").map_or(name.as_str(), |(_, own)| own);
        let Some((engine, part)) = own.strip_prefix(PREFIX).and_then(|own| own.split_once('-'))
        else {
            return Some((name, handle));
        };
        self.kept.entry(engine.to_owned()).or_default().push((part.to_owned(), handle));
        None
    }

    /// Takes over what was kept, if there is something.
    pub(crate) fn adopt(&mut self, out: &mut Vec<Output>) {
        for (engine, kept) in std::mem::take(&mut self.kept) {
            let request = EngineRequest::Adopt { engine: engine.clone(), kept };
            self.ask(Job::Adopt { engine }, request, out);
        }
    }

    pub(crate) fn open(&mut self, called: Called, request: fea::OpenEngine, out: &mut Vec<Output>) {
        self.adopt(out);
        let fea::OpenEngine { engine, most } = request;
        let most = most.unwrap_or_default();
        let request = EngineRequest::Open { engine: engine.clone(), most };
        self.ask(Job::Open { called, engine }, request, out);
    }

    /// `in_the_way` is the name of a program that wants to see the interface's packets.
    pub(crate) fn attach(
        &mut self,
        called: Called,
        request: fea::AttachEngine,
        in_the_way: Option<&str>,
        out: &mut Vec<Output>,
    ) {
        self.adopt(out);
        let fea::AttachEngine { engine, interface, mac, mtu, mode } = request;
        let Some(mode) = EngineMode::ALL.into_iter().find(|known| known.name() == mode) else {
            let note = format!(
                "`{}` is no mode of an engine: say auto, driver or generic",
                mode.escape_debug()
            );
            return out.push(called.fail(XrlError::bad_args(note)));
        };
        if let Some(program) = in_the_way {
            let note = format!(
                "the program {program} is at the interface {interface}, and would not see what the \
                 engine forwards: detach it first"
            );
            return out.push(called.fail(XrlError::failed(note)));
        }
        let request = EngineRequest::Attach {
            engine: engine.clone(),
            interface: interface.clone(),
            mac: mac.0,
            mtu,
            mode,
        };
        self.ask(Job::Attach { called, engine, interface }, request, out);
    }

    pub(crate) fn detach(
        &mut self,
        called: Called,
        request: fea::DetachEngine,
        out: &mut Vec<Output>,
    ) {
        self.adopt(out);
        let fea::DetachEngine { engine, interface } = request;
        let detach = EngineRequest::Detach { engine: engine.clone(), interface: interface.clone() };
        self.ask(Job::Detach { called, engine, interface }, detach, out);
    }

    fn ask(&mut self, job: Job, request: EngineRequest, out: &mut Vec<Output>) {
        self.last_token = self.last_token.wrapping_add(1) & 0xff_ffff;
        let token = Token(self.last_token);
        self.waiting.insert(token, job);
        out.push(Output::World(Action::Engine { token, request }));
    }

    /// The engine that is attached to an interface.
    pub(crate) fn at(&self, interface: &str) -> Option<&str> {
        let mut attached = self.attached.iter();
        attached.find(|(_, at)| at == interface).map(|(engine, _)| engine.as_str())
    }

    /// The kernel has done what was asked, or refuses it.
    pub(crate) fn answered(
        &mut self,
        token: Token,
        result: Result<EngineReply, String>,
        out: &mut Vec<Output>,
    ) {
        let Some(job) = self.waiting.remove(&token) else { return };
        match (job, result) {
            (Job::Adopt { engine }, Ok(EngineReply::Adopted { interfaces })) => {
                let places = interfaces.join(", ");
                let line = format!("the packet engine {engine} is taken over; it is at: {places}");
                report(Level::Info, line, out);
                self.attached.extend(interfaces.into_iter().map(|at| (engine.clone(), at)));
            }
            (Job::Adopt { engine }, Err(error)) => {
                let line = format!("the packet engine {engine} cannot be taken over: {error}");
                report(Level::Warning, line, out);
            }
            (Job::Open { called, engine }, Ok(EngineReply::Opened { tables, keep, release })) => {
                if !release.is_empty() {
                    self.attached.retain(|(other, _)| *other != engine);
                }
                self.release(&engine, release, out);
                self.keep(&engine, keep, out);
                out.push(called.answer(Ok(fea::OpenEngineReply { tables })));
            }
            (
                Job::Attach { called, engine, interface },
                Ok(EngineReply::Attached { slot, mode, fallback, keep, release }),
            ) => {
                self.release(&engine, release, out);
                self.keep(&engine, keep, out);
                self.attached.insert((engine, interface));
                let (slot, mode) = (slot.0.get().into(), mode.name().to_owned());
                let reply = fea::AttachEngineReply { slot, mode, fallback };
                out.push(called.answer(Ok(reply)));
            }
            (Job::Detach { called, engine, interface }, Ok(EngineReply::Done { release })) => {
                self.release(&engine, release, out);
                self.attached.remove(&(engine, interface));
                out.push(called.answer(Ok(())));
            }
            (
                Job::Open { called, .. } | Job::Attach { called, .. } | Job::Detach { called, .. },
                Err(error),
            ) => out.push(called.fail(XrlError::failed(error))),
            // Each request has its answer.
            (_, Ok(_)) => {}
        }
    }

    fn call(&mut self) -> u64 {
        self.last_call += 1;
        self.last_call | OWN_CALLS
    }

    fn keep(&mut self, engine: &str, parts: Vec<(String, Handle)>, out: &mut Vec<Output>) {
        for (part, descriptor) in parts {
            let name = format!("{PREFIX}{engine}-{part}");
            out.push(Call::new(self.call(), MANAGER, manager::Keep { name, descriptor }).into());
        }
    }

    fn release(&mut self, engine: &str, parts: Vec<String>, out: &mut Vec<Output>) {
        for part in parts {
            let name = format!("{PREFIX}{engine}-{part}");
            out.push(Call::new(self.call(), MANAGER, manager::Release { name }).into());
        }
    }

    /// Whether a call was made here.
    pub(crate) fn has_called(&self, token: u64) -> bool {
        token & OWN_CALLS != 0 && token & !OWN_CALLS <= self.last_call
    }

    /// The manager has answered.
    pub(crate) fn replied(&mut self, result: &Result<Reply, XrlError>, out: &mut Vec<Output>) {
        if let Err(error) = result {
            let line = format!(
                "a part of a packet engine cannot be kept, and ends with this process: {error}"
            );
            report(Level::Warning, line, out);
        }
    }
}

fn report(level: Level, line: String, out: &mut Vec<Output>) {
    out.push(Output::World(Action::Report { level, line }));
}
