//! The interface of every port, and how to open one.

use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd};

use weft_base::Packet;

use crate::ethernet::EthernetPort;
use crate::group;
use crate::ip::IpPort;
use crate::tun::TunPort;
use crate::udp::UdpPort;
use crate::xdp::XdpPort;
use crate::{Lost, OpenError, PortInfo, PortSpec, PortStatistics};

/// A place where packets enter and leave the process, in batches, without ever blocking.
pub trait Port: Send {
    /// What is known of it since it was opened.
    fn info(&self) -> &PortInfo;

    /// Readable when packets are waiting or the port is lost; writable when it takes packets.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Another descriptor that is readable when packets are waiting or the port is lost, of ports that have
    /// one.
    fn second_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Appends up to `max` waiting packets to `batch` with one system call, if the port has such a
    /// call; never more than 64. Nothing may be appended though something was waiting (it was
    /// counted and dropped): only `fd` and `second_fd` tell when to try again. `meta.link` is set, `meta.port` and
    /// `meta.time` are left to the caller.
    ///
    /// # Errors
    /// The port is gone; what was appended before is still good.
    fn receive(&mut self, batch: &mut Vec<Packet>, max: usize) -> Result<(), Lost>;

    /// Sends from the front of `queue` until it is empty or the port takes no more for now. What is
    /// left has not been sent; packets that can never be sent are counted and removed. A port is given the same
    /// queue each time, with what was left in front.
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
    let (descriptors, info) = open_descriptors(spec, options)?;
    adopt(spec, descriptors, info, options)
}

/// Opens the descriptors of a port and sets it up, without using it: what one process does for another
/// that may not. The other one calls [`adopt`]. The first one is a socket or device, and the only one but
/// of XDP ports and of UDP and IP ports of IPv6, whose second one is the socket that sends.
///
/// # Errors
/// As for [`open`].
pub fn open_descriptors(
    spec: &PortSpec,
    options: &Options,
) -> Result<(Vec<OwnedFd>, PortInfo), OpenError> {
    let (descriptor, info) = match spec {
        PortSpec::Ethernet { .. } => EthernetPort::open_descriptor(spec, options)?,
        PortSpec::Xdp { .. } => {
            let (descriptors, info) = XdpPort::open_descriptors(spec, options)?;
            return Ok((descriptors.into(), info));
        }
        PortSpec::Tap { .. } | PortSpec::Tun { .. } => TunPort::open_descriptor(spec)?,
        PortSpec::Udp { .. } => return UdpPort::open_descriptors(spec, options),
        PortSpec::Group { .. } => group::open_descriptor(spec, options)?,
        PortSpec::Ip { .. } => return IpPort::open_descriptors(spec, options),
    };
    Ok((vec![descriptor], info))
}

/// How many descriptors [`open_descriptors`] opens for an XDP port: the socket, the memory of its frames, and the packet
/// socket beside it.
pub const XDP_DESCRIPTORS: usize = 3;

/// Makes a port of descriptors that [`open_descriptors`] opened elsewhere with the same `spec`, and of
/// what was said about it. It is checked that they are what `spec` says, as far as they tell.
///
/// Neither this nor the use of the port needs a capability, or any system call beyond getsockopt(2),
/// getsockname(2), recvmmsg(2), write(2) (Ethernet), sendto(2) (UDP, IP; without an address over IPv6 and XDP),
/// connect(2) (UDP and IP over IPv6), fstat(2) and mmap(2) (XDP) and, for TUN and TAP, `TUNGETIFF` of ioctl(2), fcntl(2), read(2) and write(2), all on these
/// descriptors. Of `options` only `promiscuous` matters.
///
/// # Errors
/// [`OpenError::NotThat`], and those of the system calls.
pub fn adopt(
    spec: &PortSpec,
    descriptors: Vec<OwnedFd>,
    info: PortInfo,
    options: &Options,
) -> Result<Box<dyn Port>, OpenError> {
    Ok(match spec {
        PortSpec::Ethernet { .. } => {
            let [socket] = exactly(spec, descriptors)?;
            Box::new(EthernetPort::adopt(spec, socket, info, options)?)
        }
        PortSpec::Xdp { .. } => {
            let descriptors = exactly(spec, descriptors)?;
            Box::new(XdpPort::adopt(spec, descriptors, info, options)?)
        }
        PortSpec::Tap { .. } | PortSpec::Tun { .. } => {
            let [device] = exactly(spec, descriptors)?;
            Box::new(TunPort::adopt(spec, device, info)?)
        }
        PortSpec::Udp { .. } => Box::new(UdpPort::adopt(spec, descriptors, info)?),
        PortSpec::Group { .. } => {
            let [socket] = exactly(spec, descriptors)?;
            Box::new(group::adopt(spec, socket, info)?)
        }
        PortSpec::Ip { .. } => Box::new(IpPort::adopt(spec, descriptors, info)?),
    })
}

/// The socket of a port that receives, and the one that sends, if that is another.
pub(crate) fn one_or_two(
    spec: &PortSpec,
    mut descriptors: Vec<OwnedFd>,
    has_sender: bool,
) -> Result<(OwnedFd, Option<OwnedFd>), OpenError> {
    let sender = if has_sender { descriptors.pop() } else { None };
    if has_sender && sender.is_none() {
        return Err(OpenError::not_that(spec, "there is no descriptor"));
    }
    let [socket] = exactly(spec, descriptors)?;
    Ok((socket, sender))
}

/// As many descriptors as a port is made of.
fn exactly<const N: usize>(
    spec: &PortSpec,
    descriptors: Vec<OwnedFd>,
) -> Result<[OwnedFd; N], OpenError> {
    descriptors.try_into().map_err(|wrong: Vec<_>| {
        OpenError::not_that(spec, format!("there are {} descriptors, not {N}", wrong.len()))
    })
}
