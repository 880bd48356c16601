//! TUN and TAP ports: the other end of a network interface of the kernel.
//!
//! What the kernel sends out of the interface is received here, and what is transmitted here comes
//! in through the interface. The interface is made and set up if necessary, and vanishes with the
//! port unless it was made persistent beforehand. One system call moves one packet: the device has no batches.
//!
//! Reference: Linux kernel, Documentation/networking/tuntap.rst.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use weft_base::Packet;

use crate::datagrams::BATCH;
use crate::sys::interface;
use crate::sys::tun::{self, Kind};
use crate::{Lost, OpenError, Port, PortDrop, PortInfo, PortSpec, PortStatistics};

/// What an Ethernet frame may have besides the MTU: header and one VLAN tag.
const FRAME_OVERHEAD: usize = 14 + 4;

pub(crate) struct TunPort {
    device: File,
    name: String,
    info: PortInfo,
    /// Bytes to reserve for a packet.
    room: usize,
    statistics: PortStatistics,
}

impl TunPort {
    /// Opens the port that `spec`, a TUN or TAP port, describes.
    #[cfg(test)]
    pub(crate) fn open(spec: &PortSpec) -> Result<Self, OpenError> {
        let (device, info) = Self::open_descriptor(spec)?;
        Self::adopt(spec, device, info)
    }

    /// Opens the device, attaches it to its interface and sets that up, for which privileges are needed.
    pub(crate) fn open_descriptor(spec: &PortSpec) -> Result<(OwnedFd, PortInfo), OpenError> {
        let (name, kind) = parts(spec);
        let device = tun::open().map_err(|error| open_error(spec, error))?;
        tun::attach(&device, name, kind).map_err(|error| attach_error(spec, name, error))?;
        let info = set_up(name, kind).map_err(OpenError::system(spec, "ioctl"))?;
        Ok((device.into(), info))
    }

    /// Makes a port of a device that is open and attached, after a look at it.
    pub(crate) fn adopt(
        spec: &PortSpec,
        device: OwnedFd,
        info: PortInfo,
    ) -> Result<Self, OpenError> {
        let (name, kind) = parts(spec);
        let device = File::from(device);
        let attached = tun::attached(&device).map_err(|error| {
            OpenError::not_that(
                spec,
                format!("it is no such device, or attached to none ({error})"),
            )
        })?;
        if attached != (name.to_owned(), kind) {
            return Err(OpenError::not_that(spec, format!("it is attached to `{}`", attached.0)));
        }
        let flags = fcntl_getfl(&device).map_err(OpenError::system(spec, "fcntl"))?;
        if !flags.contains(OFlags::NONBLOCK) {
            return Err(OpenError::not_that(spec, "reading it would block"));
        }
        let room = info.mtu + FRAME_OVERHEAD;
        let statistics = PortStatistics::default();
        Ok(Self { device, name: name.to_owned(), info, room, statistics })
    }

    /// The sentence for a device that answers with `errno`, if that means it is gone.
    fn lost(&self, errno: Errno) -> Option<Lost> {
        let name = self.name.clone();
        match errno {
            Errno::BADFD => Some(Lost::Deleted { name }),
            Errno::IO => Some(Lost::Down { name }),
            _ => None,
        }
    }
}

/// Name and kind of the interface.
fn parts(spec: &PortSpec) -> (&str, Kind) {
    match spec {
        PortSpec::Tun { name } => (name, Kind::Tun),
        PortSpec::Tap { name } => (name, Kind::Tap),
        _ => unreachable!("only TUN and TAP ports are opened here"),
    }
}

/// Sets the interface up and looks at it.
fn set_up(name: &str, kind: Kind) -> io::Result<PortInfo> {
    let flags = SocketFlags::CLOEXEC;
    let socket: OwnedFd = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    interface::set_up(socket.as_fd(), name)?;
    let found = interface::look_up(socket.as_fd(), name)?;
    let mac = match kind {
        Kind::Tun => [0; 6],
        Kind::Tap => other_end(found.mac.unwrap_or_default()),
    };
    Ok(PortInfo { mac, mtu: found.mtu, local: None })
}

/// The Ethernet address for this end of a TAP interface whose kernel end has `mac`: two stations on
/// one wire need two addresses. Locally administered, unicast, and different in the last bit.
fn other_end(mac: [u8; 6]) -> [u8; 6] {
    let [first, middle @ .., last] = mac;
    let mut other = [0; 6];
    other[0] = (first | 0x02) & !0x01;
    other[1..5].copy_from_slice(&middle);
    other[5] = last ^ 0x01;
    other
}

fn open_error(spec: &PortSpec, error: io::Error) -> OpenError {
    match error.kind() {
        io::ErrorKind::NotFound => OpenError::NoTunDriver { spec: spec.clone() },
        io::ErrorKind::PermissionDenied => no_privilege(spec),
        _ => OpenError::system(spec, "open")(error),
    }
}

fn attach_error(spec: &PortSpec, name: &str, error: io::Error) -> OpenError {
    match Errno::from_io_error(&error) {
        None => OpenError::BadName { name: name.to_owned() },
        Some(Errno::PERM) => no_privilege(spec),
        Some(Errno::BUSY) => OpenError::Busy { spec: spec.clone() },
        Some(Errno::INVAL) => OpenError::OtherKind { spec: spec.clone() },
        Some(_) => OpenError::system(spec, "ioctl")(error),
    }
}

fn no_privilege(spec: &PortSpec) -> OpenError {
    OpenError::NoPrivilege { spec: spec.clone(), capability: "CAP_NET_ADMIN" }
}

/// Why a packet that the kernel refused with `errno` is dropped.
fn reason(errno: Errno) -> PortDrop {
    match errno {
        Errno::MSGSIZE => PortDrop::TransmitTooLong,
        Errno::NOBUFS | Errno::NOMEM => PortDrop::TransmitQueueFull,
        _ => PortDrop::TransmitError,
    }
}

impl Port for TunPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    fn receive(&mut self, batch: &mut Vec<Packet>, max: usize) -> Result<(), Lost> {
        for _ in 0..max.min(BATCH) {
            let mut packet = Packet::with_capacity(self.room);
            match self.device.read(packet.spare_mut()) {
                Ok(len) => {
                    packet.fill(len);
                    self.statistics.received.add(len);
                    batch.push(packet);
                }
                Err(error) => match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
                    Errno::AGAIN | Errno::INTR => return Ok(()),
                    errno => match self.lost(errno) {
                        Some(lost) => return Err(lost),
                        None => self.statistics.drops.add(PortDrop::ReceiveError, 1),
                    },
                },
            }
        }
        Ok(())
    }

    fn transmit(&mut self, queue: &mut VecDeque<Packet>) -> Result<(), Lost> {
        while let Some(packet) = queue.front() {
            match self.device.write(packet.bytes()) {
                Ok(_) => self.statistics.sent.add(packet.len()),
                Err(error) => match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
                    Errno::AGAIN => return Ok(()),
                    Errno::INTR => continue,
                    errno => match self.lost(errno) {
                        Some(lost) => return Err(lost),
                        None => self.statistics.drops.add(reason(errno), 1),
                    },
                },
            }
            queue.pop_front();
        }
        Ok(())
    }

    fn statistics(&mut self) -> &PortStatistics {
        &self.statistics
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::PollFlags;

    use super::*;
    use crate::testing::{Namespace, privileged, receive_some, send_all, wait};

    fn open(namespace: &Namespace, spec: PortSpec) -> Result<TunPort, OpenError> {
        namespace.run(|| TunPort::open(&spec))
    }

    fn tun(name: &str) -> PortSpec {
        PortSpec::Tun { name: name.to_owned() }
    }

    /// Receives until there is a packet for which `wanted` is true: a new interface makes noise.
    fn receive_one(port: &mut TunPort, wanted: impl Fn(&[u8]) -> bool) -> Packet {
        loop {
            let packet = receive_some(port, 1).remove(0);
            if wanted(packet.bytes()) {
                return packet;
            }
        }
    }

    /// An ICMP echo request from 10.0.0.2 to 10.0.0.1 (RFC 791, RFC 792), checksums included.
    const ECHO: [u8; 28] = [
        0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0x66, 0xdf, 10, 0, 0, 2, 10, 0, 0, 1, // IPv4
        8, 0, 0xf7, 0xfd, 0, 1, 0, 1, // echo request, identifier 1, sequence number 1
    ];

    #[test]
    fn the_kernel_answers_a_ping_through_a_tun_port() {
        if !privileged() {
            return;
        }
        let namespace = Namespace::new();
        let mut port = open(&namespace, tun("tun0")).unwrap();
        assert_eq!((port.info().mac, port.info().mtu), ([0; 6], 1500));
        namespace.ip("address add 10.0.0.1/24 dev tun0");
        send_all([Packet::from_slice(&ECHO)], &mut port);
        let reply = receive_one(&mut port, |bytes| bytes[0] >> 4 == 4);
        assert_eq!(&reply.bytes()[12..21], &[10, 0, 0, 1, 10, 0, 0, 2, 0]);
        assert_eq!(port.statistics().sent, crate::Traffic { packets: 1, bytes: 28 });
    }

    #[test]
    fn a_tap_port_has_an_address_of_its_own_and_sees_frames() {
        if !privileged() {
            return;
        }
        let namespace = Namespace::new();
        let mut port = open(&namespace, PortSpec::Tap { name: "tap0".to_owned() }).unwrap();
        namespace.ip("link set tap0 address 02:00:00:00:00:10");
        namespace.ip("address add 10.0.0.1/24 dev tap0");
        let mac = port.info().mac;
        assert_eq!(mac[0] & 0x03, 0x02, "locally administered and unicast");
        // The kernel asks by ARP (EtherType 0x0806) who has 10.0.0.2.
        let probe = namespace.run(|| std::net::UdpSocket::bind("0.0.0.0:0").unwrap());
        probe.send_to(b"x", "10.0.0.2:9").unwrap();
        let request = receive_one(&mut port, |bytes| bytes[12..14] == [0x08, 0x06]);
        assert_eq!(&request.bytes()[6..12], &[2, 0, 0, 0, 0, 0x10]);
        assert_ne!(&request.bytes()[6..12], &mac);
    }

    #[test]
    fn a_deleted_interface_is_a_lost_port() {
        if !privileged() {
            return;
        }
        let namespace = Namespace::new();
        let mut port = open(&namespace, tun("tun0")).unwrap();
        namespace.ip("link del tun0");
        let lost = loop {
            wait(&port, PollFlags::IN);
            if let Err(lost) = port.receive(&mut Vec::new(), 64) {
                break lost;
            }
        };
        assert_eq!(lost, Lost::Deleted { name: "tun0".to_owned() });
    }

    #[test]
    fn a_device_that_was_opened_elsewhere_makes_a_port_if_it_is_attached_as_it_should_be() {
        if !privileged() {
            return;
        }
        let namespace = Namespace::new();
        let opened = |spec: PortSpec| namespace.run(|| TunPort::open_descriptor(&spec)).unwrap();
        let (device, info) = opened(tun("tun0"));
        namespace.ip("address add 10.0.0.1/24 dev tun0");
        let mut port = TunPort::adopt(&tun("tun0"), device, info).unwrap();
        send_all([Packet::from_slice(&ECHO)], &mut port);
        let _ = receive_one(&mut port, |bytes| bytes[0] >> 4 == 4);

        let refusal =
            |device: OwnedFd| TunPort::adopt(&tun("tun0"), device, info).err().unwrap().to_string();
        assert!(refusal(opened(tun("tun1")).0).contains("attached to `tun1`"));
        let tap = PortSpec::Tap { name: "tap0".to_owned() };
        assert!(refusal(opened(tap).0).contains("attached to `tap0`"));
        assert!(refusal(tun::open().unwrap().into()).contains("attached to none"));
        assert!(refusal(File::open("/dev/null").unwrap().into()).contains("no such device"));
    }

    #[test]
    fn opening_errors_say_what_is_in_the_way() {
        if !privileged() {
            return;
        }
        let namespace = Namespace::new();
        let first = open(&namespace, tun("tun0")).unwrap();
        assert!(matches!(open(&namespace, tun("tun0")), Err(OpenError::Busy { .. })));
        assert!(matches!(open(&namespace, tun("lo")), Err(OpenError::OtherKind { .. })));
        assert!(matches!(
            open(&namespace, tun("much-too-long-name")),
            Err(OpenError::BadName { .. })
        ));
        drop(first);
    }

    #[test]
    fn the_other_end_differs_and_stays_unicast() {
        assert_eq!(other_end([0x5e, 1, 2, 3, 4, 5]), [0x5e, 1, 2, 3, 4, 4]);
        assert_eq!(other_end([0; 6]), [0x02, 0, 0, 0, 0, 1]);
    }
}
