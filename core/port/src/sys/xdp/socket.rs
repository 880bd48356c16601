//! The socket itself: making, binding, kicking, counting.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::net::{AddressFamily, sockopt};

use super::super::check;
use super::frames::Frames;
use super::ring::{Consumer, Descriptor, Layout, Producer};

/// How many items the rings of a socket hold, each a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lengths {
    /// Of those for receiving, and for frames to receive into.
    pub(crate) receive: u32,
    /// Of those for sending, and for frames that were sent.
    pub(crate) send: u32,
}

/// The four rings of a socket.
#[derive(Debug)]
pub(crate) struct Rings {
    /// Frames to receive into.
    pub(crate) fill: Producer<u64>,
    /// Packets that came in.
    pub(crate) receive: Consumer<Descriptor>,
    /// Packets to be sent.
    pub(crate) send: Producer<Descriptor>,
    /// Frames that were sent.
    pub(crate) completion: Consumer<u64>,
}

/// An AF_XDP socket.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> Self {
        socket.0
    }
}

impl Socket {
    /// A socket that is bound to nothing.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_RAW; `EAFNOSUPPORT` if the kernel has no such sockets.
    pub(crate) fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no memory is passed.
        let descriptor = check(unsafe { libc::socket(libc::AF_XDP, kind, 0) })?;
        // SAFETY: a new descriptor that nobody else owns.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// A socket that somebody has opened and bound, which may be something else.
    ///
    /// # Errors
    /// `InvalidInput` if it is.
    pub(crate) fn of_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        match sockopt::socket_domain(&descriptor)? {
            AddressFamily::XDP => Ok(Self(descriptor)),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Gives it frames, and rings of these lengths. The kernel holds the frames' memory as long as there is the
    /// socket.
    ///
    /// # Errors
    /// `ENOBUFS` if as much memory may not be locked.
    pub(crate) fn set_up(&self, frames: &Frames, lengths: Lengths) -> io::Result<()> {
        let registration = libc::xdp_umem_reg_v1 {
            addr: frames.memory().start().as_ptr() as u64,
            len: frames.memory().len() as u64,
            chunk_size: frames.frame_len() as u32,
            headroom: 0,
        };
        self.set(libc::XDP_UMEM_REG, &registration)?;
        self.set(libc::XDP_UMEM_FILL_RING, &lengths.receive)?;
        self.set(libc::XDP_UMEM_COMPLETION_RING, &lengths.send)?;
        self.set(libc::XDP_RX_RING, &lengths.receive)?;
        self.set(libc::XDP_TX_RING, &lengths.send)
    }

    /// Maps the rings of a socket that was set up with these lengths, also if it is bound.
    ///
    /// # Errors
    /// `EBUSY` for a socket that is bound, on kernels before 6.4.
    pub(crate) fn rings(&self, lengths: Lengths) -> io::Result<Rings> {
        let offsets = self.offsets()?;
        let layout = |offset, ring: &libc::xdp_ring_offset, size| Layout {
            offset,
            producer: ring.producer,
            consumer: ring.consumer,
            items: ring.desc,
            size,
        };
        let Lengths { receive, send } = lengths;
        let at = |offset: libc::off_t| offset.cast_unsigned();
        let fill = layout(libc::XDP_UMEM_PGOFF_FILL_RING, &offsets.fr, receive);
        let incoming = layout(at(libc::XDP_PGOFF_RX_RING), &offsets.rx, receive);
        let outgoing = layout(at(libc::XDP_PGOFF_TX_RING), &offsets.tx, send);
        let completion = layout(libc::XDP_UMEM_PGOFF_COMPLETION_RING, &offsets.cr, send);
        let socket = self.as_fd();
        Ok(Rings {
            fill: Producer::map(socket, fill)?,
            receive: Consumer::map(socket, incoming)?,
            send: Producer::map(socket, outgoing)?,
            completion: Consumer::map(socket, completion)?,
        })
    }

    /// Uses the first queue of the interface with `index` from now on. The kernel copies packets to and from
    /// the frames.
    ///
    /// # Errors
    /// `EBUSY` if another socket does, `ENETDOWN` if the interface is down.
    pub(crate) fn bind(&self, index: u32) -> io::Result<()> {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_COPY,
            sxdp_ifindex: index,
            sxdp_queue_id: 0,
            sxdp_shared_umem_fd: 0,
        };
        let len = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
        // SAFETY: the kernel reads `len` bytes of the address.
        check(unsafe { libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), len) })?;
        Ok(())
    }

    /// Lets the kernel send what is in the ring, or some of it.
    ///
    /// # Errors
    /// `WouldBlock` if it shall be asked again, at once or later; `EBUSY` if the interface did not take a packet,
    /// which is lost; `ENETDOWN`, `ENXIO`.
    pub(crate) fn kick(&self) -> io::Result<()> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: no memory is passed.
        let sent =
            unsafe { libc::sendto(self.0.as_raw_fd(), ptr::null(), 0, flags, ptr::null(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Packets that the kernel dropped because there was no frame or no room in the ring.
    pub(crate) fn drops(&self) -> io::Result<u64> {
        // SAFETY: all bits zero is a value of a structure of numbers.
        let mut statistics: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        self.get(libc::XDP_STATISTICS, &mut statistics)?;
        Ok(statistics.rx_dropped.saturating_add(statistics.rx_ring_full))
    }

    fn offsets(&self) -> io::Result<libc::xdp_mmap_offsets> {
        // SAFETY: all bits zero is a value of a structure of numbers.
        let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
        if self.get(libc::XDP_MMAP_OFFSETS, &mut offsets)? < size_of::<libc::xdp_mmap_offsets>() {
            // Kernels before 5.4 have fewer fields.
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(offsets)
    }

    /// Sets an option to a structure of numbers.
    fn set<T: Copy>(&self, option: i32, value: &T) -> io::Result<()> {
        let len = size_of::<T>() as libc::socklen_t;
        let value = ptr::from_ref(value).cast();
        // SAFETY: the kernel reads `len` bytes of the value.
        check(unsafe { libc::setsockopt(self.0.as_raw_fd(), libc::SOL_XDP, option, value, len) })?;
        Ok(())
    }

    /// Reads an option into a structure of numbers; how many bytes the kernel has written.
    fn get<T: Copy>(&self, option: i32, value: &mut T) -> io::Result<usize> {
        let mut len = size_of::<T>() as libc::socklen_t;
        let value = ptr::from_mut(value).cast();
        // SAFETY: the kernel writes at most `len` bytes into the value, of which all bits are a value.
        check(unsafe {
            libc::getsockopt(self.0.as_raw_fd(), libc::SOL_XDP, option, value, &raw mut len)
        })?;
        Ok(len as usize)
    }
}
