//! Where programs hang at an interface: the classifiers of traffic control, and XDP.
//!
//! Reference: RFC 3549 §3.1 and §3.2, rtnetlink(7), tc(8), tc-bpf(8); constants from linux/pkt_sched.h,
//! linux/pkt_cls.h and linux/if_link.h.

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL};
use netlink_packet_route::link::LinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHeader, TcMessage, TcOption};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;

use crate::exchange::Exchange;
use crate::message::{self, Body};

/// `TC_H_CLSACT`: the parent of the queueing discipline `clsact`.
const CLSACT_PARENT: u32 = 0xffff_fff1;
/// `TC_H_MAKE(TC_H_CLSACT, 0)`: its handle.
const CLSACT_HANDLE: u32 = 0xffff_0000;
const TCA_BPF_FD: u16 = 6;
pub(crate) const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
pub(crate) const TCA_BPF_ID: u16 = 11;
/// The return value of the program is the verdict.
const TCA_BPF_FLAG_ACT_DIRECT: u32 = 1;

/// Where in its interface a packet meets a program of traffic control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Packets that the interface receives: what is dropped got lost on the way, as on a real link.
    /// Packet sockets for all protocols (a capture) and XDP programs still see it; packet sockets
    /// for one protocol and the network stack do not.
    Ingress,
    /// Packets that the interface is about to send. A packet socket learns of each drop (`ENOBUFS`),
    /// as does a UDP socket with `IP_RECVERR`; a packet socket with `PACKET_QDISC_BYPASS` goes past
    /// the hook.
    Egress,
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Ingress, Self::Egress];

    /// `TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)` or `…EGRESS)`.
    const fn parent(self) -> u32 {
        match self {
            Self::Ingress => 0xffff_fff2,
            Self::Egress => 0xffff_fff3,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        })
    }
}

/// The place of a classifier. Lower priorities run first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The number of the interface.
    pub interface: u32,
    /// The hook.
    pub direction: Direction,
    /// 1 to 65535.
    pub priority: u16,
    /// Which one of this priority.
    pub handle: u32,
}

/// A classifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classifier {
    /// Its kind: `bpf`, `u32`, `flower` and so on.
    pub kind: String,
    /// See [`Place::priority`].
    pub priority: u16,
    /// See [`Place::handle`].
    pub handle: u32,
    /// What whoever attached it called it, if it is an eBPF program.
    pub name: Option<String>,
    /// The kernel's number of the eBPF program.
    pub program: Option<u32>,
}

/// How an XDP program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XdpMode {
    /// By the driver.
    Driver,
    /// By the network stack, behind the driver (generic, `skb`).
    Generic,
    /// By the hardware.
    Hardware,
}

impl XdpMode {
    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Generic => "generic",
            Self::Hardware => "hardware",
        }
    }
}

/// An XDP program of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XdpProgram {
    /// How it is run.
    pub mode: XdpMode,
    /// The kernel's number of the program.
    pub program: u32,
}

/// The kernel's refusal of a request.
#[derive(Debug)]
pub struct Refusal {
    error: io::Error,
    explanation: Option<String>,
}

impl Refusal {
    /// What an answer says.
    pub(crate) fn new(errno: i32, explanation: Option<String>) -> Self {
        Self { error: io::Error::from_raw_os_error(errno), explanation }
    }

    /// The number of the error, as in errno(3).
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.error.raw_os_error()
    }
}

impl fmt::Display for Refusal {
    /// What the kernel said, in its own words if it used any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.explanation {
            Some(explanation) => write!(f, "{explanation}: {}", self.error),
            None => self.error.fmt(f),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self { error, explanation: None }
    }
}

/// A socket to ask of the programs of interfaces, for the network namespace in which it was opened.
#[derive(Debug)]
pub struct TrafficControl {
    exchange: Exchange,
}

impl TrafficControl {
    /// For the network namespace that the calling thread is in.
    ///
    /// # Errors
    /// Those of socket(2) and setsockopt(2).
    pub fn open() -> io::Result<Self> {
        Ok(Self { exchange: Exchange::open(NETLINK_ROUTE)? })
    }

    /// Gives an interface the queueing discipline below which classifiers hang, if it has none. By itself
    /// it does nothing.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn add_clsact(&mut self, interface: u32) -> Result<(), Refusal> {
        let mut message = about(interface, CLSACT_HANDLE, CLSACT_PARENT, 0);
        message.attributes.push(TcAttribute::Kind("clsact".to_owned()));
        let message = RouteNetlinkMessage::NewQueueDiscipline(message);
        match self.ask(message, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL) {
            Err(refusal) if refusal.code() == Some(libc::EEXIST) => Ok(()),
            result => result.map(drop),
        }
    }

    /// Hangs a program at a place that nobody has, in direct-action mode. It stays there until it is
    /// deleted or the interface goes.
    ///
    /// # Errors
    /// What the kernel says: `EEXIST` if the place is taken.
    pub fn add_program(
        &mut self,
        place: Place,
        name: &str,
        program: BorrowedFd<'_>,
    ) -> Result<(), Refusal> {
        let mut zero_ended = name.as_bytes().to_vec();
        zero_ended.push(0);
        let option = |kind, value| TcOption::Other(DefaultNla::new(kind, value));
        let mut message = place.message();
        message.attributes = vec![
            TcAttribute::Kind("bpf".to_owned()),
            TcAttribute::Options(vec![
                option(TCA_BPF_FD, program.as_raw_fd().to_ne_bytes().to_vec()),
                option(TCA_BPF_NAME, zero_ended),
                option(TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT.to_ne_bytes().to_vec()),
            ]),
        ];
        let message = RouteNetlinkMessage::NewTrafficFilter(message);
        self.ask(message, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }

    /// Deletes the classifier at a place.
    ///
    /// # Errors
    /// What the kernel says: `ENOENT`, or `EINVAL` without the queueing discipline, if there is none.
    pub fn delete(&mut self, place: Place) -> Result<(), Refusal> {
        self.ask(RouteNetlinkMessage::DelTrafficFilter(place.message()), NLM_F_ACK).map(drop)
    }

    /// The classifier at a place, if there is one.
    ///
    /// # Errors
    /// What the kernel says: `ENODEV` if there is no such interface.
    pub fn classifier(&mut self, place: Place) -> Result<Option<Classifier>, Refusal> {
        let request = RouteNetlinkMessage::GetTrafficFilter(place.message());
        match self.ask(request, NLM_F_ACK) {
            Ok(told) => Ok(told.into_iter().find_map(classifier)),
            // `EINVAL` when not even the queueing discipline is there.
            Err(refusal) if matches!(refusal.code(), Some(libc::ENOENT | libc::EINVAL)) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// The classifiers of a hook, whoever attached them, in the order in which they run.
    ///
    /// # Errors
    /// What the kernel says. It does not say that there is no such interface, but that there is nothing.
    pub fn classifiers(
        &mut self,
        interface: u32,
        direction: Direction,
    ) -> Result<Vec<Classifier>, Refusal> {
        let message = about(interface, 0, direction.parent(), 0);
        let told = self.ask(RouteNetlinkMessage::GetTrafficFilter(message), NLM_F_DUMP)?;
        Ok(told.into_iter().filter_map(classifier).collect())
    }

    /// The XDP programs of an interface.
    ///
    /// # Errors
    /// What the kernel says: `ENODEV` if there is no such interface.
    pub fn xdp(&mut self, interface: u32) -> Result<Vec<XdpProgram>, Refusal> {
        let mut link = LinkMessage::default();
        link.header.index = interface;
        let told = self.ask(RouteNetlinkMessage::GetLink(link), NLM_F_ACK)?;
        let programs = told.into_iter().find_map(|body| match body {
            Body::Link(link) => Some(link.xdp),
            _ => None,
        });
        Ok(programs.unwrap_or_default())
    }

    /// Sends a request and returns what the kernel tells until the answer is complete.
    fn ask(&mut self, request: RouteNetlinkMessage, flags: u16) -> Result<Vec<Body>, Refusal> {
        let mut told = Vec::new();
        let emit = |sequence| message::request(request, flags, sequence);
        self.exchange.ask(emit, |datagram, sequence| read(datagram, sequence, &mut told))?;
        Ok(told)
    }
}

/// Reads one datagram of the answer to the request with this number: what is told, and whether that was all.
fn read(datagram: &[u8], sequence: u32, told: &mut Vec<Body>) -> ControlFlow<Result<(), Refusal>> {
    let mut end = ControlFlow::Continue(());
    message::read(datagram, |message| match message.body {
        // The end of an answer that an earlier error left unread.
        _ if message.sequence != sequence => {}
        Body::Done | Body::Answer { errno: 0, .. } => end = ControlFlow::Break(Ok(())),
        Body::Answer { errno, text } => end = ControlFlow::Break(Err(Refusal::new(errno, text))),
        body => told.push(body),
    });
    end
}

impl Place {
    /// A message about the classifier there.
    fn message(self) -> TcMessage {
        let protocol = u32::from((libc::ETH_P_ALL as u16).to_be());
        let info = u32::from(self.priority) << 16 | protocol;
        about(self.interface, self.handle, self.direction.parent(), info)
    }
}

fn classifier(body: Body) -> Option<Classifier> {
    match body {
        Body::Classifier(classifier) => Some(classifier),
        _ => None,
    }
}

/// `struct tcmsg` of linux/rtnetlink.h.
fn about(interface: u32, handle: u32, parent: u32, info: u32) -> TcMessage {
    let mut message = TcMessage::default();
    message.header = TcHeader {
        family: AddressFamily::Unspec,
        // The kernel's numbers of interfaces are positive.
        index: interface.cast_signed(),
        handle: handle.into(),
        parent: parent.into(),
        info,
    };
    message
}

#[cfg(test)]
mod tests {
    use weft_port::testing::{Namespace, privileged};

    use super::*;

    fn index(namespace: &Namespace, name: &str) -> u32 {
        namespace.run(|| {
            let output =
                std::process::Command::new("ip").args(["-o", "link", "show", name]).output();
            let text = String::from_utf8(output.unwrap().stdout).unwrap();
            text.split(':').next().and_then(|number| number.parse().ok()).unwrap()
        })
    }

    #[test]
    fn what_others_hang_at_an_interface_is_told() {
        if !privileged() {
            return;
        }
        let namespace = Namespace::new();
        namespace.ip("link add name one type veth peer name two");
        let one = index(&namespace, "one");
        let mut control = namespace.run(|| TrafficControl::open().unwrap());
        for direction in Direction::ALL {
            assert!(control.classifiers(one, direction).unwrap().is_empty());
        }
        control.add_clsact(one).unwrap();
        control.add_clsact(one).unwrap();
        assert!(control.classifiers(one, Direction::Ingress).unwrap().is_empty());
        namespace.run(|| {
            // A classic BPF program, which every kernel with such classifiers takes: return 0.
            let words = "filter add dev one egress prio 7 handle 3 bpf bytecode";
            let words = words.split(' ').chain(["1,6 0 0 0,"]);
            let status = std::process::Command::new("tc").args(words).status();
            assert!(status.unwrap().success());
        });
        let found = control.classifiers(one, Direction::Egress).unwrap();
        assert_eq!(
            found,
            [Classifier {
                kind: "bpf".to_owned(),
                priority: 7,
                handle: 3,
                name: None,
                program: None
            }]
        );
        assert!(control.classifiers(one, Direction::Ingress).unwrap().is_empty());
        let place = Place { interface: one, direction: Direction::Egress, priority: 7, handle: 3 };
        assert_eq!(control.classifier(place).unwrap().as_ref(), found.first());
        let elsewhere = Place { direction: Direction::Ingress, ..place };
        assert_eq!(control.classifier(elsewhere).unwrap(), None);
        assert!(control.xdp(one).unwrap().is_empty());
        control.delete(place).unwrap();
        assert_eq!(control.delete(place).unwrap_err().code(), Some(libc::ENOENT));
        assert!(control.classifiers(one, Direction::Egress).unwrap().is_empty());
    }

    #[test]
    fn the_kernel_refuses_what_makes_no_sense() {
        let mut control = TrafficControl::open().unwrap();
        let refusal = control.xdp(i32::MAX.cast_unsigned()).unwrap_err();
        assert_eq!(refusal.code(), Some(libc::ENODEV));
        // The socket goes on to work: the loopback interface has number 1 in every namespace.
        assert!(control.xdp(1).is_ok());
    }
}
