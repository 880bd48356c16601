//! Generic netlink: asking parts of the kernel whose numbers it gives out when it starts.
//!
//! Reference: Linux kernel, Documentation/userspace-api/netlink/intro.rst; genetlink constants from
//! linux/genetlink.h.

use std::io;
use std::ops::ControlFlow;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer,
};
use netlink_sys::protocols::NETLINK_GENERIC;

use crate::exchange::Exchange;
use crate::message;
use crate::programs::Refusal;

/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Bytes of `struct genlmsghdr`.
const COMMAND: usize = 4;
/// `GENL_ID_CTRL`: who knows the numbers of all families.
const CONTROLLER: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// `NLA_F_NESTED`: the value consists of attributes.
const NESTED: u16 = 0x8000;

/// Attributes of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes(Vec<u8>);

impl Attributes {
    /// Adds one with a value of fewer than 64 KiB.
    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        // Nothing that is asked here is nearly as long.
        let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Their bytes.
    #[cfg(test)]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Adds one that consists of others.
    pub(crate) fn with_nested(self, kind: u16, inner: &Self) -> Self {
        self.with(kind | NESTED, &inner.0)
    }
}

/// What to ask a family.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) command: u8,
    /// Whether the answer is a list.
    pub(crate) list: bool,
    pub(crate) attributes: Attributes,
}

impl Request {
    /// The bytes of it.
    fn emit(&self, family: u16, sequence: u32) -> Vec<u8> {
        let len = HEADER + COMMAND + self.attributes.0.len();
        let flags = NLM_F_REQUEST | if self.list { NLM_F_DUMP } else { NLM_F_ACK };
        let mut bytes = Vec::with_capacity(len);
        bytes.extend(u32::try_from(len).unwrap_or(u32::MAX).to_ne_bytes());
        bytes.extend(family.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        // The version is 1 of all families that are asked.
        bytes.extend([self.command, 1, 0, 0]);
        bytes.extend(&self.attributes.0);
        bytes
    }
}

/// A socket to ask families, for the network namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Generic {
    exchange: Exchange,
}

impl Generic {
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self { exchange: Exchange::open(NETLINK_GENERIC)? })
    }

    /// The index of an interface.
    pub(crate) fn index(&self, interface: &str) -> io::Result<u32> {
        Ok(rustix::net::netdevice::name_to_index(&self.exchange.socket, interface)?)
    }

    /// The number of a family; `ENOENT` if the kernel has no such family.
    pub(crate) fn family(&mut self, name: &str) -> Result<u16, Refusal> {
        let name = [name.as_bytes(), &[0]].concat();
        let attributes = Attributes::default().with(CTRL_ATTR_FAMILY_NAME, &name);
        let request = Request { command: CTRL_CMD_GETFAMILY, list: false, attributes };
        let told = self.ask(CONTROLLER, &request)?;
        let number =
            told.iter().flat_map(|one| message::attributes(one)).find_map(|(kind, value)| {
                let value = value.first_chunk().filter(|_| kind == CTRL_ATTR_FAMILY_ID)?;
                Some(u16::from_ne_bytes(*value))
            });
        number.ok_or_else(|| Refusal::new(libc::ENOENT, None))
    }

    /// Sends a request and returns what the kernel tells until the answer is complete: the attributes of each
    /// message.
    pub(crate) fn ask(&mut self, family: u16, request: &Request) -> Result<Vec<Vec<u8>>, Refusal> {
        let mut told = Vec::new();
        let emit = |sequence| request.emit(family, sequence);
        self.exchange.ask(emit, |datagram, sequence| read(datagram, sequence, &mut told))?;
        Ok(told)
    }
}

/// Reads one datagram of the answer to the request with this number: what is told, and whether that was all.
pub(crate) fn read(
    datagram: &[u8],
    sequence: u32,
    told: &mut Vec<Vec<u8>>,
) -> ControlFlow<Result<(), Refusal>> {
    let mut rest = datagram;
    while let Ok(one) = NetlinkBuffer::new_checked(rest) {
        let len = one.length() as usize;
        // The end of an answer that an earlier error left unread is passed over.
        if one.sequence_number() == sequence {
            match one.message_type() {
                NLMSG_DONE => return ControlFlow::Break(Ok(())),
                NLMSG_ERROR => {
                    return ControlFlow::Break(match message::answer(one.flags(), one.payload()) {
                        Some((0, _)) => Ok(()),
                        Some((errno, text)) => Err(Refusal::new(errno, text)),
                        None => Err(Refusal::new(libc::EBADMSG, None)),
                    });
                }
                _ => told.extend(one.payload().get(COMMAND..).map(<[u8]>::to_vec)),
            }
        }
        // Messages begin at multiples of four bytes.
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_numbers_and_unknown_ones_are_refused() {
        let mut generic = Generic::open().unwrap();
        assert_eq!(generic.family("nlctrl").unwrap(), CONTROLLER);
        assert_eq!(generic.family("weft-none").unwrap_err().code(), Some(libc::ENOENT));
        assert_eq!(generic.family("nlctrl").unwrap(), CONTROLLER);
    }

    #[test]
    fn attributes_are_read_as_they_are_written() {
        let inner = Attributes::default().with(7, b"abcde");
        let all = Attributes::default().with(1, &5_u32.to_ne_bytes()).with_nested(2, &inner);
        let read: Vec<_> = message::attributes(&all.0).collect();
        assert_eq!(read[0], (1, &5_u32.to_ne_bytes()[..]));
        assert_eq!(read[1].0, 2);
        assert_eq!(message::attributes(read[1].1).collect::<Vec<_>>(), [(7, &b"abcde"[..])]);
    }
}
