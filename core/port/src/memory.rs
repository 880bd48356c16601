//! Two ports that are connected to each other inside the process, for tests and examples.
//!
//! Each end is a bounded queue with an event descriptor, so that it can be waited for like any other
//! port, also from another thread.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use weft_base::Packet;

use crate::{Lost, Port, PortDrop, PortInfo, PortStatistics};

/// How many packets wait at one end at most; a link drops, too.
const CAPACITY: usize = 4096;

/// One end of a pair.
pub struct MemoryPort {
    /// What the other end sent.
    incoming: Arc<Queue>,
    /// What this end sends.
    outgoing: Arc<Queue>,
    info: PortInfo,
    statistics: PortStatistics,
}

struct Queue {
    state: Mutex<State>,
    /// Readable while there is something to receive, or to find out.
    event: OwnedFd,
}

#[derive(Default)]
struct State {
    packets: VecDeque<Packet>,
    /// The sending end is gone.
    closed: bool,
}

/// Two ports that are connected to each other, with links that carry packets of up to `mtu` bytes
/// (without Ethernet header; longer ones are counted and dropped) and have the given addresses.
///
/// # Errors
/// The process has too many open files.
pub fn pair(mtu: usize, macs: [[u8; 6]; 2]) -> std::io::Result<(MemoryPort, MemoryPort)> {
    let (there, back) = (Arc::new(Queue::new()?), Arc::new(Queue::new()?));
    let end = |incoming: &Arc<Queue>, outgoing: &Arc<Queue>, mac| MemoryPort {
        incoming: Arc::clone(incoming),
        outgoing: Arc::clone(outgoing),
        info: PortInfo { mac, mtu, local: None },
        statistics: PortStatistics::default(),
    };
    Ok((end(&back, &there, macs[0]), end(&there, &back, macs[1])))
}

impl Queue {
    fn new() -> rustix::io::Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { state: Mutex::default(), event })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic between two operations on a queue leaves it as good as before.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the descriptor readable. Call it with the lock held.
    fn raise(&self) {
        // Fails only if the counter is full, and then it is readable.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable. Call it with the lock held.
    fn lower(&self) {
        // Fails only if it is unreadable already.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
    }
}

impl Port for MemoryPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.incoming.event.as_fd()
    }

    fn receive(&mut self, batch: &mut Vec<Packet>, max: usize) -> Result<(), Lost> {
        let mut state = self.incoming.lock();
        if state.packets.is_empty() && state.closed {
            return Err(Lost::OtherEnd);
        }
        let count = max.min(state.packets.len());
        for packet in state.packets.drain(..count) {
            self.statistics.received.add(packet.len());
            batch.push(packet);
        }
        if state.packets.is_empty() && !state.closed {
            self.incoming.lower();
        }
        Ok(())
    }

    fn transmit(&mut self, queue: &mut VecDeque<Packet>) -> Result<(), Lost> {
        /// The Ethernet header, which the MTU does not include.
        const HEADER: usize = 14;
        let mut state = self.outgoing.lock();
        for mut packet in queue.drain(..) {
            if packet.len() > self.info.mtu.saturating_add(HEADER) {
                self.statistics.drops.add(PortDrop::TransmitTooLong, 1);
            } else if state.packets.len() == CAPACITY {
                self.statistics.drops.add(PortDrop::TransmitQueueFull, 1);
            } else {
                self.statistics.sent.add(packet.len());
                packet.meta = weft_base::Meta::default();
                state.packets.push_back(packet);
            }
        }
        if !state.packets.is_empty() {
            self.outgoing.raise();
        }
        Ok(())
    }

    fn statistics(&mut self) -> &PortStatistics {
        &self.statistics
    }
}

impl Drop for MemoryPort {
    fn drop(&mut self) {
        let mut state = self.outgoing.lock();
        state.closed = true;
        self.outgoing.raise();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{receive_some, send_all};

    fn connected() -> (MemoryPort, MemoryPort) {
        pair(100, [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]]).unwrap()
    }

    #[test]
    fn packets_arrive_in_order_and_wake_the_other_thread() {
        let (mut a, mut b) = connected();
        let receiver = std::thread::spawn(move || receive_some(&mut b, 200));
        send_all((0..200_u8).map(|number| Packet::from_slice(&[number])), &mut a);
        let numbers: Vec<u8> =
            receiver.join().unwrap().iter().map(|packet| packet.bytes()[0]).collect();
        assert_eq!(numbers, (0..200).collect::<Vec<u8>>());
    }

    #[test]
    fn what_the_link_cannot_carry_is_counted() {
        let (mut a, b) = connected();
        send_all([Packet::from_slice(&[0; 115]), Packet::from_slice(&[0; 114])], &mut a);
        send_all((0..CAPACITY).map(|_| Packet::from_slice(b"x")), &mut a);
        let statistics = a.statistics();
        assert_eq!(statistics.drops.get(PortDrop::TransmitTooLong), 1);
        assert_eq!(statistics.drops.get(PortDrop::TransmitQueueFull), 1);
        assert_eq!(statistics.sent.packets, CAPACITY as u64);
        drop(b);
    }

    #[test]
    fn a_dropped_end_is_reported_after_its_last_packet() {
        let (mut a, mut b) = connected();
        send_all([Packet::from_slice(b"last words")], &mut a);
        drop(a);
        assert_eq!(receive_some(&mut b, 1)[0].bytes(), b"last words");
        assert_eq!(b.receive(&mut Vec::new(), 64), Err(Lost::OtherEnd));
    }
}
