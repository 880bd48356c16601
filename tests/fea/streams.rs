//! Connections of TCP that the FEA makes.

use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use weft_base::{Buffer, Instant, Token};
use weft_runtime::sim::{InterfaceConfig, NodeId, ProcessId, Spawn, World, WorldConfig};
use weft_runtime::{
    Action, Event, LinkConfig, PeerKey, StreamEvent, StreamKey, StreamListenerSpec, StreamOptions,
    StreamRequest, StreamSpec, real,
};
use weft_xrl::{Input, Output};

use crate::network::{
    Boxed, Log, Script, component_process, directory, fea_process, finder_process, owner_process,
};

const LISTENER: Token = Token(1);
const OPENED: Token = Token(2);
/// What a routing protocol may do that uses port 1790.
const ACCESS: &str = "fea/fea/1.0/open_stream?port=1790 fea/fea/1.0/cancel_stream \
                      fea/fea/1.0/open_stream_listener?port=1790 fea/fea/1.0/set_stream_keys \
                      fea/fea/1.0/close_stream_listener";

fn stream(token: Token, request: StreamRequest) -> Output {
    Output::World(Action::Stream { token, request })
}

fn key(text: &str) -> StreamKey {
    StreamKey::new(text).unwrap()
}

fn keys(text: &str) -> Vec<PeerKey> {
    vec![PeerKey { network: [0, 0, 0, 0].into(), prefix_length: 0, key: key(text) }]
}

fn listen(port: u16) -> StreamListenerSpec {
    let local = SocketAddr::from(([0, 0, 0, 0], port));
    StreamListenerSpec {
        local,
        keys: keys("first"),
        least_ttls: Vec::new(),
        options: StreamOptions::default(),
    }
}

fn to(peer: &str, with: &str) -> StreamSpec {
    let peer = peer.parse().unwrap();
    StreamSpec { peer, local: None, key: Some(key(with)), options: StreamOptions::default() }
}

/// An event in words; nothing of what others are told, too.
fn words(event: &Event) -> Option<String> {
    Some(match event {
        Event::Stream { event, .. } => match event {
            StreamEvent::Opened { .. } => "opened".to_owned(),
            StreamEvent::Accepted { .. } => "accepted".to_owned(),
            StreamEvent::Listening { local } => format!("listening {}", local.port()),
            StreamEvent::Failed { error } => error.clone(),
            other => format!("{other:?}"),
        },
        Event::Messages { messages, .. } => {
            let bytes: Vec<u8> = messages.iter().flat_map(|one| one.bytes().to_vec()).collect();
            String::from_utf8(bytes).unwrap()
        }
        Event::Closed { .. } => "closed".to_owned(),
        _ => return None,
    })
}

/// Listens, answers what comes, and changes its keys to the second when it hears `change`.
fn server(mut tell: impl FnMut(String) + 'static) -> Boxed {
    Box::new(Script::new(move |_, input, out: &mut Vec<Output>| {
        if let Input::World(event) = &input {
            words(event).into_iter().for_each(&mut tell);
        }
        match input {
            Input::Registered => out.push(stream(LISTENER, StreamRequest::Listen(listen(1790)))),
            Input::World(Event::Messages { channel, messages }) => {
                for message in messages {
                    if message.bytes() == b"change" {
                        let request = StreamRequest::SetKeys(keys("second"));
                        out.push(stream(LISTENER, request));
                    }
                    let message = message.buffer.into();
                    out.push(Output::World(Action::Send { channel, message }));
                }
            }
            _ => {}
        }
        None
    }))
}

/// Connects, says `text` and, when it has heard that, exits; until then it connects again after a while.
fn client(spec: StreamSpec, text: &'static str, mut tell: impl FnMut(String) + 'static) -> Boxed {
    Box::new(Script::new(move |now: Instant, input, out: &mut Vec<Output>| {
        if let Input::World(event) = &input {
            words(event).into_iter().for_each(&mut tell);
        }
        match input {
            Input::Registered | Input::World(Event::Tick) => {
                out.push(stream(OPENED, StreamRequest::Open(spec.clone())));
            }
            Input::World(Event::Stream { event: StreamEvent::Opened { channel, .. }, .. }) => {
                let message = Buffer::from_slice(text.as_bytes()).into();
                out.push(Output::World(Action::Send { channel, message }));
            }
            Input::World(Event::Messages { channel, .. }) => {
                out.push(Output::World(Action::Close { channel }));
                out.push(Output::World(Action::Exit { status: 0 }));
            }
            Input::World(Event::Stream { event: StreamEvent::Failed { .. }, .. }) => {
                return Some(now + Duration::from_millis(100));
            }
            _ => {}
        }
        None
    }))
}

/// Two simulated nodes side by side, each with its Finder and its FEA.
struct Pair {
    world: World,
    nodes: [NodeId; 2],
    feas: [ProcessId; 2],
}

const NAMES: [&str; 2] = ["one", "two"];

impl Pair {
    fn new(access: &str) -> Self {
        let mut world = World::new(WorldConfig::default());
        let nodes = NAMES.map(|name| world.add_node(name).unwrap());
        let interfaces =
            nodes.map(|node| world.add_interface(node, InterfaceConfig::new("eth0")).unwrap());
        let [one, two] = interfaces.map(|interface| (interface, LinkConfig::default()));
        world.connect(one, two).unwrap();
        for (interface, last) in interfaces.into_iter().zip(1..) {
            world.add_address(interface, [10, 0, 0, last].into(), 24).unwrap();
        }
        let mut feas = Vec::new();
        for (node, name) in nodes.into_iter().zip(NAMES) {
            let directory = directory(name);
            world.spawn(node, Spawn::new("finder", finder_process(&directory)));
            let owner = owner_process(&directory, &[access, access]);
            world.spawn(node, Spawn::new("manager", owner));
            feas.push(world.spawn(node, Spawn::new("fea", fea_process(&directory))));
        }
        Self { world, nodes, feas: feas.try_into().unwrap() }
    }

    fn spawn(&mut self, at: usize, number: u8, make: impl FnOnce(&Log) -> Boxed) -> Log {
        let log = Log::default();
        let component = component_process(&directory(NAMES[at]), number, make(&log));
        self.world.spawn(self.nodes[at], Spawn::new("component", component));
        log
    }

    fn run(&mut self, time: Duration) {
        let until = self.world.now() + time;
        self.world.run_until(until).unwrap();
    }
}

fn telling(log: &Log) -> impl FnMut(String) + 'static {
    let log = Rc::clone(log);
    move |text| log.borrow_mut().push(text)
}

const WHILE: Duration = Duration::from_secs(1);

#[test]
fn components_connect_through_the_feas_of_their_nodes() {
    let mut pair = Pair::new(ACCESS);
    let served = pair.spawn(1, 0, |log| server(telling(log)));
    pair.run(WHILE);
    let spec = to("10.0.0.2:1790", "first");
    let asked = pair.spawn(0, 0, |log| client(spec, "hello", telling(log)));
    pair.run(WHILE);
    assert_eq!(*served.borrow(), ["listening 1790", "accepted", "hello", "closed"]);
    assert_eq!(*asked.borrow(), ["opened", "hello"]);
}

#[test]
fn keys_are_changed_by_the_fea_and_a_new_one_opens_the_socket_anew() {
    let mut pair = Pair::new(ACCESS);
    let served = pair.spawn(1, 0, |log| server(telling(log)));
    pair.run(WHILE);
    let spec = to("10.0.0.2:1790", "first");
    pair.spawn(0, 0, |log| client(spec, "change", telling(log)));
    pair.run(WHILE);
    let spec = to("10.0.0.2:1790", "second");
    let asked = pair.spawn(0, 1, |log| client(spec.clone(), "hello", telling(log)));
    pair.run(WHILE);
    assert_eq!(*asked.borrow(), ["opened", "hello"]);
    // The next FEA does not know the socket, whose keys it can change no more.
    pair.world.kill(pair.feas[1]);
    let fea = fea_process(&directory(NAMES[1]));
    pair.world.spawn(pair.nodes[1], Spawn::new("fea", fea));
    pair.run(WHILE);
    served.borrow_mut().clear();
    let asked = pair.spawn(0, 1, |log| client(spec, "change", telling(log)));
    pair.run(WHILE);
    assert_eq!(*asked.borrow(), ["opened", "change"]);
    let expected = ["accepted", "change", "KeysSet { result: Ok(()) }", "listening 1790", "closed"];
    let mut served: Vec<_> = served.borrow().clone();
    served.sort_by_key(|line| expected.iter().position(|one| one == line));
    assert_eq!(served, expected);
}

#[test]
fn what_the_access_list_does_not_say_is_not_opened() {
    let mut pair = Pair::new(ACCESS);
    let other =
        StreamSpec { peer: "10.0.0.2:179".parse().unwrap(), ..to("10.0.0.2:1790", "first") };
    let asked = pair.spawn(0, 0, |log| client(other, "hello", telling(log)));
    pair.run(WHILE);
    assert!(asked.borrow()[0].contains("`port` may not be 179"), "{asked:?}");
}

#[test]
fn connecting_is_given_up_and_no_connection_is_left_behind() {
    let mut pair = Pair::new(ACCESS);
    let served = pair.spawn(1, 0, |log| server(telling(log)));
    pair.run(WHILE);
    // At once, and so late that the connection is there or nearly so; nothing else can happen.
    for after in [0, 10, 20, 30, 40, 50, 100] {
        let asked = pair.spawn(0, 0, |log| {
            let mut tell = telling(log);
            let mut begun = false;
            Box::new(Script::new(move |now: Instant, input, out: &mut Vec<Output>| {
                if let Input::World(event) = &input {
                    words(event).into_iter().for_each(&mut tell);
                }
                match input {
                    Input::Registered => {
                        begun = true;
                        let spec = to("10.0.0.2:1790", "first");
                        out.push(stream(OPENED, StreamRequest::Open(spec)));
                        return Some(now + Duration::from_micros(after));
                    }
                    Input::World(Event::Tick) if begun => {
                        out.push(stream(OPENED, StreamRequest::Cancel));
                        return None;
                    }
                    Input::World(Event::Stream {
                        event: StreamEvent::Opened { channel, .. },
                        ..
                    }) => out.push(Output::World(Action::Close { channel })),
                    _ => {}
                }
                None
            }))
        });
        pair.run(WHILE);
        assert_eq!(asked.borrow().len(), 1, "{after}: {asked:?}");
    }
    let served = served.borrow();
    let count = |what: &str| served.iter().filter(|line| *line == what).count();
    assert_eq!(count("accepted"), count("closed"), "{served:?}");
}

/// What the processes of a real node do, each on a thread of its own that ends with the test's process.
fn run(make: impl FnOnce() -> Box<dyn weft_runtime::Process> + Send + 'static) {
    std::thread::spawn(move || {
        let options = real::Options { signals: false, ..real::Options::default() };
        real::run(make(), options)
    });
}

fn sending(to: Sender<String>) -> impl FnMut(String) + 'static {
    // Nobody listens any more when the test is over.
    move |text| drop(to.send(text))
}

fn start(directory: &Path, access: [&'static str; 2]) {
    for make in [finder_process, fea_process] {
        let directory = directory.to_owned();
        run(move || make(&directory));
    }
    let directory = directory.to_owned();
    run(move || owner_process(&directory, &access));
}

#[test]
fn on_the_machine_a_component_speaks_with_any_peer_by_descriptors_of_the_fea() {
    use std::io::{Read, Write};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    // The peer is a plain program.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let peer = std::thread::spawn(move || {
        let mut connected = listener.accept().unwrap().0;
        let mut hello = [0; 5];
        connected.read_exact(&mut hello).unwrap();
        connected.write_all(&hello).unwrap();
    });
    start(&path, ["fea", "fea"]);
    let (tell, told) = mpsc::channel();
    run(move || {
        let spec = StreamSpec { key: None, ..to(&address.to_string(), "none") };
        component_process(&path, 0, client(spec, "hello", sending(tell)))
    });
    assert_eq!([told.recv().unwrap(), told.recv().unwrap()], ["opened", "hello"]);
    peer.join().unwrap();
}

#[test]
fn on_the_machine_keys_are_changed_in_the_fea_and_count_for_the_holder_of_the_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    start(&path, ["fea", "fea"]);
    let (tell, told) = mpsc::channel();
    run(move || {
        let mut tell = sending(tell);
        let script = Script::new(move |_, input, out: &mut Vec<Output>| {
            if let Input::World(event) = &input {
                words(event).into_iter().for_each(&mut tell);
            }
            match input {
                Input::Registered => {
                    let local = "127.0.0.1:0".parse().unwrap();
                    let spec = StreamListenerSpec { local, ..listen(0) };
                    out.push(stream(LISTENER, StreamRequest::Listen(spec)));
                }
                Input::World(Event::Stream { event: StreamEvent::Listening { .. }, .. }) => {
                    let request = StreamRequest::SetKeys(Vec::new());
                    out.push(stream(LISTENER, request));
                }
                _ => {}
            }
            None
        });
        component_process(&path, 0, Box::new(script))
    });
    let listening = told.recv().unwrap();
    let port: u16 = listening.strip_prefix("listening ").unwrap().parse().unwrap();
    assert_eq!(told.recv().unwrap(), "KeysSet { result: Ok(()) }");
    // Nothing has to be signed any more.
    let _connected = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    assert_eq!(told.recv().unwrap(), "accepted");
}
