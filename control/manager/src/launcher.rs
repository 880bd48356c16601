//! What is said to the launcher, and what it says.

use std::borrow::Cow;

use weft_base::{Handle, Instant, Message, Packet};
use weft_launcher::protocol::{
    self, Command, Limits, ListenerKind, ListenerSpec, Listing, Outcome, Request, Spec, State,
};
use weft_launcher::{Name, Secret};
use weft_runtime::{Action, Level};
use weft_xrl::{FINDER, Output};

use crate::commit::Found;
use crate::instances::{Asked, Run};
use crate::{Class, Manager, ProgramKind, report};

/// How long a process has to end when it is not needed any more, in milliseconds.
const GRACE: u32 = 2_000;
/// What the names of the sockets begin with at which components take calls.
pub const CALLS: &str = "xrl-";

impl Manager {
    pub(crate) fn ask(&mut self, command: Command, out: &mut Vec<Output>) -> u64 {
        self.ask_with(command, Vec::new(), out)
    }

    /// Asks for something to which descriptors belong.
    pub(crate) fn ask_with(
        &mut self,
        command: Command,
        handles: Vec<Handle>,
        out: &mut Vec<Output>,
    ) -> u64 {
        self.last_request += 1;
        let request = Request { id: self.last_request, command };
        match (request.encode(), self.launcher) {
            (Ok(bytes), Some(channel)) => {
                let message = Message { handles, ..Packet::from_slice(&bytes).into() };
                out.push(Output::World(Action::Send { channel, message }));
            }
            (Err(error), _) => report(out, Level::Error, error.to_string()),
            (Ok(_), None) => {}
        }
        self.last_request
    }

    pub(crate) fn ask_what_runs(&mut self, after: Option<Name>, out: &mut Vec<Output>) {
        self.ask(Command::List { after }, out);
    }

    pub(crate) fn launcher_says(&mut self, now: Instant, bytes: &[u8], out: &mut Vec<Output>) {
        match protocol::Message::decode(bytes) {
            Ok(protocol::Message::Reply { outcome: Outcome::Listing(listing), .. }) => {
                self.adopt(now, listing, out);
            }
            Ok(protocol::Message::Reply { id, outcome: Outcome::Usage(all) }) => {
                self.usage_known(id, all, out);
            }
            Ok(protocol::Message::Reply { id, outcome: Outcome::Refused { error } }) => {
                self.refused(now, id, error, out);
            }
            Ok(protocol::Message::Reply { id, outcome: Outcome::Done {} }) => {
                self.instances.answered(id);
                self.calls.done(id, out);
            }
            Ok(protocol::Message::Started { instance, pid, uid }) => {
                if let Some(one) = self.instances.get_mut(instance.as_str()) {
                    // Process ids are positive.
                    one.run = Run::Up { pid: pid.unsigned_abs(), since: now };
                    one.uid = uid.unwrap_or_default();
                }
            }
            Ok(protocol::Message::Exited { instance, pid, exit }) => {
                let name = instance.as_str();
                if self.instances.ended(name) {
                    self.start_due(now, out);
                    return;
                }
                let current = self.instances.get_mut(name).filter(|one| match one.run {
                    Run::Up { pid: current, .. } => current == pid.unsigned_abs(),
                    Run::Asked => true,
                    Run::Due(_) => false,
                });
                if let Some(one) = current {
                    report(out, Level::Warning, format!("{name} (process {pid}) {exit}"));
                    one.down(now, exit.to_string());
                    self.changed(now, name, Err(exit.to_string().into()), out);
                    self.start_due(now, out);
                }
            }
            Ok(protocol::Message::Failed { instance, error }) => {
                let name = instance.as_str();
                // It was not wanted any more, and one that is wanted again need not wait for its end.
                if self.instances.ended(name) {
                    self.start_due(now, out);
                    return;
                }
                if let Some(one) = self.instances.get_mut(name) {
                    report(out, Level::Error, format!("{name} cannot be started: {error}"));
                    one.down(now, error.clone());
                    self.changed(now, name, Err(error.into()), out);
                }
            }
            Ok(protocol::Message::Stopping {}) => self.instances.end_all(),
            Ok(protocol::Message::Report { time, level, text }) => {
                let level = level.parse().unwrap_or(Level::Info);
                let (time, text) = (Instant::from_nanos(time), format!("launcher: {text}"));
                out.push(Output::Record { time, level, text });
            }
            Err(error) => report(out, Level::Error, format!("the launcher: {error}")),
        }
    }

    fn refused(&mut self, now: Instant, id: u64, error: String, out: &mut Vec<Output>) {
        if self.calls.failed(id, &error, out) {
            return;
        }
        report(out, Level::Error, format!("the launcher refuses: {error}"));
        match self.instances.answered(id) {
            // What is not there, or cannot be ended, is not waited for.
            Some((_, name)) if self.instances.ended(&name) => self.start_due(now, out),
            Some((Asked::Start, name)) => self.will_not_come(now, &name, &error),
            Some((Asked::Stop, _)) => {}
            None => self.nothing_will_come(now, &error),
        }
    }

    /// What was asked to start is not there.
    fn will_not_come(&mut self, now: Instant, name: &str, error: &str) {
        let asked = self.instances.get_mut(name).filter(|one| one.run == Run::Asked);
        if let Some(one) = asked {
            one.down(now, error.to_owned());
        }
    }

    /// It is not known what the launcher refused: nothing comes of what was asked to start.
    fn nothing_will_come(&mut self, now: Instant, error: &str) {
        let asked: Vec<_> = self
            .instances
            .iter()
            .filter(|(_, one)| one.run == Run::Asked)
            .map(|(name, _)| name.to_owned())
            .collect();
        for name in asked {
            self.will_not_come(now, &name, error);
        }
    }

    /// Takes over what runs, and starts what does not.
    fn adopt(&mut self, now: Instant, listing: Listing, out: &mut Vec<Output>) {
        let more = listing.more;
        let last = listing.instances.last().map(|instance| instance.spec.instance.clone());
        if !listing.missing.is_empty() {
            self.missing = listing.missing;
        }
        for protocol::Instance { spec, uid, state } in listing.instances {
            let name = spec.instance.as_str();
            // What no statement names any more is ended when the configuration is known.
            let known = self.settings.classes.iter().any(|class| class.name == name);
            if !known && ProgramKind::of_class(spec.class.as_str()).is_none() {
                self.ask(Command::Stop { instance: spec.instance, grace_ms: GRACE }, out);
                continue;
            }
            let run = match state {
                State::Running { pid, since, .. } => {
                    let since = Instant::from_nanos(since);
                    report(out, Level::Info, format!("{name} (process {pid}) is taken over"));
                    Run::Up { pid: pid.unsigned_abs(), since }
                }
                State::Ended { .. } | State::Failed { .. } => Run::Due(now),
            };
            self.instances.add(name, name, *spec.secret.bytes(), run);
            if let Some(one) = self.instances.get_mut(name) {
                one.uid = uid.unwrap_or_default();
            }
        }
        match last.filter(|_| more) {
            Some(last) => self.ask_what_runs(Some(last), out),
            None => {
                let nothing = self.instances.iter().next().is_none();
                let found = if nothing { Found::Nothing } else { Found::Processes };
                self.processes_known(now, found, out);
            }
        }
    }

    /// What runs and what should is known: the rest is started, and what should not run is ended.
    pub(crate) fn begin(&mut self, now: Instant, out: &mut Vec<Output>) {
        for class in self.wanted() {
            if !self.instances.contains(&class.name) {
                let secret = self.secrets.secret();
                self.instances.add(&class.name, &class.name, secret, Run::Due(now));
            }
        }
        let wanted: Vec<_> = self.wanted().into_iter().map(|class| class.name).collect();
        let unwanted: Vec<_> = self.instances.iter().map(|(name, _)| name.to_owned()).collect();
        for name in unwanted.iter().filter(|name| !wanted.contains(&Cow::from(name.as_str()))) {
            self.end(name, out);
        }
        if let Some(finder) = self.instances.get(FINDER) {
            // Who knows the Finder's secret has started it.
            out.push(Output::Join { secret: finder.secret });
        }
        self.start_due(now, out);
        self.say_who_there_is(out);
    }

    /// The classes of which there is to be an instance, in the order in which they are started.
    pub(crate) fn wanted(&self) -> Vec<Class> {
        let wanted = |class: &&Class| {
            class.always || class.statement.is_none() || self.commits.part(&class.name).is_some()
        };
        let own = self.settings.classes.iter().filter(wanted);
        own.chain(self.commits.programs()).cloned().collect()
    }

    /// Starts what is to run now.
    pub(crate) fn start_due(&mut self, now: Instant, out: &mut Vec<Output>) {
        let due = self.instances.due(now);
        for class in self.wanted() {
            if due.iter().any(|name| **name == *class.name) {
                self.start(now, &class, out);
            }
        }
    }

    fn start(&mut self, now: Instant, class: &Class, out: &mut Vec<Output>) {
        let Some(one) = self.instances.get_mut(&class.name) else { return };
        one.run = Run::Asked;
        let secret = Secret::new(one.secret);
        match self.spec(class, secret) {
            Ok(spec) => {
                let id = self.ask(Command::Start(spec), out);
                self.instances.asked(id, Asked::Start, &class.name);
            }
            Err(error) => {
                report(out, Level::Error, format!("{} cannot be started: {error}", class.name));
                if let Some(one) = self.instances.get_mut(&class.name) {
                    one.down(now, error);
                }
            }
        }
    }

    fn spec(&self, class: &Class, secret: Secret) -> Result<Spec, String> {
        let listener = |name: String, kind, mode| {
            let path = self.settings.run_directory.join(name);
            let path = path.to_str().ok_or("the run directory's name is not UTF-8")?.to_owned();
            Ok::<_, String>(ListenerSpec { path, kind, mode, group: None })
        };
        // Who may call is the Finder's to say: without its ticket nobody is heard.
        let calls = listener(format!("{CALLS}{}", class.name), ListenerKind::Stream, 0o666)?;
        let mut listeners = vec![calls];
        for socket in class.sockets {
            let kind = if socket.packets { ListenerKind::Seqpacket } else { ListenerKind::Stream };
            listeners.push(listener(socket.name.to_owned(), kind, 0o660)?);
        }
        let kind = class.program.map_or(&*class.name, |kind| kind.class());
        Ok(Spec {
            instance: class.name.parse()?,
            class: kind.parse()?,
            arguments: class.arguments.clone(),
            limits: Limits { ..class.limits },
            listeners,
            secret,
        })
    }
}

#[cfg(test)]
mod tests {
    use weft_base::{ChannelId, WallTime};
    use weft_runtime::Level;

    use super::*;
    use crate::{Class, Settings};

    /// A manager of one class, and what it wants of the launcher in words.
    struct Node {
        manager: Manager,
        /// The number of the last request to start, and of the last one to stop.
        last: [u64; 2],
    }

    impl Node {
        fn new() -> Self {
            let settings = Settings {
                node: "n".to_owned(),
                run_directory: "/run/n".into(),
                classes: vec![Class::new("x")],
                seed: [1; 32],
                schema: "version 1;".to_owned(),
                history: "/state".into(),
                source: "n.conf".to_owned(),
                text: "version 1;".to_owned(),
                wall: WallTime::from_unix_nanos(0),
                level: Level::Info,
            };
            let mut manager = Manager::new(settings).unwrap();
            manager.launcher = Some(ChannelId(1));
            Self { manager, last: [0; 2] }
        }

        fn does(&mut self, what: impl FnOnce(&mut Manager, &mut Vec<Output>)) -> Vec<String> {
            let mut out = Vec::new();
            what(&mut self.manager, &mut out);
            let mut asked = Vec::new();
            for output in out {
                let Output::World(Action::Send { message, .. }) = output else { continue };
                let Request { id, command } = Request::decode(message.bytes()).unwrap();
                let (which, word) = match command {
                    Command::Start(spec) => (0, format!("start {}", spec.instance)),
                    Command::Stop { instance, .. } => (1, format!("stop {instance}")),
                    other => panic!("{other:?}"),
                };
                self.last[which] = id;
                asked.push(word);
            }
            asked
        }

        fn add(&mut self) -> Vec<String> {
            self.does(|manager, out| {
                manager.instances.add("x", "x", [0; 32], Run::Due(Instant::ZERO));
                manager.start_due(Instant::ZERO, out);
            })
        }

        fn end(&mut self) -> Vec<String> {
            self.does(|manager, out| manager.end("x", out))
        }

        fn hears(&mut self, message: &protocol::Message) -> Vec<String> {
            let bytes = message.encode().unwrap();
            self.does(|manager, out| manager.launcher_says(Instant::ZERO, &bytes, out))
        }

        fn is_refused(&mut self, id: u64) -> Vec<String> {
            let outcome = Outcome::Refused { error: "no".to_owned() };
            self.hears(&protocol::Message::Reply { id, outcome })
        }
    }

    #[test]
    fn what_failed_to_start_while_it_was_taken_away_is_started_when_it_is_wanted_again() {
        let failed =
            protocol::Message::Failed { instance: "x".parse().unwrap(), error: "no".to_owned() };
        for wanted_before in [true, false] {
            let mut node = Node::new();
            assert_eq!(node.add(), ["start x"]);
            assert_eq!(node.end(), ["stop x"]);
            if wanted_before {
                // What was there before has not ended yet, as far as is known.
                assert!(node.add().is_empty());
                assert_eq!(node.hears(&failed), ["start x"]);
            } else {
                assert!(node.hears(&failed).is_empty());
                assert_eq!(node.add(), ["start x"]);
            }
        }
    }

    #[test]
    fn what_may_not_be_started_while_it_was_taken_away_is_started_when_it_is_wanted_again() {
        let mut node = Node::new();
        assert_eq!(node.add(), ["start x"]);
        assert_eq!(node.end(), ["stop x"]);
        let [start, stop] = node.last;
        assert!(node.add().is_empty());
        assert_eq!(node.is_refused(start), ["start x"]);
        // The launcher knows of nothing to stop either, which says nothing of the new one.
        assert!(node.is_refused(stop).is_empty());
        assert_eq!(node.manager.instances.get("x").unwrap().run, Run::Asked);
        // If that is refused, too, it is tried again later.
        let [start, _] = node.last;
        assert!(node.is_refused(start).is_empty());
        assert!(matches!(node.manager.instances.get("x").unwrap().run, Run::Due(_)));
    }

    #[test]
    fn what_cannot_be_stopped_does_not_keep_its_successor_waiting() {
        let mut node = Node::new();
        assert_eq!(node.add(), ["start x"]);
        let [start, _] = node.last;
        let outcome = Outcome::Done {};
        assert!(node.hears(&protocol::Message::Reply { id: start, outcome }).is_empty());
        assert_eq!(node.end(), ["stop x"]);
        assert!(node.add().is_empty());
        let [_, stop] = node.last;
        assert_eq!(node.is_refused(stop), ["start x"]);
    }
}
