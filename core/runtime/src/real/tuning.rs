//! How packets are taken from the machine's interfaces, and how threads that move them are scheduled: changed by
//! `weft_netlink` and `weft_port`, and put back.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use rustix::io::Errno;
use weft_netlink::{Napi, NapiControl, NapiSetting, Refusal};
use weft_port::{Scheduled, Scheduling};

use crate::{Tuned, Tuning};

/// What was changed, and how it was before.
#[derive(Default)]
pub(super) struct Tuner {
    control: Option<NapiControl>,
    /// By the numbers of interfaces.
    interfaces: BTreeMap<u32, Interface>,
    /// By the numbers of processes.
    processes: BTreeMap<u32, Scheduled>,
}

/// How an interface was.
#[derive(Default)]
struct Interface {
    gro: Option<bool>,
    /// By their numbers, which no other NAPI has later.
    napis: BTreeMap<u32, Before>,
}

/// How a NAPI was.
#[derive(Default)]
struct Before {
    threaded: Option<bool>,
    defer_interrupts: Option<u32>,
    flush_timeout: Option<Duration>,
    /// Its thread, and how that was scheduled.
    thread: Option<(u32, Scheduled)>,
}

impl Tuner {
    /// Makes an interface what is wanted. What is not wanted any more becomes what it was.
    pub(super) fn tune(&mut self, interface: u32, wanted: &Tuning) -> Tuned {
        let mut tuned = Tuned::default();
        if let Err(error) = self.try_tune(interface, wanted, &mut tuned) {
            // With an interface that is gone all is gone.
            if error.code() == Some(Errno::NODEV.raw_os_error()) {
                self.interfaces.remove(&interface);
                if *wanted == Tuning::default() {
                    return tuned;
                }
            }
            tuned.refused.push(format!("the kernel cannot be asked: {error}"));
        }
        tuned
    }

    fn try_tune(
        &mut self,
        interface: u32,
        wanted: &Tuning,
        tuned: &mut Tuned,
    ) -> Result<(), Refusal> {
        let control = match self.control.take() {
            Some(control) => control,
            None => NapiControl::open()?,
        };
        let control = self.control.insert(control);
        let before = self.interfaces.entry(interface).or_default();
        let now = control.gro(interface)?;
        let mut change = Change { refused: &mut tuned.refused };
        let set = |on| {
            control.set_gro(interface, on)?;
            Ok(control.gro(interface)? == on)
        };
        change.settle("gro", wanted.gro, Some(now), &mut before.gro, set);
        tuned.gro = Some(control.gro(interface)?);
        let napis = match control.napis(interface) {
            Ok(napis) => napis,
            Err(_) if !wants_napi(wanted) => return Ok(()),
            Err(refusal) if refusal.code() == Some(Errno::NOENT.raw_os_error()) => {
                let note = "the kernel tells nothing of NAPI: Linux 6.8 and newer do";
                tuned.refused.push(note.to_owned());
                return Ok(());
            }
            Err(refusal) => return Err(refusal),
        };
        before.napis.retain(|id, _| napis.iter().any(|napi| napi.id == *id));
        for napi in &napis {
            let before = before.napis.entry(napi.id).or_default();
            before.settle(control, napi, wanted, &mut tuned.refused);
        }
        if napis.is_empty() && wants_napi(wanted) {
            let note = "it has no NAPI now: interfaces have while they are up, virtual cables (veth) only with \
                        `gro on` or a program at XDP";
            tuned.refused.push(note.to_owned());
        }
        for napi in control.napis(interface)? {
            let before = before.napis.entry(napi.id).or_default();
            before.schedule(&napi, wanted, &mut tuned.refused);
            let scheduling = napi.thread.and_then(|thread| Scheduling::of(thread).ok());
            tuned.napis.push((napi, scheduling));
        }
        if *wanted == Tuning::default() {
            self.interfaces.remove(&interface);
        }
        Ok(())
    }

    /// Makes a process, of which it takes the first thread, what is wanted. What is not wanted any more becomes what
    /// it was.
    pub(super) fn schedule(
        &mut self,
        process: u32,
        wanted: &Scheduling,
    ) -> Result<(Scheduling, Vec<String>), String> {
        let gone = |error: io::Error| format!("process {process} cannot be scheduled: {error}");
        let noted = match self.processes.get(&process) {
            Some(noted) => *noted,
            None => Scheduled::note(process).map_err(gone)?,
        };
        let refused = noted.apply(process, wanted);
        match *wanted == Scheduling::default() {
            true => self.processes.remove(&process),
            false => self.processes.insert(process, noted),
        };
        Ok((Scheduling::of(process).map_err(gone)?, refused))
    }
}

/// Whether something is wanted of NAPIs.
fn wants_napi(wanted: &Tuning) -> bool {
    *wanted != Tuning { gro: wanted.gro, ..Tuning::default() }
}

impl Before {
    /// Makes the settings of a NAPI what is wanted.
    fn settle(
        &mut self,
        control: &mut NapiControl,
        napi: &Napi,
        wanted: &Tuning,
        refused: &mut Vec<String>,
    ) {
        let mut change = Change { refused };
        let mut set = |setting| control.set(napi.id, setting).map(|()| true);
        let threaded = |threaded| set(NapiSetting::Threaded(threaded));
        change.settle("threaded", wanted.threaded, napi.threaded, &mut self.threaded, threaded);
        let now = napi.defer_interrupts;
        let defer = |times| set(NapiSetting::DeferInterrupts(times));
        let before = &mut self.defer_interrupts;
        change.settle("defer-interrupts", wanted.defer_interrupts, now, before, defer);
        let now = napi.flush_timeout;
        let flush = |time| set(NapiSetting::FlushTimeout(time));
        change.settle("flush-timeout", wanted.flush_timeout, now, &mut self.flush_timeout, flush);
    }

    /// Schedules the thread of a NAPI as is wanted.
    fn schedule(&mut self, napi: &Napi, wanted: &Tuning, refused: &mut Vec<String>) {
        let wants = wanted.threads != Scheduling::default();
        let Some(thread) = napi.thread else {
            self.thread = None;
            if wants && napi.threaded == Some(true) {
                refused.push("the thread of its NAPI is not in sight: it belongs to a machine around this one".to_owned());
            }
            return;
        };
        let noted = self.thread.filter(|(known, _)| *known == thread).map(|(_, noted)| noted);
        let noted = match noted {
            Some(noted) => Some(noted),
            None if wants => Scheduled::note(thread).ok(),
            None => None,
        };
        if let Some(noted) = noted {
            refused.extend(noted.apply(thread, &wanted.threads));
        }
        self.thread = noted.filter(|_| wants).map(|noted| (thread, noted));
    }
}

/// A change of settings.
struct Change<'a> {
    refused: &'a mut Vec<String>,
}

impl Change<'_> {
    /// Makes a setting what is wanted, or what it was before. `set` says whether it has become so.
    fn settle<T: Copy + PartialEq>(
        &mut self,
        name: &str,
        wanted: Option<T>,
        now: Option<T>,
        before: &mut Option<T>,
        set: impl FnOnce(T) -> Result<bool, Refusal>,
    ) {
        let target = match wanted {
            Some(wanted) => {
                *before = before.or(now);
                wanted
            }
            None => match before.take() {
                Some(before) => before,
                None => return,
            },
        };
        let why = match now {
            Some(now) if now == target => return,
            Some(_) => match set(target) {
                Ok(true) => return,
                Ok(false) => "its driver cannot switch it".to_owned(),
                Err(refusal) if refusal.code() == Some(Errno::PERM.raw_os_error()) => {
                    "it needs the capability CAP_NET_ADMIN: run as root, or grant it".to_owned()
                }
                Err(refusal) => refusal.to_string(),
            },
            None => "this kernel does not tell of it by netlink: Linux 6.17 and newer do, 6.13 and newer but for \
                     `threaded`; root can write to the files of the interface in /sys/class/net instead"
                .to_owned(),
        };
        self.refused.push(format!("`{name}` is refused: {why}"));
    }
}

#[cfg(test)]
mod tests {
    use weft_port::Priority;
    use weft_port::testing::{Namespace, privileged};

    use super::*;

    /// A namespace with the veth `one`, which is up, and its number.
    fn world() -> (Namespace, Tuner, u32) {
        let namespace = Namespace::new();
        namespace.ip("link add name one type veth peer name two");
        namespace.ip("link set one up");
        let control = namespace.run(|| NapiControl::open().unwrap());
        let index = control.index("one").unwrap();
        (namespace, Tuner { control: Some(control), ..Tuner::default() }, index)
    }

    fn napis(tuner: &mut Tuner, interface: u32) -> Vec<Napi> {
        tuner.control.as_mut().unwrap().napis(interface).unwrap()
    }

    #[test]
    fn an_interface_becomes_what_is_wanted_and_again_what_it_was() {
        if !privileged() {
            return;
        }
        let (_namespace, mut tuner, one) = world();
        let gro = Tuning { gro: Some(true), ..Tuning::default() };
        let tuned = tuner.tune(one, &gro);
        assert_eq!((tuned.gro, tuned.refused), (Some(true), Vec::new()));
        let first = napis(&mut tuner, one)[0];
        if first.threaded.is_none() {
            return;
        }
        let processors = Scheduling::of(0).unwrap().processors.into_iter().take(1).collect();
        let threads = Scheduling { priority: Some(Priority::Fifo(3)), processors };
        let wanted = Tuning {
            threaded: Some(true),
            threads: threads.clone(),
            defer_interrupts: Some(2),
            flush_timeout: Some(Duration::from_micros(50)),
            ..gro.clone()
        };
        let tuned = tuner.tune(one, &wanted);
        assert_eq!(tuned.refused, Vec::<String>::new());
        let (napi, scheduling) = &tuned.napis[0];
        assert_eq!((napi.threaded, napi.defer_interrupts), (Some(true), Some(2)));
        assert_eq!(napi.flush_timeout, Some(Duration::from_micros(50)));
        assert_eq!(scheduling.as_ref(), Some(&threads));
        assert_eq!(tuner.tune(one, &wanted), tuned);
        // Switched off and on by somebody else it is new.
        let control = tuner.control.as_mut().unwrap();
        control.set_gro(one, false).unwrap();
        control.set_gro(one, true).unwrap();
        let again = tuner.tune(one, &wanted);
        assert_ne!(again.napis[0].0.id, napi.id);
        assert_eq!(again.napis[0].1.as_ref(), Some(&threads));
        assert_eq!(again.napis[0].0.defer_interrupts, Some(2));
        // A thread without the rest.
        let rest = Tuning { threaded: Some(true), ..gro.clone() };
        let tuned = tuner.tune(one, &rest);
        assert_eq!(tuned.napis[0].0.defer_interrupts, first.defer_interrupts);
        assert_eq!(tuned.napis[0].0.flush_timeout, first.flush_timeout);
        let scheduling = tuned.napis[0].1.as_ref().unwrap();
        assert_eq!(scheduling.priority, Some(Priority::Nice(0)));
        let tuned = tuner.tune(one, &gro);
        assert_eq!((tuned.napis[0].0.threaded, tuned.napis[0].0.thread), (Some(false), None));
        let tuned = tuner.tune(one, &Tuning::default());
        assert_eq!((tuned.gro, tuned.refused), (Some(false), Vec::new()));
        assert!(napis(&mut tuner, one).is_empty() && tuner.interfaces.is_empty());
    }

    #[test]
    fn what_cannot_be_is_said() {
        if !privileged() {
            return;
        }
        let (namespace, mut tuner, one) = world();
        let threaded = Tuning { threaded: Some(true), ..Tuning::default() };
        let tuned = tuner.tune(one, &threaded);
        assert!(tuned.refused[0].contains("has no NAPI now"), "{tuned:?}");
        namespace.ip("link del one");
        let tuned = tuner.tune(one, &threaded);
        assert!(tuned.refused[0].contains("No such device"), "{tuned:?}");
        assert!(tuner.interfaces.is_empty());
    }

    #[test]
    fn without_privileges_nothing_is_changed_and_that_is_said() {
        if !privileged() {
            return;
        }
        let (_namespace, mut tuner, one) = world();
        let tuned = std::thread::spawn(move || {
            // Capabilities are a thread's own.
            let none = rustix::thread::CapabilitySets {
                effective: rustix::thread::CapabilitySet::empty(),
                permitted: rustix::thread::CapabilitySet::empty(),
                inheritable: rustix::thread::CapabilitySet::empty(),
            };
            rustix::thread::set_capabilities(None, none).unwrap();
            tuner.tune(one, &Tuning { gro: Some(true), ..Tuning::default() })
        });
        let tuned = tuned.join().unwrap();
        assert_eq!(tuned.gro, Some(false));
        assert!(tuned.refused[0].contains("CAP_NET_ADMIN"), "{tuned:?}");
    }

    #[test]
    fn a_process_is_scheduled_and_again_as_it_was() {
        if !privileged() {
            return;
        }
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let mut tuner = Tuner::default();
        let before = Scheduling::of(child.id()).unwrap();
        let wanted = Scheduling {
            priority: Some(Priority::Nice(-7)),
            processors: before.processors.iter().copied().take(1).collect(),
        };
        let (now, refused) = tuner.schedule(child.id(), &wanted).unwrap();
        assert_eq!((&now, refused), (&wanted, Vec::new()));
        let (now, refused) = tuner.schedule(child.id(), &Scheduling::default()).unwrap();
        assert_eq!((now, refused), (before, Vec::new()));
        assert!(tuner.processes.is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(tuner.schedule(child.id(), &wanted).is_err());
    }
}
