//! The socket on which the kernel is asked to change interfaces.
//!
//! Reference: netlink(7) (`NETLINK_EXT_ACK`, `NETLINK_CAP_ACK`).

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::InterfaceRequest;
use crate::message::{self, Body};

/// Room for one answer.
const DATAGRAM: usize = 16 << 10;
/// How many answers are read at a time.
const BATCH: usize = 64;

/// Asks the kernel to change interfaces; see the crate's text. Requests are told apart by numbers that
/// the caller chooses.
#[derive(Debug)]
pub struct Configurator {
    socket: Socket,
    sequence: u32,
    /// What was asked, by sequence number: whose it is, and what it says.
    asked: BTreeMap<u32, (u32, String)>,
    datagram: Vec<u8>,
}

impl Configurator {
    /// For the network namespace that the calling thread is in.
    ///
    /// # Errors
    /// Those of socket(2) and setsockopt(2).
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.set_non_blocking(true)?;
        socket.set_cap_ack(true)?;
        socket.set_ext_ack(true)?;
        socket.bind_auto()?;
        let datagram = Vec::with_capacity(DATAGRAM);
        Ok(Self { socket, sequence: 0, asked: BTreeMap::new(), datagram })
    }

    /// Readable when there is something for [`Configurator::read`].
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends a request; `number` comes back with the answer.
    ///
    /// # Errors
    /// A sentence: the kernel was not asked, and there will be no answer.
    pub fn send(&mut self, number: u32, request: &InterfaceRequest) -> Result<(), String> {
        let sequence = self.sequence.wrapping_add(1);
        let failed = |why: String| format!("{request} failed: {why}");
        let index = |name: &str| {
            rustix::net::netdevice::name_to_index(&self.socket, name)
                .map_err(|_| format!("there is no interface `{name}`: `ip link` lists them"))
        };
        let bytes = request.emit(sequence, index).map_err(failed)?;
        self.socket
            .send_to(&bytes, &SocketAddr::new(0, 0), 0)
            .map_err(|error| failed(error.to_string()))?;
        self.sequence = sequence;
        self.asked.insert(sequence, (number, request.to_string()));
        Ok(())
    }

    /// Reads the answers that are there, a limited number at a time, and appends them: the number of the
    /// request, and what came of it.
    ///
    /// # Errors
    /// Those of recvfrom(2) that last.
    pub fn read(&mut self, answers: &mut Vec<(u32, Result<(), String>)>) -> io::Result<()> {
        for _ in 0..BATCH {
            self.datagram.clear();
            match self.socket.recv_from(&mut self.datagram, 0) {
                Ok((_, from)) if from.port_number() != 0 => continue,
                Ok(_) => {}
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(()),
                    Some(libc::EINTR) => continue,
                    Some(libc::ENOBUFS) => {
                        self.give_up(answers);
                        continue;
                    }
                    _ => return Err(error),
                },
            }
            let asked = &mut self.asked;
            message::read(&self.datagram, |message| {
                if let Body::Answer { errno, text } = message.body
                    && let Some((number, what)) = asked.remove(&message.sequence)
                {
                    let refusal = (errno != 0).then(|| refusal(&what, errno, text));
                    answers.push((number, refusal.map_or(Ok(()), Err)));
                }
            });
        }
        Ok(())
    }

    /// Answers everything that is still open: what came of it is not known.
    pub fn give_up(&mut self, answers: &mut Vec<(u32, Result<(), String>)>) {
        for (_, (number, what)) in std::mem::take(&mut self.asked) {
            let error = format!("whether {what} succeeded is not known: the answer was lost");
            answers.push((number, Err(error)));
        }
    }
}

/// Why the kernel did not do it.
fn refusal(what: &str, errno: i32, text: Option<String>) -> String {
    let error = io::Error::from_raw_os_error(errno);
    match (errno, text) {
        (libc::EPERM, _) => format!(
            "{what} needs the capability CAP_NET_ADMIN: run as root, or grant it; `weft doctor` tells \
             what is missing here"
        ),
        (_, Some(text)) => format!("{what} failed: {text} ({error})"),
        (libc::ENODEV, None) => {
            format!("{what} failed: there is no such interface; `ip link` lists them")
        }
        (_, None) => format!("{what} failed: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};
    use weft_port::testing::{Namespace, privileged};

    use super::*;
    use crate::{InterfaceAddress, NewInterface};

    fn ask(configurator: &mut Configurator, request: &InterfaceRequest) -> Result<(), String> {
        configurator.send(7, request)?;
        let mut answers = Vec::new();
        while answers.is_empty() {
            let mut fds = [PollFd::from_borrowed_fd(configurator.fd(), PollFlags::IN)];
            poll(&mut fds, None).unwrap();
            configurator.read(&mut answers).unwrap();
        }
        assert_eq!((answers.len(), answers[0].0), (1, 7));
        answers.remove(0).1
    }

    fn create(interface: &str, kind: NewInterface) -> InterfaceRequest {
        InterfaceRequest::Create { interface: interface.to_owned(), kind }
    }

    fn address(text: &str, prefix_length: u8) -> InterfaceAddress {
        InterfaceAddress { ip: text.parse().unwrap(), prefix_length }
    }

    #[test]
    fn interfaces_are_made_changed_and_deleted() {
        if !privileged() {
            return;
        }
        let namespace = Namespace::new();
        let mut configurator = namespace.run(|| Configurator::open().unwrap());
        let interface = || "one".to_owned();
        for (request, shown) in [
            (create("one", NewInterface::Veth { peer: "two".to_owned() }), "veth"),
            (create("bridge", NewInterface::Bridge), "bridge"),
            (InterfaceRequest::SetMtu { interface: interface(), mtu: 1400 }, "mtu 1400"),
            (InterfaceRequest::SetUp { interface: interface(), up: true }, "MULTICAST,UP"),
            (
                InterfaceRequest::SetMaster {
                    interface: interface(),
                    master: Some("bridge".to_owned()),
                },
                "master bridge",
            ),
            (InterfaceRequest::SetMaster { interface: interface(), master: None }, "one@two"),
            (
                InterfaceRequest::AddAddress {
                    interface: interface(),
                    address: address("192.0.2.1", 24),
                },
                "inet 192.0.2.1/24",
            ),
            (
                InterfaceRequest::AddAddress {
                    interface: interface(),
                    address: address("2001:db8::1", 64),
                },
                "inet6 2001:db8::1/64",
            ),
            // Again.
            (
                InterfaceRequest::AddAddress {
                    interface: interface(),
                    address: address("192.0.2.1", 24),
                },
                "inet 192.0.2.1/24",
            ),
            (
                InterfaceRequest::AddAddress {
                    interface: interface(),
                    address: address("2001:db8::1", 64),
                },
                "inet6 2001:db8::1/64",
            ),
        ] {
            ask(&mut configurator, &request).unwrap();
            let list = namespace.run(|| {
                let output = std::process::Command::new("ip").args(["-d", "address"]).output();
                String::from_utf8(output.unwrap().stdout).unwrap()
            });
            assert!(list.contains(shown), "{request}: {list}");
        }
        // Not every kernel has these; one that has not says so.
        let vlan = NewInterface::Vlan { lower: interface(), id: 7 };
        for request in [create("nil", NewInterface::Dummy), create("one.7", vlan)] {
            if let Err(error) = ask(&mut configurator, &request) {
                assert!(error.contains("Unknown device type"), "{error}");
            }
        }
        for request in [
            InterfaceRequest::DeleteAddress {
                interface: interface(),
                address: address("192.0.2.1", 24),
            },
            InterfaceRequest::SetUp { interface: interface(), up: false },
            InterfaceRequest::Delete { interface: interface() },
        ] {
            ask(&mut configurator, &request).unwrap();
        }
        let gone = ask(&mut configurator, &InterfaceRequest::Delete { interface: interface() });
        assert!(gone.unwrap_err().contains("no such interface"));
    }

    #[test]
    fn refusals_are_sentences_and_carry_the_words_of_the_kernel() {
        if !privileged() {
            return;
        }
        let namespace = Namespace::new();
        let mut configurator = namespace.run(|| Configurator::open().unwrap());
        let mut error = |request| ask(&mut configurator, &request).unwrap_err();
        let nothing = || "nothing".to_owned();
        let text = error(InterfaceRequest::SetUp { interface: nothing(), up: true });
        assert!(text.contains("no such interface"), "{text}");
        let address = address("192.0.2.1", 24);
        let text = error(InterfaceRequest::AddAddress { interface: nothing(), address });
        assert!(text.contains("no interface `nothing`"), "{text}");
        let text = error(create("lo", NewInterface::Dummy));
        assert!(
            text.contains("making the interface `lo` failed") && text.contains("exists"),
            "{text}"
        );
        let text = error(InterfaceRequest::SetMtu { interface: "lo".to_owned(), mtu: u32::MAX });
        assert!(text.to_lowercase().contains("mtu"), "{text}");
        let text = error(create("sixteen-letters!", NewInterface::Dummy));
        assert!(text.contains("1 to 15 bytes"), "{text}");
        let lower = "lo".to_owned();
        let text = error(create("v", NewInterface::Vlan { lower, id: 4095 }));
        assert!(text.contains("1 to 4094"), "{text}");
    }
}
