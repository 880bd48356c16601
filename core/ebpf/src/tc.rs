//! The traffic control hooks of an interface: one classifier, attached so that it stays.
//!
//! Reference: tc(8), tc-bpf(8); constants from linux/pkt_sched.h, linux/pkt_cls.h and
//! linux/rtnetlink.h.
//!
//! The classifier hangs below a `clsact` queueing discipline and belongs to the interface, not to
//! the process that attached it: it lives until it is detached or the interface goes, as it does when
//! its namespace is deleted.

use std::ffi::CString;
use std::fmt;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::LossError;
use crate::netlink::{Refusal, Request, Socket, array, attribute};

/// Where in its interface a packet meets the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// `TC_H_CLSACT`: the parent of the queueing discipline itself.
const CLSACT_PARENT: u32 = 0xffff_fff1;
/// `TC_H_MAKE(TC_H_CLSACT, 0)`: its handle.
const CLSACT_HANDLE: u32 = 0xffff_0000;

/// Which classifier of the hook is ours. Lower priorities run first; the number is one that nobody
/// chooses by accident.
const PRIORITY: u32 = 0x7766;
const HANDLE: u32 = 1;

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
const TCA_BPF_ID: u16 = 11;
/// The return value of the program is the verdict.
const TCA_BPF_FLAG_ACT_DIRECT: u32 = 1;

/// Length of `struct tcmsg`.
const TCMSG_LEN: usize = 20;

/// One hook of one interface.
#[derive(Debug)]
pub(crate) struct Hook {
    socket: Socket,
    interface: String,
    index: u32,
    direction: Direction,
}

impl Hook {
    /// The hook of an interface in the network namespace of the calling thread. It keeps meaning
    /// this interface when the thread enters another namespace.
    pub(crate) fn open(interface: &str, direction: Direction) -> Result<Self, LossError> {
        let index = interface_index(interface)
            .ok_or_else(|| LossError::NoInterface { interface: interface.to_owned() })?;
        let socket = Socket::open().map_err(|error| LossError::Refused {
            action: "open a netlink socket",
            detail: error.to_string(),
        })?;
        Ok(Self { socket, interface: interface.to_owned(), index, direction })
    }

    /// Attaches `program` under `name`.
    pub(crate) fn attach(&mut self, program: BorrowedFd<'_>, name: &str) -> Result<(), LossError> {
        self.add_clsact()?;
        let mut name = name.as_bytes().to_vec();
        name.push(0);
        let request = self
            .filter_request(libc::RTM_NEWTFILTER, libc::NLM_F_CREATE | libc::NLM_F_EXCL)
            .attribute(TCA_KIND, b"bpf\0")
            .nested(TCA_OPTIONS, |options| {
                options
                    .attribute(TCA_BPF_FD, &program.as_raw_fd().to_ne_bytes())
                    .attribute(TCA_BPF_NAME, &name)
                    .attribute(TCA_BPF_FLAGS, &TCA_BPF_FLAG_ACT_DIRECT.to_ne_bytes())
            });
        match self.socket.request(request) {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.code() == Some(libc::EEXIST) => Err(self.already_attached()),
            Err(refusal) => Err(self.sort("attach a traffic control classifier", &refusal)),
        }
    }

    /// Identifier of the attached program.
    pub(crate) fn program_id(&mut self, name: &str) -> Result<u32, LossError> {
        let request = self.filter_request(libc::RTM_GETTFILTER, 0);
        let answer = match self.socket.request(request) {
            Ok(answer) => answer,
            Err(refusal) if is_absent(&refusal) => return Err(self.not_attached()),
            Err(refusal) => return Err(self.sort("look up a classifier", &refusal)),
        };
        parse_filter(&answer, name).ok_or_else(|| self.not_attached())
    }

    /// Detaches the program that was attached under `name`. The queueing discipline stays: it does
    /// nothing by itself, and others may use it by now.
    pub(crate) fn detach(&mut self, name: &str) -> Result<(), LossError> {
        self.program_id(name)?;
        let request = self.filter_request(libc::RTM_DELTFILTER, 0);
        match self.socket.request(request) {
            Ok(_) => Ok(()),
            Err(refusal) if is_absent(&refusal) => Err(self.not_attached()),
            Err(refusal) => Err(self.sort("detach a traffic control classifier", &refusal)),
        }
    }

    fn add_clsact(&mut self) -> Result<(), LossError> {
        let request = Request::new(libc::RTM_NEWQDISC, libc::NLM_F_CREATE | libc::NLM_F_EXCL)
            .fixed(&tcmsg(self.index, CLSACT_HANDLE, CLSACT_PARENT, 0))
            .attribute(TCA_KIND, b"clsact\0");
        match self.socket.request(request) {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.code() == Some(libc::EEXIST) => Ok(()),
            Err(refusal) => Err(self.sort("add a clsact queueing discipline", &refusal)),
        }
    }

    /// A request about our classifier.
    fn filter_request(&self, message_type: u16, flags: i32) -> Request {
        let protocol = u32::from((libc::ETH_P_ALL as u16).to_be());
        let info = PRIORITY << 16 | protocol;
        let message = tcmsg(self.index, HANDLE, self.direction.parent(), info);
        Request::new(message_type, flags).fixed(&message)
    }

    /// Sorts a refusal by what can be done about it.
    fn sort(&self, action: &'static str, refusal: &Refusal) -> LossError {
        match refusal.code() {
            Some(libc::EPERM) => LossError::NotPermitted { action },
            Some(libc::ENODEV) => LossError::NoInterface { interface: self.interface.clone() },
            Some(libc::ENOENT | libc::EOPNOTSUPP) => {
                LossError::NotSupported { action, detail: refusal.detail() }
            }
            _ => LossError::Refused { action, detail: refusal.detail() },
        }
    }

    fn already_attached(&self) -> LossError {
        LossError::AlreadyAttached { interface: self.interface.clone(), direction: self.direction }
    }

    fn not_attached(&self) -> LossError {
        LossError::NotAttached { interface: self.interface.clone(), direction: self.direction }
    }
}

/// Whether the kernel says that there is no such classifier. It says EINVAL when not even the
/// queueing discipline is there.
fn is_absent(refusal: &Refusal) -> bool {
    matches!(refusal.code(), Some(libc::ENOENT | libc::EINVAL))
}

/// `struct tcmsg` of linux/rtnetlink.h.
fn tcmsg(index: u32, handle: u32, parent: u32, info: u32) -> [u8; TCMSG_LEN] {
    let mut bytes = [0; TCMSG_LEN]; // The first four bytes, family and padding, stay zero.
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..12].copy_from_slice(&handle.to_ne_bytes());
    bytes[12..16].copy_from_slice(&parent.to_ne_bytes());
    bytes[16..20].copy_from_slice(&info.to_ne_bytes());
    bytes
}

/// The identifier of the program in an `RTM_NEWTFILTER` message, if it is a BPF classifier with this
/// name.
fn parse_filter(message: &[u8], name: &str) -> Option<u32> {
    let attributes = message.get(TCMSG_LEN..)?;
    if attribute(attributes, TCA_KIND)? != b"bpf\0" {
        return None;
    }
    let options = attribute(attributes, TCA_OPTIONS)?;
    let found = attribute(options, TCA_BPF_NAME)?;
    if found.strip_suffix(&[0]).unwrap_or(found) != name.as_bytes() {
        return None;
    }
    array(attribute(options, TCA_BPF_ID)?, 0).map(u32::from_ne_bytes)
}

fn interface_index(interface: &str) -> Option<u32> {
    let name = CString::new(interface).ok()?;
    // SAFETY: the pointer is to a string that ends with zero and outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => None,
        index => Some(index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io;

    fn sorted(code: i32) -> LossError {
        let hook = Hook::open("lo", Direction::Egress).unwrap();
        hook.sort("try", &Refusal::from(io::Error::from_raw_os_error(code)))
    }

    #[test]
    fn refusals_are_sorted_by_what_can_be_done() {
        assert!(matches!(sorted(libc::EPERM), LossError::NotPermitted { action: "try" }));
        assert!(matches!(sorted(libc::ENODEV), LossError::NoInterface { .. }));
        assert!(matches!(sorted(libc::ENOENT), LossError::NotSupported { .. }));
        assert!(matches!(sorted(libc::EINVAL), LossError::Refused { .. }));
    }

    #[test]
    fn a_missing_interface_is_named() {
        for name in ["no-such-link", "", "a name longer than any interface", "zero\0inside"] {
            let error = Hook::open(name, Direction::Ingress).unwrap_err();
            assert!(matches!(&error, LossError::NoInterface { interface } if interface == name));
        }
    }

    /// The body of a message about a classifier with this kind, name and program.
    fn filter(kind: &[u8], name: &[u8], id: u32) -> Vec<u8> {
        let body = [0; TCMSG_LEN];
        let request = Request::new(libc::RTM_NEWTFILTER, 0).fixed(&body).attribute(TCA_KIND, kind);
        let request = request.nested(TCA_OPTIONS, |options| {
            options.attribute(TCA_BPF_NAME, name).attribute(TCA_BPF_ID, &id.to_ne_bytes())
        });
        request.into_body()
    }

    #[test]
    fn only_our_own_classifier_is_recognised() {
        assert_eq!(parse_filter(&filter(b"bpf\0", b"weft_loss\0", 7), "weft_loss"), Some(7));
        assert_eq!(parse_filter(&filter(b"bpf\0", b"weft_lossy\0", 7), "weft_loss"), None);
        assert_eq!(parse_filter(&filter(b"u32\0", b"weft_loss\0", 7), "weft_loss"), None);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_ignored(bytes: Vec<u8>) {
            let _ = parse_filter(&bytes, "weft_loss");
        }

        #[test]
        fn a_cut_answer_has_no_program(cut: prop::sample::Index) {
            let whole = filter(b"bpf\0", b"weft_loss\0", 7);
            prop_assert_eq!(parse_filter(&whole[..cut.index(whole.len())], "weft_loss"), None);
        }
    }
}
