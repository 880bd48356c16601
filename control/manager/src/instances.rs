//! The processes of a node, what each of them is doing, and when it is started again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weft_base::Instant;
use weft_xrl::frame::Secret;

/// A process that lived so long has proved itself: it is started again at once when it dies.
const PROVED: Duration = Duration::from_secs(10);
/// First and longest time before a process that dies soon is started again.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

#[derive(Default)]
pub(crate) struct Instances {
    all: BTreeMap<String, Instance>,
    /// Processes that were told to end and have not yet.
    ending: BTreeSet<String>,
    /// What the launcher was asked and has not answered, by the number of the request.
    asked: BTreeMap<u64, (Asked, String)>,
}

/// What the launcher is asked of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Start,
    Stop,
}

/// One process.
pub(crate) struct Instance {
    pub(crate) class: String,
    pub(crate) secret: Secret,
    pub(crate) uid: u32,
    pub(crate) restarts: u32,
    pub(crate) trouble: String,
    /// How it last ended.
    pub(crate) ended: String,
    pub(crate) run: Run,
    /// Whether the Finder knows it.
    pub(crate) registered: bool,
    pub(crate) configured: Configured,
    back_off: Duration,
}

/// Whether a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// It is to be started at this time.
    Due(Instant),
    /// The launcher was asked to start it.
    Asked,
    /// It runs.
    Up { pid: u32, since: Instant },
}

/// Whether a process has its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Configured {
    No,
    Asked,
    Yes,
    Refused,
}

impl Instances {
    pub(crate) fn add(&mut self, name: &str, class: &str, secret: Secret, run: Run) {
        let instance = Instance {
            class: class.to_owned(),
            secret,
            uid: 0,
            restarts: 0,
            trouble: String::new(),
            ended: String::new(),
            run,
            registered: false,
            configured: Configured::No,
            back_off: Duration::ZERO,
        };
        self.all.insert(name.to_owned(), instance);
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Instance> {
        self.all.get_mut(name)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Instance> {
        self.all.get(name)
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.all.contains_key(name)
    }

    /// Forgets a process that is told to end; `false` if there is none.
    pub(crate) fn end(&mut self, name: &str) -> bool {
        let Some(instance) = self.all.remove(name) else { return false };
        if matches!(instance.run, Run::Up { .. } | Run::Asked) {
            self.ending.insert(name.to_owned());
        }
        true
    }

    /// Forgets all processes: the node ends, and the launcher tells them so.
    pub(crate) fn end_all(&mut self) {
        self.ending.extend(std::mem::take(&mut self.all).into_keys());
    }

    /// The launcher was asked something of a process.
    pub(crate) fn asked(&mut self, id: u64, what: Asked, name: &str) {
        self.asked.insert(id, (what, name.to_owned()));
    }

    /// The launcher has answered: what it was asked, and of which process.
    pub(crate) fn answered(&mut self, id: u64) -> Option<(Asked, String)> {
        self.asked.remove(&id)
    }

    /// A process has ended, or is not there at all; whether it was told to end.
    pub(crate) fn ended(&mut self, name: &str) -> bool {
        self.ending.remove(name)
    }

    /// All, in order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Instance)> {
        self.all.iter().map(|(name, instance)| (name.as_str(), instance))
    }

    /// The Finder does not know it any more.
    pub(crate) fn unregistered(&mut self, name: &str) {
        if let Some(instance) = self.all.get_mut(name) {
            instance.registered = false;
        }
    }

    /// Those to be started now.
    pub(crate) fn due(&self, now: Instant) -> Vec<String> {
        let due = |instance: &Instance| matches!(instance.run, Run::Due(at) if at <= now);
        // One of the same name that still ends must have ended.
        let free = |name: &String| !self.ending.contains(name);
        let due = self.all.iter().filter(|(name, instance)| due(instance) && free(name));
        due.map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let due = |(name, instance): (&String, &Instance)| match instance.run {
            Run::Due(at) if !self.ending.contains(name) => Some(at),
            _ => None,
        };
        self.all.iter().filter_map(due).min()
    }
}

impl Instance {
    /// It has ended, or could not be started: decides when it is started again.
    pub(crate) fn down(&mut self, now: Instant, trouble: String) {
        let lived = match self.run {
            Run::Up { since, .. } => now.since(since),
            Run::Due(_) | Run::Asked => Duration::ZERO,
        };
        if lived >= PROVED {
            self.back_off = Duration::ZERO;
        }
        self.run = Run::Due(now + self.back_off);
        self.back_off = (self.back_off * 2).clamp(BACK_OFF.0, BACK_OFF.1);
        self.registered = false;
        self.configured = Configured::No;
        self.restarts += 1;
        self.ended.clone_from(&trouble);
        self.trouble = trouble;
    }

    /// What it is doing, in a word.
    pub(crate) fn state(&self, has_statement: bool) -> &'static str {
        match (self.run, self.registered, self.configured) {
            (Run::Due(_), _, _) => "waiting",
            (Run::Asked, _, _) | (Run::Up { .. }, false, Configured::No) => "starting",
            (_, _, Configured::Refused) => "refused",
            (_, _, Configured::Yes) => "running",
            _ if !has_statement => "running",
            _ => "configuring",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_process_that_dies_soon_is_started_later_each_time() {
        let mut instances = Instances::default();
        instances.add("xia", "xia", [0; 32], Run::Up { pid: 1, since: at(0) });
        let instance = instances.get_mut("xia").unwrap();
        let mut waits = Vec::new();
        for _ in 0..9 {
            instance.run = Run::Up { pid: 1, since: at(50) };
            instance.down(at(60), "died".to_owned());
            let Run::Due(due) = instance.run else { panic!("it is not to be started again") };
            waits.push(due.since(at(60)).as_millis());
        }
        assert_eq!(waits, [0, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        instance.run = Run::Up { pid: 1, since: at(100) };
        instance.down(at(10_100), "died".to_owned());
        assert_eq!(instance.run, Run::Due(at(10_100)));
        assert_eq!(instances.due(at(10_100)), ["xia"]);
    }
}
