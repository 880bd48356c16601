//! `scenario NAME { … }`: what happens in a lab, step after step.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use weft_config::{
    Block, Entry, Error, Errors, Located, Location, Name, Probability, gather, suggest,
};

use super::command::CommandLine;
use super::link::{EndIndex, EndName, NodeIndex, find_end};
use super::names::Names;
use super::node::Node;
use super::template::Template;

/// How long a step waits if it does not say.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Every word that begins a step.
const KEYWORDS: &[&str] = &[
    "run",
    "exec",
    "until",
    "wait-output",
    "wait-exit",
    "start",
    "stop",
    "kill",
    "restart",
    "cut",
    "restore",
    "loss",
    "delete-interface",
    "at",
    "after",
    "expect-output",
    "expect-running",
    "expect-files-equal",
    "trace",
    "show-trace",
    "say",
];

/// Steps with a name.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) name: Located<Name>,
    pub(crate) steps: Vec<Step>,
}

/// One thing to do, to wait for or to expect.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// The statement as it stands in the file, in one line.
    pub(crate) text: String,
    pub(crate) location: Location,
    pub(crate) action: Action,
}

/// What a step does. Processes are named by the step that starts them, or by their node.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// Starts a command that goes on while the next steps are done.
    Run { node: usize, command: CommandLine, process: String },
    /// Runs a command and waits for its end.
    Exec { node: usize, command: CommandLine, process: String, status: u8, timeout: Duration },
    /// Runs a command again and again, until what it writes has this text, or has it no more.
    Until {
        node: usize,
        command: CommandLine,
        process: String,
        text: Template,
        is_there: bool,
        timeout: Duration,
    },
    /// Waits until a process has written a line with this text.
    WaitOutput { process: String, text: Template, timeout: Duration },
    /// Waits until a process has ended with this status.
    WaitExit { process: String, status: u8, timeout: Duration },
    /// Starts the process of a node again, and waits until it is ready.
    Start { node: usize, timeout: Duration },
    /// Asks a process to end, and waits until it has.
    Stop { process: String, timeout: Duration },
    /// Ends a process at once.
    Kill { process: String },
    /// Stops the process of a node and starts it again.
    Restart { node: usize, timeout: Duration },
    /// Lets nothing through a link any more.
    Cut { link: usize },
    /// Mends a cut link.
    Restore { link: usize },
    /// Changes the loss of a link, in parts per billion.
    Loss { link: usize, loss: u32 },
    /// Deletes an interface of a node.
    DeleteInterface { link: usize, side: usize },
    /// Waits until this time after the beginning of the scenario.
    At(Duration),
    /// Waits this long.
    After(Duration),
    /// A line with this text must have been written by now.
    ExpectOutput { process: String, text: Template },
    /// A process must not have ended.
    ExpectRunning { process: String },
    /// All these files must be there and have the same bytes.
    ExpectFilesEqual { files: Vec<Template> },
    /// All weft nodes record what they do with one packet in `one_in`.
    Trace { one_in: NonZeroU64 },
    /// Shows the life of one packet that was recorded.
    ShowTrace,
    /// Tells people something.
    Say { text: Template },
}

/// What steps can refer to.
pub(super) struct Scope<'a> {
    pub(super) names: &'a Names,
    pub(super) nodes: &'a [Node],
    pub(super) index: &'a NodeIndex,
    pub(super) ends: &'a EndIndex,
}

/// Reads all scenarios, whose names must differ.
pub(super) fn read_scenarios(
    block: &mut Block<'_>,
    scope: &Scope<'_>,
) -> Result<Vec<Scenario>, Errors> {
    let mut seen: BTreeMap<String, Entry<'_>> = BTreeMap::new();
    gather(block.many("scenario").into_iter().map(|mut entry| {
        let name: Located<Name> = entry.argument("the name of the scenario")?;
        if let Some(first) = seen.insert(name.value.as_str().to_owned(), entry.clone()) {
            return Err(entry.duplicate_of(&first).into());
        }
        let steps = entry.block()?.read(|block| {
            let mut reader = Reader { scope, processes: node_processes(scope.nodes), unnamed: 0 };
            gather(block.many_of(KEYWORDS).into_iter().map(|entry| reader.step(entry)))
        })?;
        Ok(Scenario { name, steps })
    }))
}

/// The processes that run from the beginning, with the places of their names.
fn node_processes(nodes: &[Node]) -> BTreeMap<String, Location> {
    let named = nodes.iter().filter(|node| node.has_process());
    named.map(|node| (node.name.value.as_str().to_owned(), node.name.location.clone())).collect()
}

/// Reads the steps of one scenario, in order.
struct Reader<'a> {
    scope: &'a Scope<'a>,
    /// The processes that a step can name.
    processes: BTreeMap<String, Location>,
    /// How many commands without name there were.
    unnamed: usize,
}

impl Reader<'_> {
    fn step(&mut self, mut entry: Entry<'_>) -> Result<Step, Errors> {
        let text = one_line(&entry.statement().to_string());
        let location = entry.location();
        let action = self.action(&mut entry)?;
        entry.end()?;
        Ok(Step { text, location, action })
    }

    fn action(&mut self, entry: &mut Entry<'_>) -> Result<Action, Errors> {
        Ok(match entry.keyword() {
            "run" => self.run(entry)?,
            "exec" => self.exec(entry)?,
            "until" => self.until(entry)?,
            "wait-output" => {
                let (process, text) = (self.process(entry)?, self.text(entry)?);
                Action::WaitOutput { process, text, timeout: timeout(entry)? }
            }
            "wait-exit" => {
                let process = self.process(entry)?;
                Action::WaitExit { process, status: status(entry)?, timeout: timeout(entry)? }
            }
            "start" => Action::Start { node: self.own_node(entry)?, timeout: timeout(entry)? },
            "restart" => Action::Restart { node: self.own_node(entry)?, timeout: timeout(entry)? },
            "stop" => Action::Stop { process: self.process(entry)?, timeout: timeout(entry)? },
            "kill" => Action::Kill { process: self.process(entry)? },
            "cut" => Action::Cut { link: self.end(entry)?.0 },
            "restore" => Action::Restore { link: self.end(entry)?.0 },
            "loss" => {
                let (link, _) = self.end(entry)?;
                let loss: Probability = entry.argument("the probability of loss")?;
                Action::Loss { link, loss: loss.parts_per_billion() }
            }
            "delete-interface" => {
                let (link, side) = self.end(entry)?;
                Action::DeleteInterface { link, side }
            }
            "at" => Action::At(entry.argument("the time since the beginning of the scenario")?),
            "after" => Action::After(entry.argument("how long to wait")?),
            "expect-output" => {
                Action::ExpectOutput { process: self.process(entry)?, text: self.text(entry)? }
            }
            "expect-running" => Action::ExpectRunning { process: self.process(entry)? },
            "expect-files-equal" => self.files_equal(entry)?,
            "trace" => {
                let all = NonZeroU64::MIN;
                let one_in: Option<Located<u64>> = entry.optional()?;
                let zero = |word: &Located<u64>| {
                    word.error("one packet in zero means nothing: write 1 for every packet")
                };
                let one_in =
                    one_in.map(|word| NonZeroU64::new(word.value).ok_or_else(|| zero(&word)));
                Action::Trace { one_in: one_in.transpose()?.unwrap_or(all) }
            }
            "show-trace" => Action::ShowTrace,
            "say" => Action::Say { text: self.text(entry)? },
            other => return Err(entry.error(format!("`{other}` is no step")).into()),
        })
    }

    fn run(&mut self, entry: &mut Entry<'_>) -> Result<Action, Error> {
        let (node, command) = (self.node(entry)?, self.command(entry)?);
        entry.expect("as")?;
        Ok(Action::Run { node, command, process: self.new_process(entry)? })
    }

    fn exec(&mut self, entry: &mut Entry<'_>) -> Result<Action, Error> {
        let (node, command) = (self.node(entry)?, self.command(entry)?);
        let process = if entry.take("as") { self.new_process(entry)? } else { self.unnamed() };
        Ok(Action::Exec {
            node,
            command,
            process,
            status: status(entry)?,
            timeout: timeout(entry)?,
        })
    }

    fn until(&mut self, entry: &mut Entry<'_>) -> Result<Action, Error> {
        let (node, command) = (self.node(entry)?, self.command(entry)?);
        let is_there = !entry.take("lacks");
        if is_there {
            entry.expect("says")?;
        }
        let (text, timeout) = (self.text(entry)?, timeout(entry)?);
        Ok(Action::Until { node, command, process: self.unnamed(), text, is_there, timeout })
    }

    /// A name that no file can give, as names have no point.
    fn unnamed(&mut self) -> String {
        self.unnamed += 1;
        format!("exec.{}", self.unnamed)
    }

    fn files_equal(&mut self, entry: &mut Entry<'_>) -> Result<Action, Errors> {
        let words: Vec<Located<String>> = entry.rest()?;
        if words.len() < 2 {
            return Err(entry.error("a comparison needs two files or more: name them").into());
        }
        let template =
            |word: &Located<String>| Ok(Template::parse(&word.value, word, self.scope.names)?);
        Ok(Action::ExpectFilesEqual { files: gather(words.iter().map(template))? })
    }

    fn node(&self, entry: &mut Entry<'_>) -> Result<usize, Error> {
        let name: Located<Name> = entry.argument("the node")?;
        self.scope.index.find(&name.value, &name.location)
    }

    /// A node with a process of its own.
    fn own_node(&self, entry: &mut Entry<'_>) -> Result<usize, Error> {
        let name: Located<Name> = entry.argument("the node")?;
        let node = self.scope.index.find(&name.value, &name.location)?;
        if self.scope.nodes[node].has_process() {
            return Ok(node);
        }
        Err(name.error(format!(
            "node `{}` is of kind `linux` and runs no process: its kernel cannot be started anew",
            name.value
        )))
    }

    fn command(&self, entry: &mut Entry<'_>) -> Result<CommandLine, Error> {
        CommandLine::parse(entry.argument("the command, in quotes")?, self.scope.names)
    }

    fn text(&self, entry: &mut Entry<'_>) -> Result<Template, Error> {
        let text: Located<String> = entry.argument("the text, in quotes")?;
        Template::parse(&text.value, &text, self.scope.names)
    }

    fn end(&self, entry: &mut Entry<'_>) -> Result<(usize, usize), Error> {
        find_end(self.scope.ends, &entry.argument::<Located<EndName>>("an end of the link")?)
    }

    /// A process that runs by now, or has run.
    fn process(&self, entry: &mut Entry<'_>) -> Result<String, Error> {
        let name: Located<Name> = entry.argument("the process")?;
        let key = name.value.as_str();
        if self.processes.contains_key(key) {
            return Ok(key.to_owned());
        }
        let advice = match suggest(key, self.processes.keys().map(String::as_str)) {
            Some(similar) => format!("did you mean `{similar}`?"),
            None => format!("start it before with `run NODE \"…\" as {key};`"),
        };
        Err(name.error(format!("no step before this one starts a process `{key}`: {advice}")))
    }

    /// The name of a process that this step starts.
    fn new_process(&mut self, entry: &mut Entry<'_>) -> Result<String, Error> {
        let name: Located<Name> = entry.argument("a name for the process")?;
        let key = name.value.as_str().to_owned();
        match self.processes.insert(key.clone(), name.location.clone()) {
            None => Ok(key),
            Some(first) => {
                let sentence = format!("there is a process `{key}` already: choose another name");
                Err(name.error(sentence).related("first given here", first))
            }
        }
    }
}

/// `timeout T`, if it stands here.
fn timeout(entry: &mut Entry<'_>) -> Result<Duration, Error> {
    if entry.take("timeout") { entry.argument("a duration") } else { Ok(TIMEOUT) }
}

/// `status N`, if it stands here.
fn status(entry: &mut Entry<'_>) -> Result<u8, Error> {
    if entry.take("status") { entry.argument("an exit status") } else { Ok(0) }
}

/// A printed statement without its line ends and its `;`.
fn one_line(statement: &str) -> String {
    let text = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    text.trim_end_matches(';').to_owned()
}
