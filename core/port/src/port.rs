//! The interface of every port, and how to open one.

use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd};

use weft_base::Packet;

use crate::ethernet::EthernetPort;
use crate::ip::IpPort;
use crate::tun::TunPort;
use crate::udp::UdpPort;
use crate::{Lost, OpenError, PortInfo, PortSpec, PortStatistics};

/// A place where packets enter and leave the process, in batches, without ever blocking.
pub trait Port: Send {
    /// What is known of it since it was opened.
    fn info(&self) -> &PortInfo;

    /// Readable when packets are waiting or the port is lost; writable when it takes packets.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Appends up to `max` waiting packets to `batch` with one system call, if the port has such a
    /// call; never more than 64. Nothing may be appended though something was waiting (it was
    /// counted and dropped): only `fd` tells when to try again. `meta.link` is set, `meta.port` and
    /// `meta.time` are left to the caller.
    ///
    /// # Errors
    /// The port is gone; what was appended before is still good.
    fn receive(&mut self, batch: &mut Vec<Packet>, max: usize) -> Result<(), Lost>;

    /// Sends from the front of `queue` until it is empty or the port takes no more for now. What is
    /// left has not been sent; packets that can never be sent are counted and removed.
    ///
    /// # Errors
    /// The port is gone; the queue holds what was not sent.
    fn transmit(&mut self, queue: &mut VecDeque<Packet>) -> Result<(), Lost>;

    /// What was moved and dropped so far, the kernel's own drops included.
    fn statistics(&mut self) -> &PortStatistics;
}

/// How to open ports, besides what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The kernel's receive buffer per socket, in bytes. The kernel charges memory, not payload:
    /// a 1,500-byte frame takes about 2,300 of them.
    pub receive_buffer: usize,
    /// Send past the queueing discipline of Ethernet interfaces. Faster, but rate limits and other
    /// kernel shaping do not see these packets.
    pub qdisc_bypass: bool,
    /// Ethernet ports take frames that are addressed to other hosts, too, as a bridge does.
    pub promiscuous: bool,
    /// Ethernet ports take what this host sends on the interface, too, as a capture does.
    pub outgoing: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { receive_buffer: 4 << 20, qdisc_bypass: false, promiscuous: false, outgoing: false }
    }
}

/// Opens the port that `spec` describes, in the network namespace of the calling thread.
///
/// # Errors
/// A sentence that says what is missing and how to mend it.
pub fn open(spec: &PortSpec, options: &Options) -> Result<Box<dyn Port>, OpenError> {
    let (descriptor, info) = open_descriptor(spec, options)?;
    adopt(spec, descriptor, info, options)
}

/// Opens the descriptor of a port and sets it up, without using it: what one process does for another
/// that may not. The other one calls [`adopt`].
///
/// # Errors
/// As for [`open`].
pub fn open_descriptor(
    spec: &PortSpec,
    options: &Options,
) -> Result<(OwnedFd, PortInfo), OpenError> {
    match spec {
        PortSpec::Ethernet { .. } => EthernetPort::open_descriptor(spec, options),
        PortSpec::Tap { .. } | PortSpec::Tun { .. } => TunPort::open_descriptor(spec),
        PortSpec::Udp { .. } => UdpPort::open_descriptor(spec, options),
        PortSpec::Ip { .. } => IpPort::open_descriptor(spec, options),
    }
}

/// Makes a port of a descriptor that [`open_descriptor`] opened elsewhere with the same `spec`, and of
/// what was said about it. It is checked that the descriptor is what `spec` says.
///
/// Neither this nor the use of the port needs a capability, or any system call beyond getsockopt(2),
/// getsockname(2), recvmmsg(2), write(2) (Ethernet), sendto(2) (UDP, IP) and, for TUN and TAP, `TUNGETIFF` of
/// ioctl(2), fcntl(2), read(2) and write(2), all on this descriptor. Of `options` only `promiscuous` matters.
///
/// # Errors
/// [`OpenError::NotThat`], and those of the system calls.
pub fn adopt(
    spec: &PortSpec,
    descriptor: OwnedFd,
    info: PortInfo,
    options: &Options,
) -> Result<Box<dyn Port>, OpenError> {
    Ok(match spec {
        PortSpec::Ethernet { .. } => {
            Box::new(EthernetPort::adopt(spec, descriptor, info, options)?)
        }
        PortSpec::Tap { .. } | PortSpec::Tun { .. } => {
            Box::new(TunPort::adopt(spec, descriptor, info)?)
        }
        PortSpec::Udp { .. } => Box::new(UdpPort::adopt(spec, descriptor, info)?),
        PortSpec::Ip { .. } => Box::new(IpPort::adopt(spec, descriptor, info)?),
    })
}
