//! A socket on which the kernel tells of changes, and answers what is asked between them.
//!
//! Reference: netlink(7) (`ENOBUFS`, groups), rtnetlink(7).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Room for one datagram: the kernel's answers are at most 32 KiB long, what it tells by itself is far
/// shorter.
const DATAGRAM: usize = 64 << 10;
/// The kernel's receive buffer, in bytes, if we may have that much.
const RECEIVE_BUFFER: usize = 1 << 20;
/// How many datagrams are read at a time.
const BATCH: usize = 64;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Feed {
    socket: Socket,
    datagram: Vec<u8>,
}

/// What came.
pub(crate) enum Heard<'a> {
    Datagram(&'a [u8]),
    /// The kernel told more than there was room for.
    Lost,
}

impl Feed {
    /// Listens to these groups (`RTMGRP_…`) of the network namespace that the calling thread is in.
    ///
    /// # Errors
    /// Those of socket(2) and bind(2).
    pub(crate) fn open(groups: libc::c_int) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.set_non_blocking(true)?;
        // With less, changes are asked for again more often.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER)
            .or_else(|_| {
                rustix::net::sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER)
            });
        socket.bind(&SocketAddr::new(0, groups as u32))?;
        Ok(Self { socket, datagram: Vec::with_capacity(DATAGRAM) })
    }

    /// A socket that listens to nothing, and whose questions the kernel takes literally: it tells of what is asked for
    /// alone (`NETLINK_GET_STRICT_CHK`).
    ///
    /// # Errors
    /// Those of socket(2) and bind(2), and `ENOPROTOOPT` before Linux 4.20.
    pub(crate) fn open_strict() -> io::Result<Self> {
        let feed = Self::open(0)?;
        feed.socket.set_netlink_get_strict_chk(true)?;
        Ok(feed)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Reads what is there, a limited number of messages at a time, and sends what `take` says.
    ///
    /// # Errors
    /// Those of recvfrom(2) and send(2) that last.
    pub(crate) fn read(
        &mut self,
        take: impl FnMut(Heard<'_>) -> Option<Vec<u8>>,
    ) -> io::Result<()> {
        self.read_some(BATCH, take)
    }

    /// As [`Feed::read`], of at most so many datagrams.
    ///
    /// # Errors
    /// As [`Feed::read`].
    pub(crate) fn read_some(
        &mut self,
        most: usize,
        mut take: impl FnMut(Heard<'_>) -> Option<Vec<u8>>,
    ) -> io::Result<()> {
        for _ in 0..most {
            self.datagram.clear();
            let request = match self.socket.recv_from(&mut self.datagram, libc::MSG_TRUNC) {
                Ok((_, from)) if from.port_number() != 0 => None,
                Ok((len, _)) if len > self.datagram.len() => take(Heard::Lost),
                Ok(_) => take(Heard::Datagram(&self.datagram)),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(()),
                    Some(libc::EINTR) => None,
                    Some(libc::ENOBUFS) => take(Heard::Lost),
                    _ => return Err(error),
                },
            };
            self.send(request)?;
        }
        Ok(())
    }

    /// Sends a request, if there is one.
    ///
    /// # Errors
    /// Those of send(2).
    pub(crate) fn send(&self, request: Option<Vec<u8>>) -> io::Result<()> {
        if let Some(request) = request {
            self.socket.send_to(&request, &SocketAddr::new(0, 0), 0)?;
        }
        Ok(())
    }
}
