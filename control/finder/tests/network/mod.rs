//! Processes that find and call one another through a Finder, in a simulated world.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use weft_base::Instant;
use weft_finder::Finder;
use weft_runtime::sim::{NodeId, ProcessId, Spawn, World, WorldConfig};
use weft_runtime::{ChannelAddress, Component};
use weft_xrl::frame::Secret;
use weft_xrl::{
    Binary, Call, Host, Identity, Input, Interface, Output, Part, Request, Settings, XrlError,
    finder,
};

#[allow(missing_docs, unreachable_pub, dead_code, reason = "made for these tests")]
pub(crate) mod probe {
    include!(concat!(env!("OUT_DIR"), "/probe.rs"));
}

pub(crate) const OWNER: Secret = [1; 32];

/// What happened, in order.
pub(crate) type Log = Rc<RefCell<Vec<String>>>;

/// A component made of a function.
pub(crate) struct Script<F>(F);

impl<F: FnMut(Instant, Input, &mut Vec<Output>)> Component for Script<F> {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        (self.0)(now, input, out);
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// One node with a Finder.
pub(crate) struct Network {
    pub(crate) world: World,
    pub(crate) node: NodeId,
    pub(crate) finder: ProcessId,
    pub(crate) log: Log,
}

fn finder_address() -> ChannelAddress {
    ChannelAddress::Stream(PathBuf::from("/run/finder"))
}

impl Network {
    pub(crate) fn new() -> Self {
        let mut world = World::new(WorldConfig::default());
        let node = world.add_node("r1").unwrap();
        let log = Log::default();
        let finder = world.spawn(node, spawn_finder());
        Self { world, node, finder, log }
    }

    pub(crate) fn restart_finder(&mut self) {
        self.finder = self.world.spawn(self.node, spawn_finder());
    }

    /// A process of one component with the class and name `instance`; a tool if it has no interfaces.
    pub(crate) fn spawn(
        &mut self,
        instance: &str,
        secret: Option<Secret>,
        interfaces: Vec<&'static Interface>,
        script: impl FnMut(Instant, Input, &mut Vec<Output>) + 'static,
    ) -> ProcessId {
        let listen = (!interfaces.is_empty())
            .then(|| ChannelAddress::Stream(PathBuf::from(format!("/run/{instance}"))));
        let credential = secret.map_or(Identity::User, Identity::Secret);
        let settings =
            Settings { finder: Some(finder_address()), listen, credential, ports_from_fea: false };
        let part = Part {
            class: if interfaces.is_empty() { String::new() } else { instance.to_owned() },
            instance: instance.to_owned(),
            sole: false,
            interfaces,
            component: Box::new(Script(script)),
        };
        let host = Host::new(settings, vec![part]);
        self.world.spawn(self.node, Spawn::new(instance, Box::new(host)))
    }

    /// The manager: says which processes there are, whenever it is registered.
    pub(crate) fn spawn_owner(&mut self, processes: Vec<finder::Process>) -> ProcessId {
        self.spawn("manager", Some(OWNER), Vec::new(), move |_, input, out| {
            if matches!(input, Input::Registered) {
                let processes = processes.clone();
                out.push(Call::new(0, "finder", finder::SetProcesses { processes }).into());
            }
        })
    }

    /// A component that answers the calls of the interface `probe`.
    pub(crate) fn spawn_probe(&mut self, instance: &str, secret: Secret) -> ProcessId {
        let log = Rc::clone(&self.log);
        let name = instance.to_owned();
        self.spawn(instance, Some(secret), vec![&probe::INTERFACE], move |_, input, out| {
            if let Input::Called(mut called) = input {
                log.borrow_mut().push(format!("{} calls {name}", called.caller));
                let output = match called.read::<probe::Call>() {
                    Ok(probe::Call::Add(request)) => called.answer(add(&request)),
                    Ok(probe::Call::Take(request)) => {
                        let count = request.routes.len() as u32;
                        called.answer(Ok(probe::TakeReply { count }))
                    }
                    Ok(probe::Call::Forget(_)) => return,
                    Ok(_) => called.fail(XrlError::failed("not in this test")),
                    Err(error) => called.fail(error),
                };
                out.push(output);
            }
        })
    }

    /// A process that makes one call as soon as it can, and logs what comes of it.
    pub(crate) fn spawn_caller<R: Request + Clone + 'static>(
        &mut self,
        name: &str,
        secret: Option<Secret>,
        target: &'static str,
        request: R,
    ) -> ProcessId
    where
        R::Reply: std::fmt::Debug,
    {
        let log = Rc::clone(&self.log);
        let own = name.to_owned();
        self.spawn(name, secret, Vec::new(), move |_, input, out| match input {
            Input::Registered => {
                let call = Call::new(7, target, request.clone());
                out.push(call.within(Duration::from_secs(1)).into());
            }
            Input::Replied { result, .. } => {
                let result = result.and_then(|reply| reply.read::<R>());
                let text = match result {
                    Ok(reply) => format!("{reply:?}"),
                    Err(error) => error.to_string(),
                };
                log.borrow_mut().push(format!("{own}: {text}"));
            }
            Input::NotRegistered(why) => log.borrow_mut().push(format!("{own}: {why}")),
            _ => {}
        })
    }

    pub(crate) fn run(&mut self, duration: Duration) {
        let until = self.world.now() + duration;
        self.world.run_until(until).unwrap();
    }

    pub(crate) fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut *self.log.borrow_mut())
    }
}

fn add(request: &probe::Add) -> Result<probe::AddReply, XrlError> {
    let sum = request.a.checked_add(request.b);
    sum.map(|sum| probe::AddReply { sum }).ok_or_else(|| XrlError::failed("the sum is too large"))
}

fn spawn_finder() -> Spawn {
    let settings = weft_finder::Settings {
        listen: finder_address(),
        owner: OWNER,
        operator: 1000,
        users: Box::new(weft_finder::Nobody),
        seed: [9; 32],
    };
    Spawn::new("finder", Box::new(Finder::new(settings)))
}

/// A process that may do what `access` says.
pub(crate) fn process(instance: &str, secret: Secret, access: &str) -> finder::Process {
    finder::Process {
        instance: instance.to_owned(),
        class: instance.to_owned(),
        secret: Binary(secret.to_vec()),
        access: access.to_owned(),
    }
}
