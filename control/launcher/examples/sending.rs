//! What it costs to send a datagram: by sendmmsg(2) in batches of 64, by sendto(2), and the same behind the
//! filter of a component, which refuses sendmmsg.
//!
//! ```text
//! cargo run --release -p weft-launcher --example sending
//! ```
//!
//! Processor time of the sending thread, medians of 15 rounds in which all take turns; without the filter in one
//! half of the table, behind it in the other.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::net::addr::SocketAddrArg;
use rustix::net::{
    AddressFamily, MMsgHdr, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrAny, SocketFlags,
    SocketType, recv, send, sendmmsg, sendto, socketpair,
};
use rustix::time::{ClockId, clock_gettime};
use weft_launcher::{Profile, Sandbox, isolate};

const BATCH: usize = 64;
const ROUNDS: usize = 15;
/// Nanoseconds of processor time that one round takes at least.
const SPAN: u64 = 20_000_000;

/// Where datagrams leave and arrive.
struct Way {
    name: &'static str,
    from: OwnedFd,
    to: OwnedFd,
    address: Option<SocketAddrAny>,
}

#[derive(Clone, Copy)]
enum Call {
    Sendmmsg,
    Sendto,
    Write,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (sender, receiver) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    let address: SocketAddr = receiver.local_addr()?;
    let kind = SocketType::SEQPACKET;
    let pair = socketpair(AddressFamily::UNIX, kind, SocketFlags::empty(), None)?;
    let ways = [
        Way {
            name: "UDP",
            from: sender.into(),
            to: receiver.into(),
            address: Some(address.as_any()),
        },
        Way { name: "Unix", from: pair.0, to: pair.1, address: None },
    ];
    println!("nanoseconds for a datagram");
    compare(&ways, &[Call::Sendmmsg, Call::Sendto, Call::Write], "no filter")?;
    let sandbox = Sandbox {
        profile: Profile::Component,
        instance: "sending".parse()?,
        run_directory: "/".into(),
        write: Vec::new(),
    };
    for missing in isolate::enter(&sandbox)? {
        println!("{missing}");
    }
    compare(&ways, &[Call::Sendto, Call::Write], "filter")?;
    Ok(())
}

fn compare(ways: &[Way], calls: &[Call], filter: &str) -> rustix::io::Result<()> {
    for way in ways {
        for len in [64, 1400] {
            let bytes = vec![7; len];
            let mut times = vec![Vec::new(); calls.len()];
            for _ in 0..ROUNDS {
                for (call, times) in calls.iter().zip(&mut times) {
                    // Only a connected socket can be written to.
                    if way.address.is_none() || !matches!(call, Call::Write) {
                        times.push(measure(way, *call, &bytes)?);
                    }
                }
            }
            for (call, times) in calls.iter().zip(&mut times) {
                times.sort_unstable();
                let name = match call {
                    Call::Sendmmsg => "sendmmsg",
                    Call::Sendto => "sendto",
                    Call::Write => "write",
                };
                if let Some(median) = times.get(times.len() / 2) {
                    println!(
                        "{filter:>9}  {:<4}  {len:>4} bytes  {name:<8}  {median:>5}",
                        way.name
                    );
                }
            }
        }
    }
    Ok(())
}

/// Nanoseconds of processor time for each datagram.
fn measure(way: &Way, call: Call, bytes: &[u8]) -> rustix::io::Result<u64> {
    let (mut time, mut count) = (0, 0);
    let mut buffer = [0; 2048];
    while time < SPAN {
        let begin = now();
        send_batch(way, call, bytes)?;
        time += now() - begin;
        count += BATCH as u64;
        for _ in 0..BATCH {
            recv(&way.to, &mut buffer[..], RecvFlags::empty())?;
        }
    }
    Ok(time / count)
}

fn send_batch(way: &Way, call: Call, bytes: &[u8]) -> rustix::io::Result<()> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    match (call, &way.address) {
        (Call::Sendmmsg, address) => {
            let slices = [IoSlice::new(bytes)];
            let mut spaces: [[MaybeUninit<u8>; 0]; BATCH] = [[]; BATCH];
            let mut controls: Vec<_> =
                spaces.iter_mut().map(|space| SendAncillaryBuffer::new(space)).collect();
            let mut messages: Vec<_> = controls
                .iter_mut()
                .map(|control| match address {
                    Some(address) => MMsgHdr::new_with_addr(address, &slices, control),
                    None => MMsgHdr::new(&slices, control),
                })
                .collect();
            assert_eq!(sendmmsg(&way.from, &mut messages, flags)?, BATCH);
        }
        (Call::Sendto, Some(address)) => {
            for _ in 0..BATCH {
                sendto(&way.from, bytes, flags, address)?;
            }
        }
        (Call::Sendto, None) => {
            for _ in 0..BATCH {
                send(&way.from, bytes, flags)?;
            }
        }
        (Call::Write, _) => {
            for _ in 0..BATCH {
                rustix::io::write(&way.from, bytes)?;
            }
        }
    }
    Ok(())
}

/// Processor time of this thread, in nanoseconds.
fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
