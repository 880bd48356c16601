//! What the manager tells of the processes: its own knowledge, and what they use, which the launcher
//! knows.

use std::collections::BTreeMap;

use weft_base::CounterGroup;
use weft_launcher::protocol::{Command, Usage};
use weft_xrl::{Called, FINDER, Output};

use crate::instances::{Instance, Run};
use crate::interface::{Process, ProcessesReply};
use crate::{MANAGER, Manager, interface};

/// Processes that the manager does not start.
const OWN: [&str; 2] = ["launcher", MANAGER];

impl Manager {
    /// A caller wants to know the processes: the launcher is asked what they use.
    pub(crate) fn ask_for_usage(&mut self, called: Called, out: &mut Vec<Output>) {
        let id = self.ask(Command::Usage {}, out);
        self.calls.wait(id, called);
    }

    /// The launcher has said what the processes use.
    pub(crate) fn usage_known(&mut self, id: u64, all: Vec<Usage>, out: &mut Vec<Output>) {
        let Some(called) = self.calls.take(id) else { return };
        let mut all: BTreeMap<_, _> =
            all.into_iter().map(|usage| (usage.instance.as_str().to_owned(), usage)).collect();
        let mut processes: Vec<_> = self
            .instances
            .iter()
            .map(|(name, one)| self.process(name, one, all.remove(name).as_ref()))
            .collect();
        // The launcher and this process itself.
        let own = all.into_values().filter(|usage| OWN.contains(&usage.instance.as_str()));
        processes.extend(own.map(unmanaged));
        processes.sort_by(|a, b| a.instance.cmp(&b.instance));
        out.push(called.answer(Ok(ProcessesReply {
            node: self.settings.node.clone(),
            processes,
            missing: self.missing.clone(),
        })));
    }

    fn process(&self, name: &str, one: &Instance, usage: Option<&Usage>) -> interface::Process {
        let (pid, since) = match one.run {
            Run::Up { pid, since } => (pid, since.as_nanos()),
            Run::Due(_) | Run::Asked => (0, 0),
        };
        let state = self.state(name, one);
        // What is told of a process before this one is not this one's.
        let usage = usage.filter(|usage| usage.pid.unsigned_abs() == pid);
        Process {
            instance: name.to_owned(),
            class: one.class.clone(),
            pid,
            uid: one.uid,
            state: state.to_owned(),
            since,
            restarts: one.restarts,
            trouble: one.trouble.clone(),
            ended: one.ended.clone(),
            memory: usage.map_or(0, |usage| usage.memory),
            processor: usage.map_or(0, |usage| usage.processor),
        }
    }

    /// What a process is doing, in a word.
    pub(crate) fn state(&self, name: &str, one: &Instance) -> &'static str {
        let has_statement = self.commits.part(&one.class).is_some();
        match (name == FINDER, one.run) {
            // The Finder registers nowhere.
            (true, Run::Up { .. }) => "running",
            _ => one.state(has_statement),
        }
    }

    /// How often processes were started again.
    pub(crate) fn restarts(&self) -> CounterGroup {
        let help = "how often a process was started again";
        let mut group = CounterGroup::labelled("restarts", help, "process");
        for (name, one) in self.instances.iter() {
            group.add(name, one.restarts.into());
        }
        group
    }
}

fn unmanaged(usage: Usage) -> interface::Process {
    Process {
        class: usage.instance.as_str().to_owned(),
        instance: usage.instance.into(),
        pid: usage.pid.unsigned_abs(),
        uid: usage.uid.unwrap_or_default(),
        state: "running".to_owned(),
        since: usage.since,
        restarts: usage.restarts,
        trouble: String::new(),
        ended: String::new(),
        memory: usage.memory,
        processor: usage.processor,
    }
}
