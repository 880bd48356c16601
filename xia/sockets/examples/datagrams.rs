//! How many datagrams go from one program through the node to another on the same machine, and how long a
//! round takes: `cargo run --release -p weft-xia-sockets --example datagrams -- RUN-DIRECTORY/xia.sock`.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use weft_xia_sockets::{SocketError, XdpSocket};
use weft_xip::channel::BindRequest;
use weft_xip::{Address, XidType};

/// Bytes of a datagram.
const LEN: usize = 1400;
/// How long datagrams are sent.
const SPAN: Duration = Duration::from_secs(2);
/// How long the receiver waits for another one before it takes it that there are no more.
const PATIENCE: Duration = Duration::from_millis(200);
/// How many rounds are measured.
const ROUNDS: u32 = 20_000;

fn main() -> Result<(), SocketError> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "/run/weft/host/xia.sock".to_owned());
    let node = Path::new(&path);
    let socket = || XdpSocket::bind(node, BindRequest::Any(XidType::XDP));
    one_way(socket()?, socket()?)?;
    rounds(socket()?, socket()?)
}

/// Datagrams per second, sent as fast as the node takes them.
fn one_way(mut from: XdpSocket, mut to: XdpSocket) -> Result<(), SocketError> {
    let destination = *to.address();
    to.set_timeout(Some(PATIENCE));
    let sender = thread::spawn(move || send(&mut from, &destination));
    let (mut received, begin, mut end) = (0_u64, Instant::now(), Instant::now());
    while to.recv_from().is_ok() {
        received += 1;
        end = Instant::now();
    }
    let sent = sender.join().expect("the sender does not panic")?;
    let rate = received as f64 / (end - begin).as_secs_f64();
    println!("one way: {rate:.0} datagrams/s of {LEN} bytes; {received} of {sent} arrived");
    Ok(())
}

fn send(socket: &mut XdpSocket, destination: &Address) -> Result<u64, SocketError> {
    let (payload, end) = ([7; LEN], Instant::now() + SPAN);
    let mut sent = 0;
    while Instant::now() < end {
        for _ in 0..64 {
            socket.send_to(&payload, destination)?;
            sent += 1;
        }
    }
    Ok(sent)
}

/// The time of a round: through the node to the other program, and back.
fn rounds(mut here: XdpSocket, mut there: XdpSocket) -> Result<(), SocketError> {
    let (to, back) = (*there.address(), *here.address());
    let echo = thread::spawn(move || {
        for _ in 0..ROUNDS {
            let (payload, _) = there.recv_from()?;
            there.send_to(&payload, &back)?;
        }
        Ok::<_, SocketError>(())
    });
    let (payload, begin) = ([7; LEN], Instant::now());
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        here.send_to(&payload, &to)?;
        here.recv_from()?;
        times.push(begin.elapsed());
    }
    let mean = begin.elapsed() / ROUNDS;
    echo.join().expect("the other side does not panic")?;
    times.sort_unstable();
    let median = times[times.len() / 2];
    println!("rounds of {LEN} bytes there and back: median {median:.1?}, mean {mean:.1?}");
    Ok(())
}
