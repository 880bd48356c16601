//! Nodes of processes: a Finder, an FEA, components, and who says what these may do.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use weft_base::{Instant, Random};
use weft_fea::Fea;
use weft_finder::Finder;
use weft_runtime::{ChannelAddress, Component, Process};
use weft_xrl::frame::Secret;
use weft_xrl::{Binary, Call, Host, Identity, Input, Interface, Output, Part, Settings, finder};

/// What happened, in order.
pub(crate) type Log = Rc<RefCell<Vec<String>>>;

const OWNER: Secret = [1; 32];
const FEA: Secret = [2; 32];

/// A component made of a function.
pub(crate) struct Script<F> {
    script: F,
    deadline: Option<Instant>,
}

impl<F: FnMut(Instant, Input, &mut Vec<Output>) -> Option<Instant>> Script<F> {
    /// It says when it wants to be called.
    pub(crate) fn new(script: F) -> Self {
        Self { script, deadline: None }
    }
}

impl<F: FnMut(Instant, Input, &mut Vec<Output>) -> Option<Instant>> Component for Script<F> {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        self.deadline = (self.script)(now, input, out);
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

/// A component as a process's.
pub(crate) type Boxed = Box<dyn Component<Input = Input, Output = Output>>;

/// The secret of the component with this number.
fn secret(number: u8) -> Secret {
    [10 + number; 32]
}

fn finder_address(directory: &Path) -> ChannelAddress {
    ChannelAddress::Stream(directory.join("finder"))
}

pub(crate) fn finder_process(directory: &Path) -> Box<dyn Process> {
    let settings = weft_finder::Settings {
        listen: finder_address(directory),
        owner: OWNER,
        operator: 1000,
        users: Box::new(weft_finder::Nobody),
        seed: [9; 32],
    };
    Box::new(Finder::new(settings))
}

/// Says which processes there are and what they may call, by their numbers.
pub(crate) fn owner_process(directory: &Path, access: &[&str]) -> Box<dyn Process> {
    let process = |instance: &str, secret: Secret, access: &str| finder::Process {
        instance: instance.to_owned(),
        class: instance.to_owned(),
        secret: Binary(secret.to_vec()),
        access: access.to_owned(),
    };
    let mut processes = vec![process("fea", FEA, "")];
    for (number, access) in (0..).zip(access) {
        processes.push(process(&format!("component{number}"), secret(number), access));
    }
    let script = Script::new(move |_, input, out: &mut Vec<Output>| {
        if matches!(input, Input::Registered) {
            let processes = processes.clone();
            out.push(Call::new(0, "finder", finder::SetProcesses { processes }).into());
        }
        None
    });
    host(directory, "manager", OWNER, Vec::new(), Box::new(script), false)
}

pub(crate) fn fea_process(directory: &Path) -> Box<dyn Process> {
    host(
        directory,
        "fea",
        FEA,
        weft_fea::interfaces(),
        Box::new(Fea::new(&mut Random::from_seed(1))),
        false,
    )
}

/// A component that has what takes privileges done by the FEA.
pub(crate) fn component_process(
    directory: &Path,
    number: u8,
    component: Boxed,
) -> Box<dyn Process> {
    let instance = format!("component{number}");
    host(directory, &instance, secret(number), Vec::new(), component, true)
}

fn host(
    directory: &Path,
    instance: &str,
    secret: Secret,
    interfaces: Vec<&'static Interface>,
    component: Boxed,
    ports_from_fea: bool,
) -> Box<dyn Process> {
    let is_called = !interfaces.is_empty();
    let listen = is_called.then(|| ChannelAddress::Stream(directory.join(instance)));
    let settings = Settings {
        finder: Some(finder_address(directory)),
        listen,
        credential: Identity::Secret(secret),
        ports_from_fea,
    };
    let class = if is_called { instance.to_owned() } else { String::new() };
    let part = Part { class, instance: instance.to_owned(), sole: false, interfaces, component };
    Box::new(Host::new(settings, vec![part]))
}

/// The directory of a simulated node.
pub(crate) fn directory(node: &str) -> PathBuf {
    PathBuf::from(format!("/run/{node}"))
}
