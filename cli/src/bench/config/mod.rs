//! `weft bench config`: how long it takes to load a large configuration, and to commit one changed line.
//!
//! The file has [`LINES`] lines, once as many blocks of ten lines, once as one block with a statement in
//! each line, which is the harder case for trees that share blocks. *Load* is from the bytes of the
//! file to a configuration that passed the check against its schema. *Commit* is an edit, the comparison as
//! text, and the commit from the request to its answer: check, the questions to the component, which gets
//! its block as text twice and agrees at once, printing, and the revision made durable on the disk of
//! `/var/tmp`.
//!
//! *A node* is the same with a node that runs, by calls to its manager: *load* begins with the call that brings the
//! text, and *commit* includes what the stack of XIA does with 20,000 routes, which checks its
//! block, compares it with the one before and changes one route.
//!
//! The peer is the limit of the same machine for the same statements as JSON: serde_json reads the text
//! and checks nothing; for a commit it prints the text, which is written, synced and renamed in the same
//! way. It compares nothing and asks nobody.

mod disk;
mod input;
mod running;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use weft_base::{Instant as Now, Token, WallTime};
use weft_commit::{Action, Configuration, Done, Event, HistorySettings, Parts, Refusal, Want, Who};
use weft_config::{LoadMode, Schema, Tree};
use weft_runtime::Component;

use super::measure::{Bench, Experiment, Figure, Plan, Session};
use super::report::{Bound, Goal, Row};
use crate::lab::become_root;
use disk::Disk;
use input::Form;
use running::Running;

/// Lines of the file, without those of the outermost block.
const LINES: usize = 20_000;

const LOAD: &str = "Load and check, 20,000 lines";
const COMMIT: &str = "Commit one changed line of 20,000";
const UNIT: &str = "ms";

/// The benchmark.
pub(super) struct Config;

impl Bench for Config {
    fn name(&self) -> &'static str {
        "config"
    }

    fn summary(&self) -> &'static str {
        "loading 20,000 lines of configuration and committing one, beside JSON of the same content"
    }

    fn duration(&self, plan: &Plan) -> Duration {
        Duration::from_secs(3) + Duration::from_millis(700) * plan.runs as u32
    }

    fn prepare(&self, _: &Plan) -> Result<Box<dyn Session>, String> {
        become_root(weft_lab::EngineKind::Netns)?;
        let directory = PathBuf::from(format!("/var/tmp/weft-bench-config-{}", std::process::id()));
        let cases = Form::ALL.iter().map(|form| Case::new(*form, &directory));
        let cases = cases.collect::<Result<_, _>>()?;
        let node = OfNode::new(&directory)?;
        Ok(Box::new(Cases { cases, node, directory }))
    }
}

struct Cases {
    cases: Vec<Case>,
    node: OfNode,
    directory: PathBuf,
}

impl Drop for Cases {
    /// Nothing stays; what cannot be removed is only a file in a directory for such files.
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The node, and the same as JSON.
struct OfNode {
    running: Running,
    json: Json,
}

impl OfNode {
    fn new(directory: &Path) -> Result<Self, String> {
        let running = Running::start(directory, LINES)?;
        let json = Json::new(running.text(), directory.join("node-peer"))?;
        Ok(Self { running, json })
    }

    fn load(&mut self) -> Result<f64, String> {
        let time = self.running.load()?;
        self.running.revert()?;
        Ok(time)
    }
}

/// One form of the file.
struct Case {
    form: Form,
    schema: Schema,
    text: String,
    json: Json,
    node: Node,
}

impl Case {
    fn new(form: Form, directory: &std::path::Path) -> Result<Self, String> {
        let schema = Schema::parse("schema", input::SCHEMA).map_err(|errors| errors.to_string())?;
        let text = form.text(LINES);
        let directory = directory.join(form.name());
        let mut node = Node::new(schema.clone(), directory.join("history"))?;
        node.load(&text)?;
        let json = Json::new(&text, directory.join("peer"))?;
        Ok(Self { form, schema, text, json, node })
    }

    fn load(&self) -> Result<f64, String> {
        let begin = Instant::now();
        let tree = Tree::parse_bytes("file", self.text.as_bytes()).map_err(|e| e.to_string())?;
        let loaded = self.schema.load(&Tree::empty(), &tree, LoadMode::Override);
        let loaded = loaded.map_err(|errors| errors.to_string())?;
        self.schema.check(&loaded, None).map_err(|errors| errors.to_string())?;
        let time = milliseconds(begin);
        if loaded.count() < LINES * 4 / 5 {
            return Err(format!("only {} statements were loaded", loaded.count()));
        }
        Ok(time)
    }

    fn commit(&mut self, run: usize) -> Result<f64, String> {
        let begin = Instant::now();
        self.node.edit(&self.form.change(LINES, run))?;
        let compared = self.node.configuration.transaction().compare().to_string();
        self.node.commit()?;
        let time = milliseconds(begin);
        if !compared.starts_with("[edit ") {
            return Err("the change was not seen".to_owned());
        }
        Ok(time)
    }
}

/// The peer: the same statements as JSON.
struct Json {
    text: String,
    value: Value,
    directory: PathBuf,
}

impl Json {
    /// The statements of a text; what is written is in `directory`.
    fn new(text: &str, directory: PathBuf) -> Result<Self, String> {
        let tree = Tree::parse("file", text).map_err(|errors| errors.to_string())?;
        let value = input::json(tree.statements());
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        Ok(Self { text: value.to_string(), value, directory })
    }

    fn load(&self) -> Result<f64, String> {
        let begin = Instant::now();
        let value: Value = serde_json::from_str(&self.text).map_err(|error| error.to_string())?;
        let time = milliseconds(begin);
        if value != self.value {
            return Err("JSON was read wrongly".to_owned());
        }
        Ok(time)
    }

    fn commit(&self) -> Result<f64, String> {
        let begin = Instant::now();
        let text = self.value.to_string();
        disk::write_durably(&self.directory, text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(milliseconds(begin))
    }
}

fn milliseconds(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1000.0
}

impl Session for Cases {
    fn experiments(&self) -> Vec<Experiment> {
        let experiment = |name: &str, work: &str, panel, peer: &str| Experiment {
            peer_name: peer.to_owned(),
            figures: vec![Figure { case: format!("{work}, {name}"), unit: UNIT, panel }],
            most_runs: None,
        };
        let both = |name| {
            [
                experiment(name, "load", LOAD, "serde_json, unchecked"),
                experiment(name, "commit", COMMIT, "serde_json, written durably"),
            ]
        };
        self.cases.iter().map(|case| case.form.name()).chain(["a node"]).flat_map(both).collect()
    }

    fn weft(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String> {
        let loads = experiment.is_multiple_of(2);
        let time = match self.cases.get_mut(experiment / 2) {
            Some(case) if loads => case.load(),
            Some(case) => case.commit(run),
            None if loads => self.node.load(),
            None => self.node.running.change(),
        };
        time.map(|time| vec![time])
    }

    fn peer(&mut self, experiment: usize, _: usize) -> Result<Vec<f64>, String> {
        let json = self.cases.get(experiment / 2).map_or(&self.node.json, |case| &case.json);
        let time = if experiment.is_multiple_of(2) { json.load() } else { json.commit() };
        time.map(|time| vec![time])
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        let greatest = |work: &str| {
            let rows = rows.iter().filter(|row| row.figure.case.starts_with(work));
            rows.map(|row| row.weft.median()).reduce(f64::max).unwrap_or(f64::NAN)
        };
        let goal = |work, name: &str, bound| Goal {
            name: format!("{name}, the greatest median (ms)"),
            bound: Bound::AtMost(bound),
            measured: greatest(work),
        };
        vec![
            goal("load", "loading and checking 20,000 lines", 1000.0),
            goal("commit", "committing one changed line of 20,000", 50.0),
        ]
    }
}

/// The owner of a configuration: carries out what it wants, at once.
struct Node {
    configuration: Configuration,
    disk: Disk,
    begin: Instant,
    reply: Option<Result<Done, Refusal>>,
}

impl Node {
    fn new(schema: Schema, directory: PathBuf) -> Result<Self, String> {
        let settings = HistorySettings { directory, keep: 50 };
        let configuration = Configuration::new(schema, Parts::default(), settings);
        let disk = Disk::default();
        let mut node = Self { configuration, disk, begin: Instant::now(), reply: None };
        node.tell(Event::Start { wall: wall() })?;
        node.ask(Action::Lock)?;
        Ok(node)
    }

    /// Makes a text what runs.
    fn load(&mut self, text: &str) -> Result<(), String> {
        let tree = Tree::parse("file", text).map_err(|errors| errors.to_string())?;
        self.ask(Action::Load(tree, LoadMode::Override))?;
        self.commit()
    }

    fn edit(&mut self, command: &str) -> Result<(), String> {
        self.ask(Action::Edit(command.to_owned()))
    }

    fn commit(&mut self) -> Result<(), String> {
        self.ask(Action::Commit { comment: String::new(), confirm_within: None })
    }

    fn ask(&mut self, action: Action) -> Result<(), String> {
        let who = Who { session: 1, user: "bench".to_owned(), uid: 0 };
        self.tell(Event::Request { token: Token(0), who, wall: wall(), action })?;
        match self.reply.take() {
            Some(Ok(_)) => Ok(()),
            Some(Err(refusal)) => Err(refusal.to_string()),
            None => Err("the configuration did not answer".to_owned()),
        }
    }

    fn tell(&mut self, event: Event) -> Result<(), String> {
        let mut events = vec![event];
        let mut out = Vec::new();
        while let Some(event) = events.pop() {
            let nanos = u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.configuration.handle(Now::from_nanos(nanos), event, &mut out);
            for want in out.drain(..) {
                match want {
                    Want::Check { step, change } | Want::Apply { step, change } => {
                        // A component is another process: it gets its statements as text.
                        let text = change.new.text();
                        let result = if text.is_empty() { Err("no text".into()) } else { Ok(()) };
                        events.push(Event::Answer { step, result });
                    }
                    Want::Disk { token, request } => {
                        events.push(Event::Disk { token, result: self.disk.carry_out(request) });
                    }
                    Want::Reply { result, .. } => self.reply = Some(result),
                    Want::Failed(text) => return Err(text),
                    Want::Ready | Want::Renew { .. } | Want::Notice(_) => {}
                }
            }
        }
        Ok(())
    }
}

/// The time of day.
fn wall() -> WallTime {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    WallTime::from_unix_nanos(since.map_or(0, |since| since.as_nanos() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_load_and_commit() {
        let directory = tempfile::tempdir().unwrap();
        for form in Form::ALL {
            let mut case = Case::new(*form, directory.path()).unwrap();
            assert!(case.text.lines().count() >= LINES);
            case.load().unwrap();
            case.json.load().unwrap();
            case.commit(0).unwrap();
            case.commit(1).unwrap();
            case.json.commit().unwrap();
            let revisions = case.node.configuration.revisions().count();
            assert_eq!(revisions, 3);
        }
    }
}
