//! The processes that are measured: each is a thread with an event loop of its own, as a process of a
//! node has it.
//!
//! A Finder with its keys, the owner who says that the caller may call the probe, the probe, and the
//! caller. The first two have nothing to do while the others are measured.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use weft_base::Instant;
use weft_finder::Finder;
use weft_keys::PrivateKey;
use weft_runtime::{Action, ChannelAddress, Component, Event, Keys, Level, Process, real};
use weft_xrl::frame::Secret;
use weft_xrl::{
    Binary, Call, Host, Identity, Input, Interface, Output, Part, Request, Settings, finder,
};

use super::ends::{Caller, News, PROBE, Probe, exit, interface, tell};
use super::{Amount, Transport};

/// How long the threads may be silent before something is taken to be broken.
const PATIENCE: Duration = Duration::from_secs(120);

/// Something to be measured: what is called how often, and what a reply is worth.
pub(super) struct Work<R: Request> {
    pub(super) request: fn() -> R,
    pub(super) worth: fn(&R::Reply) -> u64,
    pub(super) amount: Amount,
}

/// Measures how much is done per second.
pub(super) fn measure<R: Request + 'static>(
    work: Work<R>,
    transport: Transport,
    directory: &Path,
) -> Result<f64, String> {
    let listen = match transport {
        Transport::InProcess => return measure_alone(work),
        Transport::Unix => ChannelAddress::Stream(directory.join(PROBE)),
        Transport::Tcp => ChannelAddress::Tcp(free_port()?),
        Transport::Tls => ChannelAddress::Tls { address: free_port()?, peer: None },
    };
    let [server_keys, client_keys] = keys(transport)?;
    let finder_address = ChannelAddress::Stream(directory.join("finder"));
    let (news, events) = channel();
    let secrets = [secret()?, secret()?, secret()?];
    let [owner, server, client] = secrets;
    let settings = weft_finder::Settings {
        users: Box::new(weft_finder::Nobody),
        listen: finder_address.clone(),
        owner,
        operator: rustix::process::getuid().as_raw(),
        seed: secret()?,
    };
    let process = move |secret, listen| Settings {
        finder: Some(finder_address.clone()),
        listen,
        credential: Identity::Secret(secret),
        ports_from_fea: false,
    };
    let mut threads =
        vec![spawn("finder", None, move || Box::new(Ending::new(Finder::new(settings))))?];

    let (own, to_main) = (process(owner, None), news.clone());
    let processes = vec![allowed(PROBE, server, ""), allowed("caller", client, PROBE)];
    threads.push(spawn("owner", None, move || {
        host(own, "owner", None, Owner { processes, news: to_main })
    })?);
    await_ready(&events)?;

    let (own, to_main) = (process(server, Some(listen)), news.clone());
    threads.push(spawn(PROBE, server_keys, move || {
        host(own, PROBE, Some(interface()), Probe { news: Some(to_main) })
    })?);
    await_ready(&events)?;

    let own = process(client, None);
    threads.push(spawn("caller", client_keys, move || {
        let Work { request, worth, amount } = work;
        host(own, "caller", None, Caller::new(request, worth, amount, news))
    })?);
    let rate = await_rate(&events)?;
    join(threads)?;
    Ok(rate)
}

/// Measures a caller and a probe in one process, without a Finder.
fn measure_alone<R: Request + 'static>(work: Work<R>) -> Result<f64, String> {
    let (news, events) = channel();
    let thread = spawn("process", None, move || {
        let Work { request, worth, amount } = work;
        let settings = Settings {
            finder: None,
            listen: None,
            credential: Identity::User,
            ports_from_fea: false,
        };
        let caller = Caller::new(request, worth, amount, news);
        let parts = vec![
            part("caller", None, caller),
            part(PROBE, Some(interface()), Probe { news: None }),
        ];
        Box::new(Host::new(settings, parts))
    })?;
    let rate = await_rate(&events)?;
    join(vec![thread])?;
    Ok(rate)
}

type Member = Box<dyn Component<Input = Input, Output = Output>>;

fn part(
    name: &str,
    interface: Option<&'static Interface>,
    component: impl Component<Input = Input, Output = Output> + 'static,
) -> Part {
    let component: Member = Box::new(component);
    Part {
        class: interface.map(|_| name.to_owned()).unwrap_or_default(),
        instance: name.to_owned(),
        sole: false,
        interfaces: interface.into_iter().collect(),
        component,
    }
}

fn host(
    settings: Settings,
    name: &str,
    interface: Option<&'static Interface>,
    component: impl Component<Input = Input, Output = Output> + 'static,
) -> Box<dyn Process> {
    Box::new(Host::new(settings, vec![part(name, interface, component)]))
}

fn allowed(instance: &str, secret: Secret, access: &str) -> finder::Process {
    finder::Process {
        instance: instance.to_owned(),
        class: instance.to_owned(),
        secret: Binary(secret.to_vec()),
        access: access.to_owned(),
    }
}

fn secret() -> Result<Secret, String> {
    let mut secret = [0; 32];
    rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| format!("the kernel gives no random numbers: {error}"))?;
    Ok(secret)
}

/// A port of the loopback interface that nobody has.
fn free_port() -> Result<SocketAddr, String> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(|error| format!("there is no free TCP port on the loopback interface: {error}"))
}

/// What the probe and its caller show one another, where they do.
fn keys(transport: Transport) -> Result<[Option<Keys>; 2], String> {
    if transport != Transport::Tls {
        return Ok([None, None]);
    }
    let new = || PrivateKey::generate().map_err(|error| error.to_string());
    let (server, client) = (new()?, new()?);
    let [of_server, of_client] = [&server, &client].map(|key| key.public_key().hash());
    let keys = |own, peer| Some(Keys { own, peers: [peer].into_iter().collect() });
    Ok([keys(server, of_client), keys(client, of_server)])
}

/// Runs a process, which is made in its thread, until it exits.
fn spawn(
    name: &str,
    keys: Option<Keys>,
    process: impl FnOnce() -> Box<dyn Process> + Send + 'static,
) -> Result<JoinHandle<u8>, String> {
    let run = move || {
        let level = Level::Error;
        let options = real::Options { signals: false, level, keys, ..Default::default() };
        real::run(process(), options)
    };
    let thread = Builder::new().name(name.to_owned()).spawn(run);
    thread.map_err(|error| format!("the thread of the {name} cannot be started: {error}"))
}

fn join(threads: Vec<JoinHandle<u8>>) -> Result<(), String> {
    threads.into_iter().try_for_each(|thread| match thread.join() {
        Ok(0) => Ok(()),
        Ok(status) => Err(format!("one of the processes ended with status {status}")),
        Err(_) => Err("one of the processes panicked".to_owned()),
    })
}

fn await_ready(events: &Receiver<News>) -> Result<(), String> {
    match events.recv_timeout(PATIENCE) {
        Ok(News::Ready) => Ok(()),
        other => Err(failure(other.ok())),
    }
}

fn await_rate(events: &Receiver<News>) -> Result<f64, String> {
    match events.recv_timeout(PATIENCE) {
        Ok(News::PerSecond(rate)) => Ok(rate),
        other => Err(failure(other.ok())),
    }
}

fn failure(news: Option<News>) -> String {
    match news {
        Some(News::Failed(why)) => format!("the calls failed: {why}"),
        Some(news) => format!("the processes are out of step: {news:?}"),
        None => format!("the processes said nothing for {} s", PATIENCE.as_secs()),
    }
}

/// The manager's part: says which processes there are, and ends when the probe has ended.
struct Owner {
    processes: Vec<finder::Process>,
    news: Sender<News>,
}

impl Component for Owner {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, _: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Registered => {
                let processes = self.processes.clone();
                out.push(Output::Watch { class: Some(PROBE.to_owned()) });
                out.push(Call::new(0, "finder", finder::SetProcesses { processes }).into());
            }
            Input::Replied { result, .. } => {
                let news = result.map_or_else(|e| News::Failed(e.to_string()), |_| News::Ready);
                tell(Some(&self.news), news);
            }
            Input::Died { .. } => out.push(exit()),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// A Finder that ends when everybody has gone.
struct Ending {
    finder: Finder,
    connected: usize,
}

impl Ending {
    fn new(finder: Finder) -> Self {
        Self { finder, connected: 0 }
    }
}

impl Component for Ending {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        let closed = matches!(event, Event::Closed { .. });
        match event {
            Event::Accepted { .. } => self.connected += 1,
            Event::Closed { .. } => self.connected -= 1,
            _ => {}
        }
        self.finder.handle(now, event, out);
        if closed && self.connected == 0 {
            out.push(Action::Exit { status: 0 });
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.finder.deadline()
    }
}
