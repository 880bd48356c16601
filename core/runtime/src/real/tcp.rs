//! TCP sockets for channels: bare ones within the loopback interface, as nothing is encrypted there, and
//! those for TLS.
//!
//! Reference: tcp(7), connect(2).

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, listen, socket_with, sockopt,
};

use crate::address::only_loopback;

/// A socket that listens at `address`.
///
/// # Errors
/// A sentence.
pub(super) fn listen_at(address: SocketAddr, backlog: i32) -> Result<OwnedFd, String> {
    only_loopback("listen at", address)?;
    listen_anywhere("TCP", address, backlog)
}

/// The same on any interface, for what encrypts; `what` is that.
pub(super) fn listen_anywhere(
    what: &str,
    address: SocketAddr,
    backlog: i32,
) -> Result<OwnedFd, String> {
    listen_with(what, address, backlog, |_| Ok(()))
}

/// The same with a socket of which somebody has set the options.
pub(super) fn listen_with(
    what: &str,
    address: SocketAddr,
    backlog: i32,
    prepare: impl FnOnce(&OwnedFd) -> Result<(), String>,
) -> Result<OwnedFd, String> {
    let sentence = |errno| listen_error(what, address, errno);
    let socket = new_socket(address).map_err(sentence)?;
    prepare(&socket).map_err(|error| format!("cannot listen at {what} {address}: {error}"))?;
    // A process that starts again need not wait for the connections of the one before.
    sockopt::set_socket_reuseaddr(&socket, true).map_err(sentence)?;
    bind(&socket, &address).map_err(sentence)?;
    listen(&socket, backlog).map_err(sentence)?;
    Ok(socket)
}

/// Begins to connect to `address`; says whether the connection is there already. If not, the socket
/// becomes writable when that is known.
///
/// # Errors
/// A sentence.
pub(super) fn connect_to(address: SocketAddr) -> Result<(OwnedFd, bool), String> {
    only_loopback("connect to", address)?;
    begin_to_connect("TCP", address)
}

/// The same to any interface, for TLS.
pub(super) fn connect_anywhere(address: SocketAddr) -> Result<(OwnedFd, bool), String> {
    begin_to_connect("TLS", address)
}

fn begin_to_connect(what: &str, address: SocketAddr) -> Result<(OwnedFd, bool), String> {
    connect_with(what, address, |_| Ok(()))
}

/// The same with a socket of which somebody has set the options, and perhaps the address.
pub(super) fn connect_with(
    what: &str,
    address: SocketAddr,
    prepare: impl FnOnce(&OwnedFd) -> Result<(), String>,
) -> Result<(OwnedFd, bool), String> {
    let socket = new_socket(address).map_err(|errno| connect_error(what, address, errno))?;
    prepare(&socket).map_err(|error| format!("cannot connect to {what} {address}: {error}"))?;
    match connect(&socket, &address) {
        Ok(()) => Ok((socket, true)),
        Err(Errno::INPROGRESS) => Ok((socket, false)),
        Err(errno) => Err(connect_error(what, address, errno)),
    }
}

/// Why connecting failed.
pub(super) fn connect_error(what: &str, address: SocketAddr, errno: Errno) -> String {
    match errno {
        Errno::CONNREFUSED => format!(
            "nobody listens at {what} {address}: start the process that should, or choose another port"
        ),
        errno => format!("cannot connect to {what} {address}: {errno}"),
    }
}

fn listen_error(what: &str, address: SocketAddr, errno: Errno) -> String {
    match errno {
        Errno::ADDRINUSE => format!(
            "another process listens at {what} {address}: end it or choose another port; \
             `ss -tlpn sport = :{}` shows which",
            address.port()
        ),
        Errno::ACCESS => format!(
            "cannot listen at {what} {address}: ports below 1024 are for root; choose a higher one"
        ),
        Errno::ADDRNOTAVAIL => format!(
            "cannot listen at {what} {address}: no interface of this machine has that address; \
             `ip address` lists those that there are"
        ),
        errno => format!("cannot listen at {what} {address}: {errno}"),
    }
}

/// Makes an established connection between machines end when the other one is gone without a word: after
/// a minute without an answer.
pub(super) fn keep_alive(socket: &OwnedFd) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, Duration::from_secs(30))?;
    sockopt::set_tcp_keepintvl(socket, Duration::from_secs(10))?;
    sockopt::set_tcp_keepcnt(socket, 3)?;
    sockopt::set_tcp_user_timeout(socket, 60_000)
}

fn new_socket(address: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    socket_with(family, SocketType::STREAM, flags, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_allowed() {
        for text in ["192.0.2.1:80", "0.0.0.0:80", "[::]:80", "[2001:db8::1]:80"] {
            let address: SocketAddr = text.parse().unwrap();
            for error in [listen_at(address, 1).err(), connect_to(address).err()] {
                let error = error.unwrap();
                assert!(error.contains(text) && error.contains("127.0.0.1"), "{error}");
            }
        }
    }

    #[test]
    fn errors_name_the_address_and_the_remedy() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let error = listen_at(address, 1).unwrap_err();
        assert!(error.contains(&address.to_string()) && error.contains("ss -tlpn"), "{error}");
        assert!(connect_error("TCP", address, Errno::CONNREFUSED).contains("nobody listens"));
    }
}
