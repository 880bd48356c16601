//! Labs that somebody else has built: finding them, looking at them, working in them, ending them.

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Serialize;
use weft_config::suggest;

use super::environment::environment;
use super::namespace::Namespace;
use super::state::{self, Directory, NodeState, State};
use super::teardown;
use crate::LabError;
use crate::plan::PROGRAM;

/// A lab that there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LabStatus {
    /// The name by which it is found: that of the lab file, and an id.
    pub name: String,
    /// The process that ends the lab with itself; `None` if the lab stays until it is taken down.
    pub owner: Option<u32>,
    /// The working directory of its commands.
    pub output: std::path::PathBuf,
    /// Its nodes, in the order of the lab file.
    pub nodes: Vec<NodeStatus>,
}

/// A node of a lab that there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeStatus {
    /// Its name.
    pub name: String,
    /// The word for its kind in lab files.
    pub kind: String,
    /// Its network namespace, as `ip netns` knows it.
    pub namespace: String,
    /// The names of its interfaces.
    pub interfaces: Vec<String>,
    /// The processes that the lab has started on it.
    pub processes: Vec<ProcessStatus>,
}

/// A process of a lab that there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessStatus {
    /// Its name in the scenario; that of the node for the process that belongs to it.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// Whether it runs.
    pub running: bool,
}

/// All labs that there are.
pub(crate) fn labs() -> Result<Vec<LabStatus>, LabError> {
    Ok(state::all()?.iter().map(lab_status).collect())
}

/// The lab that works in this directory, given by its absolute path, if there is one.
pub(crate) fn lab_working_in(output: &Path) -> Option<String> {
    // A lab that this user may not see works in no directory of this user.
    let states = state::all().unwrap_or_default();
    let found = states.iter().find(|state| state.output == output && !state.is_stale());
    found.map(State::full_name)
}

fn lab_status(state: &State) -> LabStatus {
    LabStatus {
        name: state.full_name(),
        owner: state.owner.map(|owner| owner.pid),
        output: state.output.clone(),
        nodes: state.nodes.iter().map(|node| node_status(state, node)).collect(),
    }
}

fn node_status(state: &State, node: &NodeState) -> NodeStatus {
    let own = state.processes.iter().filter(|process| process.node == node.name);
    NodeStatus {
        name: node.name.clone(),
        kind: node.kind.clone(),
        namespace: node.namespace.clone(),
        interfaces: node.interfaces.clone(),
        processes: own
            .map(|process| ProcessStatus {
                name: process.name.clone(),
                pid: process.id.pid,
                running: process.id.is_alive(),
            })
            .collect(),
    }
}

/// The lab called `name`, with or without its id; the only one without a name.
fn find(name: Option<&str>) -> Result<State, LabError> {
    super::require_root()?;
    let all = state::all()?;
    let matches =
        |state: &&State| name.is_none_or(|name| state.full_name() == name || state.lab == name);
    let mut found: Vec<&State> = all.iter().filter(matches).collect();
    let names = |states: &mut dyn Iterator<Item = &State>| {
        states.map(State::full_name).collect::<Vec<_>>().join(", ")
    };
    let problem = match (found.pop(), found.is_empty()) {
        (Some(only), true) => return Ok(only.clone()),
        (Some(_), false) => {
            format!(
                "there are several labs: name one of {}",
                names(&mut all.iter().filter(matches))
            )
        }
        (None, _) if all.is_empty() => "there is no lab: `weft lab up FILE` builds one".to_owned(),
        (None, _) => {
            let names = names(&mut all.iter());
            format!("there is no lab `{}`: there are {names}", name.unwrap_or_default())
        }
    };
    Err(LabError::Usage(problem))
}

fn find_node<'s>(state: &'s State, name: &str) -> Result<&'s NodeState, LabError> {
    state.nodes.iter().find(|node| node.name == name).ok_or_else(|| {
        let names: Vec<&str> = state.nodes.iter().map(|node| node.name.as_str()).collect();
        let advice = match suggest(name, names.iter().copied()) {
            Some(similar) => format!("did you mean `{similar}`?"),
            None => format!("there are {}", names.join(", ")),
        };
        let lab = state.full_name();
        LabError::Usage(format!("the lab {lab} has no node `{name}`: {advice}"))
    })
}

/// A command on a node of a lab; the word `weft` stands for `program`.
fn command(state: &State, node: &NodeState, words: &[OsString], program: &Path) -> Command {
    let mut words = words.iter();
    let first = words.next().filter(|first| *first != PROGRAM);
    let mut command = Command::new(first.map_or(program.as_os_str(), |first| first.as_os_str()));
    command.args(words).envs(environment(&Directory::of(state).node(&node.name), program));
    command
}

/// Replaces this process by a command on a node of a lab; returns only if that fails.
pub(crate) fn exec(
    lab: Option<&str>,
    node: &str,
    words: &[OsString],
    program: &Path,
) -> Result<Infallible, LabError> {
    let state = find(lab)?;
    let node = find_node(&state, node)?;
    let Some(first) = words.first() else {
        return Err(LabError::Usage("name the program to run on the node".into()));
    };
    let mut command = command(&state, node, words, program);
    let error = Namespace::new(&node.namespace).inside(|| command.exec())?;
    let action = format!("start `{}`", first.to_string_lossy());
    Err(LabError::system(action)(error))
}

/// Runs `weft WORDS…` on all weft nodes of a lab, one after the other, and returns what they print,
/// with the names of the nodes.
pub(crate) fn ask_nodes(
    lab: Option<&str>,
    words: &[String],
    program: &Path,
) -> Result<Vec<(String, String)>, LabError> {
    let state = find(lab)?;
    let words: Vec<OsString> =
        [PROGRAM].iter().map(OsString::from).chain(words.iter().map(OsString::from)).collect();
    let ask = |node: &NodeState| {
        let mut command = command(&state, node, &words, program);
        command.stdin(Stdio::null());
        let output = Namespace::new(&node.namespace).inside(|| command.output())?;
        let action = format!("ask node {}", node.name);
        let output = output.map_err(LabError::system(action.as_str()))?;
        if output.status.success() {
            return Ok((node.name.clone(), String::from_utf8_lossy(&output.stdout).into_owned()));
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(LabError::system(action)(said.trim()))
    };
    state.nodes.iter().filter(|node| node.kind == "weft").map(ask).collect()
}

/// Takes a lab down; without a name, the only one.
pub(crate) fn down(name: Option<&str>) -> Result<String, LabError> {
    let state = find(name)?;
    if let Some(owner) = state.owner.filter(|owner| owner.is_alive()) {
        return Err(LabError::Usage(format!(
            "the lab {} belongs to the running process {}: end that process, it takes the lab down",
            state.full_name(),
            owner.pid
        )));
    }
    teardown::take_down(&state)?;
    Ok(state.full_name())
}

/// An interface to capture at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) node: String,
    pub(crate) interface: String,
    pub(crate) namespace: Namespace,
}

/// The interfaces of a lab that `wanted` names, as `NODE` or `NODE:INTERFACE`; all if it names none.
pub(crate) fn capture_targets(
    lab: Option<&str>,
    wanted: &[String],
) -> Result<Vec<Target>, LabError> {
    targets(&find(lab)?, wanted)
}

/// The same for a lab whose state is known.
pub(crate) fn targets(state: &State, wanted: &[String]) -> Result<Vec<Target>, LabError> {
    let of = |node: &NodeState, interface: &str| Target {
        node: node.name.clone(),
        interface: interface.to_owned(),
        namespace: Namespace::new(&node.namespace),
    };
    let all = |node: &NodeState| -> Vec<Target> {
        node.interfaces.iter().map(|interface| of(node, interface)).collect()
    };
    if wanted.is_empty() {
        return Ok(state.nodes.iter().flat_map(all).collect());
    }
    let mut targets = Vec::new();
    for name in wanted {
        let (node, interface) = name.split_once(':').unwrap_or((name, ""));
        let node = find_node(state, node)?;
        if interface.is_empty() {
            targets.extend(all(node));
        } else if node.interfaces.iter().any(|own| own == interface) {
            targets.push(of(node, interface));
        } else {
            return Err(LabError::Usage(format!(
                "node `{}` has no interface `{interface}`: it has {}",
                node.name,
                node.interfaces.join(", ")
            )));
        }
    }
    Ok(targets)
}
