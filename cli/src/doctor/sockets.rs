//! Receive buffers: how much of a burst a socket can hold.
//!
//! Reference: socket(7), `SO_RCVBUF` and `SO_RCVBUFFORCE`; Linux kernel,
//! Documentation/admin-guide/sysctl/net.rst (`rmem_max`).

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;

use rustix::net::sockopt;
use weft_port::datagrams;

use super::check::{Check, Subject};

const RECEIVE_BUFFER: Subject = Subject {
    name: "receive-buffer",
    purpose: "bursts of packets: what does not fit is lost",
    required: false,
};

const LIMIT: &str = "/proc/sys/net/core/rmem_max";

pub(super) fn checks() -> Vec<Check> {
    let wanted = weft_port::Options::default().receive_buffer;
    let limit = fs::read_to_string(LIMIT).ok().and_then(|text| text.trim().parse().ok());
    vec![receive_buffer(wanted, limit, granted(wanted).ok())]
}

/// The size that a socket gets when it asks for `wanted` bytes as ports do.
fn granted(wanted: usize) -> std::io::Result<usize> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    datagrams::set_receive_buffer(socket.as_fd(), wanted)?;
    // The kernel doubles what was asked for, to have room for its own records (socket(7)).
    Ok(sockopt::socket_recv_buffer_size(&socket)? / 2)
}

/// `limit` is net.core.rmem_max, `granted` what a socket got, both in bytes as far as they are known.
fn receive_buffer(wanted: usize, limit: Option<usize>, granted: Option<usize>) -> Check {
    let shown = limit.map_or("unknown".to_owned(), |bytes| bytes.to_string());
    match granted {
        Some(bytes) if bytes >= wanted && limit.is_none_or(|limit| limit < wanted) => {
            RECEIVE_BUFFER.ok(format!(
                "{bytes} bytes, beyond the limit net.core.rmem_max = {shown} thanks to \
                 CAP_NET_ADMIN (SO_RCVBUFFORCE)"
            ))
        }
        Some(bytes) if bytes >= wanted => {
            RECEIVE_BUFFER.ok(format!("{bytes} bytes; the limit net.core.rmem_max is {shown}"))
        }
        granted => RECEIVE_BUFFER.degraded(
            format!(
                "{} of {wanted} bytes; the limit net.core.rmem_max is {shown}",
                granted.map_or("unknown".to_owned(), |bytes| bytes.to_string())
            ),
            format!(
                "run `sysctl -w net.core.rmem_max={wanted}` as root; root of the machine itself \
                 (CAP_NET_ADMIN, SO_RCVBUFFORCE) needs no higher limit"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    #[test]
    fn a_buffer_of_the_wanted_size_is_well_however_it_came_about() {
        let raised = receive_buffer(4096, Some(8192), Some(4096));
        assert_eq!(raised.found, "4096 bytes; the limit net.core.rmem_max is 8192");
        let forced = receive_buffer(4096, Some(1024), Some(4096));
        assert!(forced.found.contains("SO_RCVBUFFORCE"), "{forced:?}");
        assert_eq!((raised.state, forced.state), (State::Ok, State::Ok));
    }

    #[test]
    fn a_smaller_buffer_is_mended_by_the_limit() {
        let small = receive_buffer(4096, Some(1024), Some(1024));
        assert_eq!(small.state, State::Degraded);
        assert_eq!(small.found, "1024 of 4096 bytes; the limit net.core.rmem_max is 1024");
        assert!(small.remedy.starts_with("run `sysctl -w net.core.rmem_max=4096`"), "{small:?}");
        assert_eq!(receive_buffer(4096, None, None).state, State::Degraded);
    }

    #[test]
    fn a_socket_never_gets_more_than_it_asked_for_or_the_least_there_is() {
        let wanted = 64 * 1024;
        assert!((1..=wanted).contains(&granted(wanted).unwrap()));
    }
}
