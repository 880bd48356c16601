//! The socket by which routes are changed.
//!
//! Reference: netlink(7) (`NLM_F_ACK`, `NETLINK_CAP_ACK`; errors come unasked).
//!
//! The kernel carries out the changes of a datagram in order while it takes the datagram, says unasked which ones it
//! refuses, each by its number, and answers the last one. So many changes cost one exchange, and a refusal is known to
//! be of its change.

use std::io;
use std::ops::ControlFlow;

use netlink_sys::SocketAddr;
use netlink_sys::protocols::NETLINK_ROUTE;

use super::next_hops::{Chosen, NextHops};
use super::{RouteBatch, RouteChange, RouteOperation, RouteSpace};
use crate::Refusal;
use crate::exchange::Exchange;
use crate::message::{self, Body};

/// Room for answers, in bytes, if we may have that much: all changes of a datagram may be refused.
const RECEIVE_BUFFER: usize = 1 << 20;

/// A socket that changes routes in the network namespace in which it was opened. Needs CAP_NET_ADMIN.
#[derive(Debug)]
pub struct RouteWriter {
    exchange: Exchange,
    batch: RouteBatch,
    sequence: u32,
    next_hops: NextHops,
    number: u32,
}

impl RouteWriter {
    /// For the network namespace that the calling thread is in.
    ///
    /// # Errors
    /// Those of socket(2) and setsockopt(2).
    pub fn open() -> io::Result<Self> {
        let mut exchange = Exchange::open(NETLINK_ROUTE)?;
        let number = exchange.socket.bind_auto()?.port_number();
        let size = RECEIVE_BUFFER;
        // With less, refusals of many changes at once may be lost, which the next call says.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&exchange.socket, size)
            .or_else(|_| rustix::net::sockopt::set_socket_recv_buffer_size(&exchange.socket, size));
        let (batch, next_hops) = (RouteBatch::default(), NextHops::open()?);
        Ok(Self { exchange, batch, sequence: 0, next_hops, number })
    }

    /// The number by which the kernel tells others who has changed routes (`nlmsg_pid`).
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Makes changes, each of another route, and says which ones the kernel refuses: their places, in order. That
    /// something to be deleted is not there is no refusal.
    ///
    /// # Errors
    /// The kernel was not reached, or its answers are lost: some of the changes may have been made.
    pub fn change(
        &mut self,
        space: &RouteSpace,
        changes: &[RouteChange],
    ) -> io::Result<Vec<(usize, Refusal)>> {
        let chosen = self.next_hops.choose(space.protocol, changes);
        let mut refused = self.tell(space, changes, &chosen)?;
        let object = |place: usize| changes[place].target().and_then(|target| chosen.of(target));
        let is_lost = |(place, refusal): &(usize, Refusal)| {
            refusal.code() == Some(libc::EINVAL) && object(*place).is_some()
        };
        if refused.iter().any(is_lost) {
            // With its interface the kernel has thrown the object away. What it says of the route itself counts.
            let (lost, mut others): (Vec<_>, Vec<_>) = refused.into_iter().partition(is_lost);
            let places: Vec<_> = lost.iter().map(|(place, _)| *place).collect();
            places
                .iter()
                .filter_map(|place| object(*place))
                .for_each(|one| self.next_hops.forget(one));
            let again: Vec<_> = places.iter().map(|place| changes[*place].clone()).collect();
            let told = self.tell(space, &again, &Chosen::default())?;
            others.extend(told.into_iter().map(|(place, refusal)| (places[place], refusal)));
            others.sort_by_key(|(place, _)| *place);
            refused = others;
        }
        let is_refused = |(place, refusal): &(usize, Refusal)| {
            let deletes = matches!(changes[*place].operation, RouteOperation::Delete);
            !(deletes && refusal.code() == Some(libc::ESRCH))
        };
        refused.retain(is_refused);
        Ok(refused)
    }

    /// Tells the kernel of changes, in order, and says which ones it does not make.
    fn tell(
        &mut self,
        space: &RouteSpace,
        changes: &[RouteChange],
        chosen: &Chosen,
    ) -> io::Result<Vec<(usize, Refusal)>> {
        let (mut refused, mut done) = (Vec::new(), 0);
        let mut batch = std::mem::take(&mut self.batch);
        while done < changes.len() {
            let first = self.sequence.wrapping_add(1);
            let count = batch.emit_by(first, space, &changes[done..], chosen);
            self.sequence = self.sequence.wrapping_add(count as u32);
            let told = self.carry_out(&batch)?;
            refused.extend(told.into_iter().map(|(place, refusal)| (done + place, refusal)));
            done += count;
        }
        self.batch = batch;
        Ok(refused)
    }

    /// Sends a datagram, and says which changes the kernel does not make, by their places in it.
    ///
    /// # Errors
    /// As [`RouteWriter::change`].
    pub fn carry_out(&mut self, batch: &RouteBatch) -> io::Result<Vec<(usize, Refusal)>> {
        let mut refused = Vec::new();
        if batch.count == 0 {
            return Ok(refused);
        }
        self.exchange.socket.send_to(&batch.bytes, &SocketAddr::new(0, 0), 0)?;
        self.exchange.receive(|datagram| {
            let mut end = ControlFlow::Continue(());
            message::read(datagram, |message| {
                let Body::Answer { errno, text } = message.body else { return };
                let place = message.sequence.wrapping_sub(batch.first);
                // The rest is what was left unread after an error.
                if place < batch.count {
                    if errno != 0 {
                        refused.push((place as usize, Refusal::new(errno, text)));
                    }
                    if place + 1 == batch.count {
                        end = ControlFlow::Break(Ok::<(), io::Error>(()));
                    }
                }
            });
            end
        })?;
        Ok(refused)
    }
}
