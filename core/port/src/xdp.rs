//! XDP ports: whole frames of one EtherType on one interface, by an AF_XDP socket.
//!
//! The kernel copies frames straight between the driver and memory that it shares with this process: no packet
//! sockets, no queueing discipline and no packet filter see them, and a system call moves many. What comes in
//! is what a program at XDP redirects to the socket (`weft_ebpf` has one that steers an EtherType); sending takes
//! no program. An interface has room for one such socket for each of its queues. A port here takes the first queue.
//!
//! Beside it there is a packet socket for the same EtherType. It gets what the program lets pass: what came in before
//! that was attached, and what comes by other queues. And it is told when the interface is set down or deleted,
//! which the kernel does not tell whoever waits for an AF_XDP socket.
//!
//! Frames that are waiting in the ring for the kernel to send them stay in the queue that the port was given, too,
//! until it has.
//!
//! Reference: Linux kernel, Documentation/networking/af_xdp.rst.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use weft_base::{LinkAddress, Packet};

use crate::datagrams::{self, BATCH};
use crate::ethernet::EthernetPort;
use crate::link::Link;
use crate::sys::xdp::{Descriptor, Frames, Lengths, Rings, Socket};
use crate::{
    Lost, OpenError, Options, Port, PortDrop, PortInfo, PortSpec, PortStatistics, XDP_DESCRIPTORS,
};

/// Bytes of an Ethernet header, and of a VLAN tag.
const LINK_HEADER: usize = 14 + 4;
/// What the kernel keeps free in front of what it receives (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;
/// Lengths of frames.
const FRAME_LENGTHS: [usize; 2] = [2048, 4096];
/// Frames that came in and were not received yet are as many at most; what comes then is dropped.
const RECEIVE: u32 = 2048;
/// Frames that were sent and have not left the interface are as many at most.
const SEND: u32 = 1024;
/// How long the kernel may take to let go of a queue.
const LET_GO: Duration = Duration::from_millis(50);
/// Bytes that packets on their way out may take in the kernel.
const SEND_BUFFER: usize = 8 << 20;

pub(crate) struct XdpPort {
    socket: Socket,
    name: String,
    info: PortInfo,
    /// Gets what passes the program, and hears when the interface goes.
    beside: EthernetPort,
    rings: Rings,
    /// Frames to send from that are ours.
    free: Vec<u64>,
    /// So many packets at the front of the queue are in the ring.
    submitted: usize,
    /// Drops that the kernel has told of.
    told: u64,
    promiscuous: bool,
    statistics: PortStatistics,
    /// What the other one has counted, too.
    all: PortStatistics,
    frames: Frames,
}

/// The lengths of the rings.
const LENGTHS: Lengths = Lengths { receive: RECEIVE, send: SEND };
/// How many frames there are.
const FRAMES: usize = (RECEIVE + SEND) as usize;

impl XdpPort {
    /// Opens the socket of the port that `spec` describes and sets it up, for which privileges are needed: the
    /// socket and the memory of its frames.
    pub(crate) fn open_descriptors(
        spec: &PortSpec,
        options: &Options,
    ) -> Result<([OwnedFd; XDP_DESCRIPTORS], PortInfo), OpenError> {
        let (name, beside) = parts(spec);
        let (beside, info) = EthernetPort::open_descriptor(&beside, options)?;
        let socket = Socket::open().map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::PERM | Errno::ACCESS) => {
                OpenError::NoPrivilege { spec: spec.clone(), capability: "CAP_NET_RAW" }
            }
            Some(Errno::AFNOSUPPORT) => OpenError::NoXdpSockets { spec: spec.clone() },
            _ => OpenError::system(spec, "socket")(error),
        })?;
        let link = Link::find(spec, name)?;
        let frame_len = frame_len(name, info.mtu)?;
        let memory =
            Frames::create(FRAMES, frame_len).map_err(OpenError::system(spec, "memfd_create"))?;
        let frames =
            Frames::map(memory.as_fd(), FRAMES).map_err(OpenError::system(spec, "mmap"))?;
        socket.set_up(&frames, LENGTHS).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::NOBUFS) => {
                OpenError::LockedMemory { spec: spec.clone(), bytes: FRAMES * frame_len }
            }
            _ => OpenError::system(spec, "setsockopt")(error),
        })?;
        // Without the capability to ask for more, what there is must do.
        let _ = datagrams::set_send_buffer(socket.as_fd(), SEND_BUFFER);
        bind(&socket, link.index.cast_unsigned()).map_err(|error| {
            match Errno::from_io_error(&error) {
                Some(Errno::BUSY) => OpenError::Busy { spec: spec.clone() },
                _ => OpenError::system(spec, "bind")(error),
            }
        })?;
        Ok(([socket.into(), memory, beside], info))
    }

    /// Makes a port of a socket, of the memory of its frames, and of a packet socket, after a look at them.
    pub(crate) fn adopt(
        spec: &PortSpec,
        [socket, memory, beside]: [OwnedFd; XDP_DESCRIPTORS],
        info: PortInfo,
        options: &Options,
    ) -> Result<Self, OpenError> {
        let (name, of_beside) = parts(spec);
        let beside = EthernetPort::adopt(&of_beside, beside, info, options)?;
        let wrong = |found: &'static str| move |_| OpenError::not_that(spec, found);
        let socket = Socket::of_descriptor(socket).map_err(wrong("it is no socket of AF_XDP"))?;
        let frames = Frames::map(memory.as_fd(), FRAMES)
            .map_err(wrong("the memory beside it is of another kind"))?;
        let mut rings =
            socket.rings(LENGTHS).map_err(|error| match Errno::from_io_error(&error) {
                Some(Errno::BUSY) => OpenError::NoXdpSockets { spec: spec.clone() },
                _ => OpenError::system(spec, "mmap")(error),
            })?;
        let frame_len = frames.frame_len() as u64;
        for frame in 0..RECEIVE {
            rings.fill.push(u64::from(frame) * frame_len);
        }
        rings.fill.publish();
        Ok(Self {
            socket,
            name: name.to_owned(),
            info,
            beside,
            rings,
            free: (RECEIVE..RECEIVE + SEND).map(|frame| u64::from(frame) * frame_len).collect(),
            submitted: 0,
            told: 0,
            promiscuous: options.promiscuous,
            statistics: PortStatistics::default(),
            all: PortStatistics::default(),
            frames,
        })
    }

    /// Whether a frame is for this host: for its address, or for many.
    fn is_ours(&self, frame: &[u8]) -> bool {
        frame.first().is_some_and(|byte| byte & 1 != 0) || frame.starts_with(&self.info.mac)
    }

    /// Takes back the frames that were sent.
    fn reclaim(&mut self) {
        while let Some(address) = self.rings.completion.pop() {
            self.free.push(self.frames.frame_of(address));
        }
        self.rings.completion.release();
    }

    /// Puts packets of the queue into the ring behind those that are there, as long as there is room.
    fn submit(&mut self, queue: &mut VecDeque<Packet>) {
        while let Some(packet) = queue.get(self.submitted) {
            if packet.len() > self.info.mtu + LINK_HEADER {
                queue.remove(self.submitted);
                self.statistics.drops.add(PortDrop::TransmitTooLong, 1);
                continue;
            }
            let Some(address) = self.free.pop() else { break };
            // Frames are longer than the longest packet, and the ring has room for all of them.
            self.frames.write(address, packet.bytes());
            let descriptor = Descriptor { address, len: packet.len() as u32, options: 0 };
            if !self.rings.send.push(descriptor) {
                self.free.push(address);
                break;
            }
            self.submitted += 1;
        }
        self.rings.send.publish();
    }

    /// The first so many packets of the queue are the kernel's now.
    fn take(&mut self, queue: &mut VecDeque<Packet>, count: usize) {
        for packet in queue.drain(..count.min(queue.len())) {
            self.statistics.sent.add(packet.len());
        }
    }
}

/// Binds the socket. The kernel lets go of a queue a little after the socket is closed that had it.
fn bind(socket: &Socket, index: u32) -> io::Result<()> {
    for _ in 0..LET_GO.as_millis() {
        match socket.bind(index) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                thread::sleep(Duration::from_millis(1));
            }
            result => return result,
        }
    }
    socket.bind(index)
}

/// The interface, and the port beside.
fn parts(spec: &PortSpec) -> (&str, PortSpec) {
    let PortSpec::Xdp { interface, ethertype } = spec else {
        unreachable!("only XDP ports are opened here");
    };
    let beside = PortSpec::Ethernet { interface: interface.clone(), ethertype: *ethertype };
    (interface, beside)
}

/// How long the frames of a port must be.
fn frame_len(name: &str, mtu: usize) -> Result<usize, OpenError> {
    let fits = |len: &usize| mtu + LINK_HEADER + HEADROOM <= *len;
    let longest = FRAME_LENGTHS[FRAME_LENGTHS.len() - 1] - LINK_HEADER - HEADROOM;
    let long = || OpenError::LongPackets { name: name.to_owned(), mtu, longest };
    FRAME_LENGTHS.into_iter().find(fits).ok_or_else(long)
}

impl Port for XdpPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn second_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.beside.fd())
    }

    fn receive(&mut self, batch: &mut Vec<Packet>, max: usize) -> Result<(), Lost> {
        let mut count = 0;
        while count < max.min(BATCH)
            && let Some(Descriptor { address, len, .. }) = self.rings.receive.pop()
        {
            count += 1;
            match self.frames.bytes(address, len as usize) {
                None => self.statistics.drops.add(PortDrop::ReceiveError, 1),
                Some(frame) if !self.promiscuous && !self.is_ours(frame) => {
                    self.statistics.drops.add(PortDrop::OtherHost, 1);
                }
                Some(frame) => {
                    let mut packet = Packet::from_slice(frame);
                    if let Some(source) = frame.get(6..12).and_then(<[u8]>::first_chunk) {
                        packet.meta.link = LinkAddress::Mac(*source);
                    }
                    self.statistics.received.add(frame.len());
                    batch.push(packet);
                }
            }
            // There is room for all frames.
            self.rings.fill.push(self.frames.frame_of(address));
        }
        self.rings.receive.release();
        self.rings.fill.publish();
        // If nothing was waiting here, it is for the other one that this was called.
        if count == 0 { self.beside.receive(batch, max) } else { Ok(()) }
    }

    fn transmit(&mut self, queue: &mut VecDeque<Packet>) -> Result<(), Lost> {
        loop {
            self.reclaim();
            self.submit(queue);
            if self.submitted == 0 {
                return Ok(());
            }
            let result = self.socket.kick();
            let taken = self.submitted.saturating_sub(self.rings.send.waiting());
            self.submitted -= taken;
            self.take(queue, taken);
            let Err(error) = result else {
                // It says that all is well and takes nothing: later, perhaps.
                if taken == 0 {
                    return Ok(());
                }
                continue;
            };
            match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
                Errno::INTR => {}
                // It takes some and wants to be asked again, or takes nothing for now.
                Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM if taken > 0 => {}
                Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM => return Ok(()),
                // The last one that it took.
                Errno::BUSY => self.statistics.drops.add(PortDrop::TransmitQueueFull, 1),
                Errno::NETDOWN => return Err(Lost::Down { name: self.name.clone() }),
                // It is bound to nothing any more.
                Errno::NXIO => return Err(Lost::Deleted { name: self.name.clone() }),
                _ if taken > 0 => self.statistics.drops.add(PortDrop::TransmitError, 1),
                _ => return Ok(()),
            }
        }
    }

    fn statistics(&mut self) -> &PortStatistics {
        if let Ok(drops) = self.socket.drops() {
            let new = drops.saturating_sub(self.told);
            self.told = drops;
            self.statistics.drops.add(PortDrop::ReceiveQueueFull, new);
        }
        self.all = self.statistics.clone();
        self.all.include(self.beside.statistics());
        &self.all
    }
}

#[cfg(test)]
#[path = "xdp_tests.rs"]
mod tests;
