//! Filters of sockets in the classic language: `socket(7)`, `SO_ATTACH_FILTER`.
//!
//! The kernel checks hop limits for TCP (`IP_MINTTL`, `IPV6_MINHOPCOUNT`), the same for all that comes to a socket, and for UDP
//! leaves it to the socket. A filter of a socket that listens sees what opens a connection, too, and the connection
//! that is accepted has it from its first byte.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `SKF_NET_OFF` of linux/filter.h: offsets from here count from the header of IP.
const NETWORK_HEADER: u32 = -0x10_0000_i32 as u32;
/// Where the hop limit stands in the header of IPv6 (RFC 8200 §3).
const HOP_LIMIT: u32 = 7;
/// Where the time to live stands in the header of IPv4 (RFC 791 §3.1).
const TIME_TO_LIVE: u32 = 8;
/// Where the source stands in the headers of IPv4 and IPv6.
const SOURCES: [u32; 2] = [12, 8];
/// As many bytes as a packet can have.
const WHOLE: u32 = u32::MAX;
/// The most instructions that a filter for one network has: four words that are loaded, masked and compared, and two more.
const MOST_EACH: usize = 4 * 3 + 2;
/// The most networks whose peers [`require_ttls`] takes: the kernel takes 4096 instructions (`BPF_MAXINSNS`).
pub(crate) const MOST_NETWORKS: usize = (4096 - 8) / MOST_EACH;

/// Drops whatever comes.
pub(crate) fn take_nothing(socket: BorrowedFd<'_>) -> io::Result<()> {
    attach(socket, &mut [end(0)])
}

/// Drops what comes over IPv6 with another hop limit.
pub(crate) fn require_hop_limit(socket: BorrowedFd<'_>, hop_limit: u8) -> io::Result<()> {
    attach(
        socket,
        &mut [
            load(libc::BPF_B, HOP_LIMIT),
            jump(libc::BPF_JEQ | libc::BPF_K, 0, 1, hop_limit.into()),
            end(WHOLE),
            end(0),
        ],
    )
}

/// Drops what comes from one of these networks with less time to live (hop limit) than it says, of several that hold the
/// source by the first. They are networks of the socket's version of IP, at most [`MOST_NETWORKS`], without what is beyond their
/// prefixes.
pub(crate) fn require_ttls(
    socket: BorrowedFd<'_>,
    is_ipv4: bool,
    networks: &[(IpAddr, u8, u8)],
) -> io::Result<()> {
    let [of_ipv4, of_ipv6] = SOURCES;
    let (ttl, source) = if is_ipv4 { (TIME_TO_LIVE, of_ipv4) } else { (HOP_LIMIT, of_ipv6) };
    let each = networks.iter().map(|network| comparison(source, *network));
    let each: Vec<Vec<_>> = each.collect();
    let mut left: usize = each.iter().map(|one| one.len() + 1).sum();
    let mut program = vec![load(libc::BPF_B, ttl), instruction(libc::BPF_MISC | libc::BPF_TAX, 0)];
    for mut comparison in each {
        left -= comparison.len() + 1;
        // Over the others, and over the end of those that are in no network.
        comparison.push(instruction(libc::BPF_JMP | libc::BPF_JA, left as u32 + 1));
        program.extend(comparison);
    }
    let too_little = libc::BPF_JGT | libc::BPF_X;
    program.extend([end(WHOLE), jump(too_little, 0, 1, 0), end(0), end(WHOLE)]);
    attach(socket, &mut program)
}

/// Loads the least time to live of a network if the source is in it, or goes over this and one more instruction.
fn comparison(
    source: u32,
    (network, prefix_length, least): (IpAddr, u8, u8),
) -> Vec<libc::sock_filter> {
    let bytes = match network {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let mut instructions = Vec::with_capacity(MOST_EACH);
    for (place, word) in (0_u32..).zip(bytes.as_chunks::<4>().0) {
        let bits = u32::from(prefix_length).saturating_sub(32 * place).min(32);
        if bits > 0 {
            instructions.push(load(libc::BPF_W, source + 4 * place));
            if bits < 32 {
                let mask = !(u32::MAX >> bits);
                instructions.push(instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, mask));
            }
            let word = u32::from_be_bytes(*word);
            instructions.push(jump(libc::BPF_JEQ | libc::BPF_K, 0, 0, word));
        }
    }
    instructions.push(instruction(libc::BPF_LD | libc::BPF_IMM, least.into()));
    let len = instructions.len();
    for (place, one) in instructions.iter_mut().enumerate() {
        if u32::from(one.code) == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K {
            one.jf = (len - place) as u8;
        }
    }
    instructions
}

fn instruction(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Loads a byte or a word of the header of IP.
fn load(size: u32, offset: u32) -> libc::sock_filter {
    instruction(libc::BPF_LD | size | libc::BPF_ABS, NETWORK_HEADER + offset)
}

fn jump(condition: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { jt, jf, ..instruction(libc::BPF_JMP | condition, k) }
}

/// So many bytes of the packet are taken.
fn end(bytes: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, bytes)
}

/// Gives a socket this filter.
pub(crate) fn attach(socket: BorrowedFd<'_>, program: &mut [libc::sock_filter]) -> io::Result<()> {
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
