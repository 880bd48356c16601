//! Questions to the kernel, one at a time: each waits for the answer, which comes at once.
//!
//! Reference: netlink(7); Linux kernel, Documentation/userspace-api/netlink/intro.rst (sequence numbers, extended
//! acknowledgements).

use std::io;
use std::ops::ControlFlow;

use netlink_sys::{Socket, SocketAddr};

use crate::programs::Refusal;

/// Room for one datagram of an answer; the kernel's are at most 32 KiB long.
const DATAGRAM: usize = 64 << 10;

/// A socket to ask the kernel, for the network namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) socket: Socket,
    sequence: u32,
    datagram: Vec<u8>,
}

impl Exchange {
    /// Of a netlink protocol such as `NETLINK_ROUTE`.
    pub(crate) fn open(protocol: isize) -> io::Result<Self> {
        let socket = Socket::new(protocol)?;
        socket.set_cap_ack(true)?;
        socket.set_ext_ack(true)?;
        Ok(Self { socket, sequence: 0, datagram: Vec::with_capacity(DATAGRAM) })
    }

    /// Sends what `emit` makes of a number, and gives `read` the datagrams that come, until it says how the answer ends.
    /// There can be messages with other numbers among them: the end of an answer that an earlier error left unread.
    pub(crate) fn ask(
        &mut self,
        emit: impl FnOnce(u32) -> Vec<u8>,
        mut read: impl FnMut(&[u8], u32) -> ControlFlow<Result<(), Refusal>>,
    ) -> Result<(), Refusal> {
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = self.sequence;
        self.socket.send_to(&emit(sequence), &SocketAddr::new(0, 0), 0)?;
        self.receive(|datagram| read(datagram, sequence))
    }

    /// Gives `read` the datagrams that come, until it says how the answer ends.
    pub(crate) fn receive<E: From<io::Error>>(
        &mut self,
        mut read: impl FnMut(&[u8]) -> ControlFlow<Result<(), E>>,
    ) -> Result<(), E> {
        loop {
            self.datagram.clear();
            match self.socket.recv_from(&mut self.datagram, 0) {
                Ok((_, from)) if from.port_number() != 0 => continue,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            if let ControlFlow::Break(end) = read(&self.datagram) {
                return end;
            }
        }
    }
}
