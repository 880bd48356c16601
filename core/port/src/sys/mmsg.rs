//! Batches of datagrams that are received with one system call: `recvmmsg(2)`.
//!
//! Received bytes go straight into the frames of the packets that are handed up. What does not fit a
//! standard frame (jumbo frames, reassembled UDP datagrams) overflows into a second buffer and is
//! appended from there: the usual case costs no copy, the unusual one no memory until it occurs.
//! Frames and buffers are shared by all sockets of a thread, as is the free list they come from.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use weft_base::Packet;

use super::address::{self, Source};
use super::rights::{self, Control, Rights};

/// The most datagrams that one call moves.
pub(crate) const BATCH: usize = 64;
/// Room per datagram beyond a standard frame: together they take every IP datagram, every frame of
/// an interface with the largest MTU (65,536) and every message of a channel.
const OVERFLOW: usize = 65_536;

/// One datagram that came in.
pub(crate) struct Received {
    pub(crate) packet: Packet,
    pub(crate) source: Source,
    /// It was longer than what can be received; the packet holds its beginning.
    pub(crate) truncated: bool,
    /// The descriptors that came with it, if they were asked for.
    pub(crate) rights: Rights,
}

struct Scratch {
    /// `BATCH` empty packets to receive into; one that is handed up is replaced at once.
    packets: Vec<Packet>,
    sources: Vec<libc::sockaddr_storage>,
    /// `BATCH` times `OVERFLOW` bytes. Zero pages, which take no memory until they are written.
    overflow: Vec<u8>,
    controls: Vec<Control>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch {
        packets: (0..BATCH).map(|_| Packet::new()).collect(),
        sources: vec![address::EMPTY; BATCH],
        overflow: vec![0; BATCH * OVERFLOW],
        controls: vec![Control::EMPTY; BATCH],
    });
}

/// Receives up to `max` datagrams that are waiting and hands each to `take`, in order of arrival.
/// Returns how many there were. `take` must not receive on this thread itself. Without `rights` no
/// descriptors are taken: the kernel drops those that somebody sends.
///
/// # Errors
/// Those of recvmmsg(2); `WouldBlock` if nothing is waiting.
pub(crate) fn receive(
    fd: BorrowedFd<'_>,
    max: usize,
    rights: bool,
    mut take: impl FnMut(Received),
) -> io::Result<usize> {
    SCRATCH.with_borrow_mut(|scratch| {
        let max = max.min(BATCH);
        let mut vectors = scratch.vectors();
        let mut headers = [EMPTY_HEADER; BATCH];
        let slots = headers.iter_mut().zip(&mut vectors).zip(&mut scratch.sources);
        for (((header, vectors), source), control) in slots.zip(&mut scratch.controls) {
            header.msg_hdr.msg_name = std::ptr::from_mut(source).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_hdr.msg_iov = vectors.as_mut_ptr();
            header.msg_hdr.msg_iovlen = vectors.len() as _;
            if rights {
                control.prepare(&mut header.msg_hdr);
            }
        }
        // Packet sockets refuse a flag that they do not know.
        let close_on_exec = if rights { libc::MSG_CMSG_CLOEXEC } else { 0 };
        // SAFETY: each of the first `max` headers points to a source address, perhaps to control
        // data, and to two vectors, which point to memory exclusively borrowed from `scratch`; all of
        // it outlives the call.
        let count = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                headers.as_mut_ptr(),
                max as libc::c_uint,
                (libc::MSG_DONTWAIT | close_on_exec) as _,
                std::ptr::null_mut(),
            )
        };
        let count = super::check(count)? as usize;
        for (slot, header) in headers[..count].iter().enumerate() {
            take(scratch.take(slot, header));
        }
        Ok(count)
    })
}

impl Scratch {
    /// Where the kernel puts each datagram: first the packet's frame, then the overflow.
    fn vectors(&mut self) -> [[libc::iovec; 2]; BATCH] {
        let mut vectors = [[EMPTY_VECTOR; 2]; BATCH];
        let overflow = self.overflow.chunks_exact_mut(OVERFLOW);
        for ((vectors, packet), overflow) in vectors.iter_mut().zip(&mut self.packets).zip(overflow)
        {
            *vectors = [vector(packet.spare_mut()), vector(overflow)];
        }
        vectors
    }

    /// Takes the datagram out of `slot` after the kernel filled it in, and makes room for another.
    fn take(&mut self, slot: usize, header: &libc::mmsghdr) -> Received {
        let mut packet = std::mem::take(&mut self.packets[slot]);
        let len = header.msg_len as usize;
        let room = packet.spare_mut().len();
        packet.fill(len);
        if let Some(beyond) = len.checked_sub(room) {
            let start = slot * OVERFLOW;
            packet.extend(&self.overflow[start..start + beyond.min(OVERFLOW)]);
        }
        // SAFETY: the kernel has just filled in this header, and it is taken once.
        let rights = unsafe { rights::take(&header.msg_hdr) };
        Received {
            rights,
            packet,
            source: address::decode(&self.sources[slot], header.msg_hdr.msg_namelen),
            truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
        }
    }
}

const EMPTY_VECTOR: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

const EMPTY_HEADER: libc::mmsghdr =
    // SAFETY: mmsghdr consists of integers and raw pointers, for which all bits zero is a value.
    unsafe { std::mem::zeroed() };

fn vector(bytes: &mut [u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }
}
