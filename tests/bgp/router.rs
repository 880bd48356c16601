//! A simulated router: a Finder, a manager that says who may do what, an FEA, a RIB and BGP, each a process of its own.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use weft_base::{Instant, Random};
use weft_bgp::Bgp;
use weft_bgp::interface::Clear;
use weft_fea::Fea;
use weft_finder::Finder;
use weft_rib::Rib;
use weft_runtime::sim::{NodeId, ProcessId, Spawn, World};
use weft_runtime::{Action, ChannelAddress, Component, Process};
use weft_xrl::frame::Secret;
use weft_xrl::{
    Binary, Call, Host, Identity, Input, Interface, Output, Part, Settings, configurable, finder,
};

/// The processes of a router, in the order in which they are started.
pub(crate) const PROCESSES: [&str; 5] = ["finder", "manager", "fea", "rib", "bgp"];
/// What each may call, by its name; and the tool of an operator.
const ACCESS: [(&str, &str); 4] = [
    ("fea", ""),
    ("rib", "fea/fib/1.0 fea/fea/1.0/watch_interfaces"),
    (
        "bgp",
        "rib/rib fea/fea/1.0/open_stream?port=179 fea/fea/1.0/open_stream_listener?port=179 \
         fea/fea/1.0/cancel_stream fea/fea/1.0/set_stream_keys fea/fea/1.0/close_stream_listener \
         fea/fea/1.0/watch_interfaces",
    ),
    ("tool", "bgp/bgp rib/rib"),
];

type Boxed = Box<dyn Component<Input = Input, Output = Output>>;

/// A component made of a function.
struct Script<F>(F);

impl<F: FnMut(Input, &mut Vec<Output>)> Component for Script<F> {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, _now: Instant, input: Input, out: &mut Vec<Output>) {
        (self.0)(input, out);
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// What an operator is told: the last answer of BGP and of the RIB to `show`.
pub(crate) type Answers = Rc<RefCell<[Option<String>; 2]>>;

/// One router.
pub(crate) struct Router {
    node: NodeId,
    directory: PathBuf,
    config: String,
    random: Random,
    running: [Option<ProcessId>; PROCESSES.len()],
    /// How many processes were started.
    started: u64,
}

impl Router {
    /// Without processes.
    pub(crate) fn new(node: NodeId, name: &str, config: String, random: Random) -> Self {
        let directory = PathBuf::from(format!("/run/{name}"));
        Self { node, directory, config, random, running: [None; PROCESSES.len()], started: 0 }
    }

    /// Starts the process with this place, unless it runs.
    pub(crate) fn start(&mut self, world: &mut World, place: usize) {
        if self.running[place].is_some() {
            return;
        }
        self.started += 1;
        let name = PROCESSES[place];
        let mut random = self.random.fork(&format!("{name}/{}", self.started));
        let process = match name {
            "finder" => {
                let mut seed = [0; 32];
                random.fill(&mut seed);
                finder_process(&self.directory, seed)
            }
            "manager" => self.manager(),
            "fea" => {
                let fea = Box::new(Fea::new(&mut random));
                self.host(name, weft_fea::interfaces(), fea, false)
            }
            "rib" => self.host(name, weft_rib::interfaces(), Box::<Rib>::default(), true),
            _ => self.host(name, weft_bgp::interfaces(), Box::new(Bgp::new(random)), true),
        };
        self.running[place] = Some(world.spawn(self.node, Spawn::new(name, process)));
    }

    /// Kills it, if it runs.
    pub(crate) fn kill(&mut self, world: &mut World, place: usize) {
        self.running[place].take().into_iter().for_each(|process| world.kill(process));
    }

    /// Asks BGP and the RIB for their routes.
    pub(crate) fn ask(&self, world: &mut World) -> Answers {
        let answers = Answers::default();
        let heard = Rc::clone(&answers);
        self.tool(world, move |input, out| match input {
            Input::Registered => {
                let (what, at_most) = ("routes".to_owned(), Some(1000));
                let show =
                    weft_bgp::interface::Show { what: what.clone(), at_most, ..Default::default() };
                out.push(Call::new(0, "bgp", show).into());
                let show = weft_rib::interface::Show { what, at_most, ..Default::default() };
                out.push(Call::new(1, "rib", show).into());
            }
            Input::Replied { token, result } => {
                let reply = result.unwrap();
                let json = match token {
                    0 => reply.read::<weft_bgp::interface::Show>().unwrap().json,
                    _ => reply.read::<weft_rib::interface::Show>().unwrap().json,
                };
                heard.borrow_mut()[token as usize] = Some(json);
                if heard.borrow().iter().all(Option::is_some) {
                    out.push(Output::World(Action::Exit { status: 0 }));
                }
            }
            _ => {}
        });
        answers
    }

    /// Clears the session with a peer; whether that can be done now is not asked.
    pub(crate) fn clear(&self, world: &mut World, clear: Clear) {
        let mut clear = Some(clear);
        self.tool(world, move |input, out| match input {
            Input::Registered => {
                out.extend(clear.take().map(|one| Call::new(0, "bgp", one).into()))
            }
            Input::Replied { .. } => out.push(Output::World(Action::Exit { status: 0 })),
            _ => {}
        });
    }

    fn tool(&self, world: &mut World, script: impl FnMut(Input, &mut Vec<Output>) + 'static) {
        let process = self.host("tool", Vec::new(), Box::new(Script(script)), false);
        world.spawn(self.node, Spawn::new("tool", process));
    }

    /// Says which processes there are, and configures them whenever they come.
    fn manager(&self) -> Box<dyn Process> {
        let config = self.config.clone();
        let script = move |input: Input, out: &mut Vec<Output>| match input {
            Input::Registered => {
                let process = |(name, access): &(&str, &str)| finder::Process {
                    instance: (*name).to_owned(),
                    class: (*name).to_owned(),
                    secret: Binary(secret(name).to_vec()),
                    access: (*access).to_owned(),
                };
                let processes = ACCESS.iter().map(process).collect();
                out.push(Call::new(0, "finder", finder::SetProcesses { processes }).into());
                out.push(Output::Watch { class: Some("bgp".to_owned()) });
            }
            Input::Born { class, .. } if class == "bgp" => {
                let (source, text) = ("config".to_owned(), config.clone());
                let configure = configurable::Configure { source, line: 1, text };
                out.push(Call::new(1, "bgp", configure).into());
            }
            // A process that is killed meanwhile is told again when it is back.
            Input::Replied { token: 1, result: Err(error) } if !error.is_gone() => {
                panic!("the configuration: {error}");
            }
            _ => {}
        };
        self.host("manager", Vec::new(), Box::new(Script(script)), false)
    }

    fn host(
        &self,
        instance: &str,
        interfaces: Vec<&'static Interface>,
        component: Boxed,
        ports_from_fea: bool,
    ) -> Box<dyn Process> {
        let is_called = !interfaces.is_empty();
        let listen = is_called.then(|| ChannelAddress::Stream(self.directory.join(instance)));
        let settings = Settings {
            finder: Some(finder_address(&self.directory)),
            listen,
            credential: Identity::Secret(secret(instance)),
            ports_from_fea,
        };
        let class = if is_called { instance.to_owned() } else { String::new() };
        let instance = instance.to_owned();
        Box::new(Host::new(
            settings,
            vec![Part { class, instance, sole: is_called, interfaces, component }],
        ))
    }
}

/// What a process proves itself with.
fn secret(name: &str) -> Secret {
    let mut secret = [7; 32];
    secret.iter_mut().zip(name.bytes()).for_each(|(byte, of_name)| *byte = of_name);
    secret
}

fn finder_address(directory: &Path) -> ChannelAddress {
    ChannelAddress::Stream(directory.join("finder"))
}

/// Of another seed each time, as in a process of its own: sessions and keys do not come back.
fn finder_process(directory: &Path, seed: [u8; 32]) -> Box<dyn Process> {
    let settings = weft_finder::Settings {
        listen: finder_address(directory),
        owner: secret("manager"),
        operator: 1000,
        users: Box::new(weft_finder::Nobody),
        seed,
    };
    Box::new(Finder::new(settings))
}
