//! Filters of sockets in the classic language: `socket(7)`, `SO_ATTACH_FILTER`.
//!
//! The kernel checks hop limits for TCP (`IPV6_MINHOPCOUNT`), and for UDP leaves it to the socket.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `SKF_NET_OFF` of linux/filter.h: offsets from here count from the header of IP.
const NETWORK_HEADER: u32 = -0x10_0000_i32 as u32;
/// Where the hop limit stands in the header of IPv6 (RFC 8200 §3).
const HOP_LIMIT: u32 = 7;
/// As many bytes as a packet can have.
const WHOLE: u32 = u32::MAX;

/// Drops what comes over IPv6 with another hop limit.
pub(crate) fn require_hop_limit(socket: BorrowedFd<'_>, hop_limit: u8) -> io::Result<()> {
    let instruction = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut program = [
        instruction(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, NETWORK_HEADER + HOP_LIMIT),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, hop_limit.into()),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, WHOLE),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the kernel reads the structure, and as many instructions as it says, which live until the call is over.
    super::check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const filter).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    })?;
    Ok(())
}
