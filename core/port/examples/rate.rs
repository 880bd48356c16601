//! How many frames per second an Ethernet port sends and receives over a virtual cable.
//!
//! Needs root: it makes two network namespaces and removes them.
//!
//! ```text
//! cargo run --release -p weft-port --features testing --example rate
//! ```

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weft_base::Packet;
use weft_port::testing::{Namespace, privileged};
use weft_port::{Options, Port, PortSpec, open};

/// A local experimental EtherType (IEEE 802, clause 9.2.4).
const ETHERTYPE: u16 = 0x88b5;
const SPAN: Duration = Duration::from_secs(2);

fn main() {
    if !privileged() {
        return;
    }
    println!("frame bytes  sent/s     received/s  lost");
    for len in [60, 256, 1514] {
        measure(len);
    }
}

fn measure(len: usize) {
    let (left, right) = (Namespace::new(), Namespace::new());
    left.connect("west", &right, "east");
    let (mut sender, mut receiver) = (port(&left, "west"), port(&right, "east"));
    let frame = frame(receiver.info().mac, sender.info().mac, len);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            while start.elapsed() < SPAN {
                let mut queue: VecDeque<Packet> = (0..64).map(|_| frame.duplicate()).collect();
                while !queue.is_empty() {
                    sender.transmit(&mut queue).expect("the cable stays");
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        let mut batch = Vec::with_capacity(64);
        while !done.load(Ordering::Relaxed) {
            receiver.receive(&mut batch, 64).expect("the cable stays");
            batch.clear();
        }
    });
    let (sent, received) = (sender.statistics().sent, receiver.statistics().received);
    let per_second = |packets: u64| packets as f64 / SPAN.as_secs_f64();
    let lost = 100.0 - 100.0 * received.packets as f64 / sent.packets as f64;
    println!(
        "{len:11}  {:9.0}  {:10.0}  {lost:.1} %",
        per_second(sent.packets),
        per_second(received.packets)
    );
}

fn port(namespace: &Namespace, interface: &str) -> Box<dyn Port> {
    let spec = PortSpec::Ethernet { interface: interface.to_owned(), ethertype: ETHERTYPE };
    namespace.run(|| open(&spec, &Options::default())).expect("the interface was just made")
}

fn frame(to: [u8; 6], from: [u8; 6], len: usize) -> Packet {
    let mut frame = Packet::new();
    frame.extend(&to);
    frame.extend(&from);
    frame.extend(&ETHERTYPE.to_be_bytes());
    let missing = len - frame.len();
    frame.extend(&vec![0; missing]);
    frame
}
