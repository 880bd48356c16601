//! How many messages per second a channel carries from one process to another, of each kind.
//!
//! ```text
//! cargo run --release -p weft-runtime --example messages
//! ```

use std::sync::mpsc;
use std::time::Duration;

use weft_base::{Buffer, ChannelId, Instant, Token};
use weft_runtime::{Action, ChannelAddress, Component, Event, real};

/// For how long messages are sent.
const SPAN: Duration = Duration::from_secs(2);
/// Messages that are sent in one go, at most, and their bytes.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 1 << 20;

fn main() {
    let directory = std::env::temp_dir().join(format!("weft-messages-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("the directory for temporary files can be written");
    println!("channel  message bytes  messages/s");
    for len in [16, 64, 1024, 65_536] {
        for (name, address) in [
            ("packets", ChannelAddress::Packets(directory.join("packets"))),
            ("flow", ChannelAddress::Flow(directory.join("flow"))),
            ("stream", ChannelAddress::Stream(directory.join("stream"))),
            ("tcp", ChannelAddress::Tcp(([127, 0, 0, 1], 0).into())),
        ] {
            println!("{name:7}  {len:13}  {:10.0}", measure(address, len));
        }
    }
    let _ = std::fs::remove_dir_all(&directory);
}

/// Messages per second.
fn measure(address: ChannelAddress, len: usize) -> f64 {
    let (ready, address_of_receiver) = mpsc::channel();
    let receiver = std::thread::spawn(move || {
        let (count, counted) = mpsc::channel();
        run(Receiver { address, ready, count, first: None, received: 0 });
        counted.recv().expect("the receiver has sent it before it ended")
    });
    let address = address_of_receiver.recv().expect("the receiver listens");
    run(Sender { address, len, channel: None, congested: false, end: None });
    receiver.join().expect("the receiver does not panic")
}

fn run(process: impl Component<Input = Event, Output = Action> + 'static) {
    let options = real::Options { signals: false, ..real::Options::default() };
    assert_eq!(real::run(Box::new(process), options), 0);
}

struct Receiver {
    address: ChannelAddress,
    ready: mpsc::Sender<ChannelAddress>,
    count: mpsc::Sender<f64>,
    first: Option<Instant>,
    received: usize,
}

impl Component for Receiver {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => {
                out.push(Action::Listen { token: Token(1), address: self.address.clone() });
            }
            Event::Listening { address, .. } => {
                self.ready.send(address).expect("the other thread waits");
            }
            Event::Messages { messages, .. } => {
                self.first.get_or_insert(now);
                self.received += messages.len();
            }
            Event::Closed { .. } => {
                let span = now.since(self.first.unwrap_or(now)).as_secs_f64();
                self.count.send(self.received as f64 / span).expect("the thread waits");
                out.push(Action::Exit { status: 0 });
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

struct Sender {
    address: ChannelAddress,
    len: usize,
    channel: Option<ChannelId>,
    congested: bool,
    end: Option<Instant>,
}

impl Component for Sender {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => {
                out.push(Action::Connect { token: Token(2), address: self.address.clone() });
            }
            Event::Connected { channel, .. } => {
                self.channel = Some(channel);
                self.end = Some(now + SPAN);
            }
            Event::Congested { .. } => self.congested = true,
            Event::Drained { .. } => self.congested = false,
            Event::Slice => {
                let Some(channel) = self.channel else { return };
                if self.end.is_some_and(|end| end <= now) {
                    out.push(Action::Close { channel });
                    out.push(Action::Exit { status: 0 });
                    return;
                }
                let bytes = vec![7; self.len];
                for _ in 0..BATCH.min(BATCH_BYTES / self.len) {
                    let message = Buffer::compact(&bytes).into();
                    out.push(Action::Send { channel, message });
                }
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn has_background_work(&self) -> bool {
        self.channel.is_some() && !self.congested
    }
}
