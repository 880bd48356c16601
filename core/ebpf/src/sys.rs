//! What of bpf(2) is used directly: links at the hooks of traffic control (TCX), and questions about what
//! is attached.
//!
//! Reference: bpf(2); linux/bpf.h (`union bpf_attr`, `struct bpf_link_info`, `struct bpf_prog_info`);
//! links at traffic control are there since Linux 6.6.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use weft_netlink::Direction;

const BPF_PROG_GET_FD_BY_ID: u32 = 13;
const BPF_OBJ_GET_INFO_BY_FD: u32 = 15;
const BPF_PROG_QUERY: u32 = 16;
const BPF_LINK_CREATE: u32 = 28;
const BPF_LINK_DETACH: u32 = 34;

const BPF_TCX_INGRESS: u32 = 46;
const BPF_TCX_EGRESS: u32 = 47;
const BPF_LINK_TYPE_TCX: u32 = 11;

/// The most programs that one hook can have (`BPF_MPROG_MAX`).
const MOST: usize = 64;

/// What a link of traffic control is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkInfo {
    /// The number of the interface; 0 when the link was detached or the interface is gone.
    pub(crate) interface: u32,
    pub(crate) direction: Direction,
    pub(crate) program: u32,
}

fn attach_type(direction: Direction) -> u32 {
    match direction {
        Direction::Ingress => BPF_TCX_INGRESS,
        Direction::Egress => BPF_TCX_EGRESS,
    }
}

/// Attaches a program behind those that the hook has. The program stays until the last descriptor of
/// the link is closed.
pub(crate) fn create_link(
    interface: u32,
    direction: Direction,
    program: BorrowedFd<'_>,
) -> io::Result<OwnedFd> {
    link(interface, attach_type(direction), 0, program)
}

/// Attaches a program to XDP in the generic mode.
#[cfg(feature = "testing")]
pub(crate) fn create_xdp_link(interface: u32, program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    const BPF_XDP: u32 = 37;
    const XDP_FLAGS_SKB_MODE: u32 = 2;
    link(interface, BPF_XDP, XDP_FLAGS_SKB_MODE, program)
}

fn link(
    interface: u32,
    attach_type: u32,
    flags: u32,
    program: BorrowedFd<'_>,
) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Attributes {
        program: i32,
        interface: u32,
        attach_type: u32,
        flags: u32,
        relative: u64,
        revision: u64,
    }
    let mut attributes = Attributes {
        program: program.as_raw_fd(),
        interface,
        attach_type,
        flags,
        relative: 0,
        revision: 0,
    };
    // SAFETY: no member of the attributes is a pointer.
    let number = unsafe { bpf(BPF_LINK_CREATE, &mut attributes)? };
    // SAFETY: the call succeeded, so the descriptor is open and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Detaches a link, whoever else has a descriptor of it.
pub(crate) fn detach_link(link: BorrowedFd<'_>) -> io::Result<()> {
    let mut attributes = [link.as_raw_fd().cast_unsigned()];
    // SAFETY: the attributes are a descriptor, no pointer.
    unsafe { bpf(BPF_LINK_DETACH, &mut attributes) }.map(drop)
}

/// What a descriptor is, if it is a link of traffic control.
pub(crate) fn link_info(link: BorrowedFd<'_>) -> io::Result<Option<LinkInfo>> {
    // type, id, program, padding, interface, attach type, and room for what later kernels tell.
    let mut info = [0_u32; 16];
    object_info(link, &mut info)?;
    let direction = match (info[0], info[5]) {
        (BPF_LINK_TYPE_TCX, BPF_TCX_INGRESS) => Direction::Ingress,
        (BPF_LINK_TYPE_TCX, BPF_TCX_EGRESS) => Direction::Egress,
        _ => return Ok(None),
    };
    Ok(Some(LinkInfo { interface: info[4], direction, program: info[2] }))
}

/// The programs of links at a hook, in the order in which they run.
///
/// # Errors
/// `EINVAL` if this kernel has no such hook, `EPERM` without `CAP_NET_ADMIN`, `ENODEV`.
pub(crate) fn linked_programs(interface: u32, direction: Direction) -> io::Result<Vec<u32>> {
    #[repr(C)]
    struct Attributes {
        interface: u32,
        attach_type: u32,
        query_flags: u32,
        attach_flags: u32,
        programs: u64,
        count: u32,
        padding: u32,
        program_flags: u64,
        links: u64,
        link_flags: u64,
        revision: u64,
    }
    let mut programs = [0_u32; MOST];
    let mut attributes = Attributes {
        interface,
        attach_type: attach_type(direction),
        query_flags: 0,
        attach_flags: 0,
        programs: programs.as_mut_ptr() as u64,
        count: MOST as u32,
        padding: 0,
        program_flags: 0,
        links: 0,
        link_flags: 0,
        revision: 0,
    };
    // SAFETY: the pointer is to as many numbers as `count` says, which outlive the call; others are null.
    unsafe { bpf(BPF_PROG_QUERY, &mut attributes)? };
    let count = (attributes.count as usize).min(MOST);
    Ok(programs[..count].to_vec())
}

/// The name of a program: at most 15 bytes.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`, `ENOENT`.
pub(crate) fn program_name(program: u32) -> io::Result<String> {
    let mut attributes = [program, 0, 0];
    // SAFETY: no member of the attributes is a pointer.
    let number = unsafe { bpf(BPF_PROG_GET_FD_BY_ID, &mut attributes)? };
    // SAFETY: the call succeeded, so the descriptor is open and nobody else has it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    let mut info = [0_u32; 20];
    object_info(descriptor.as_fd(), &mut info)?;
    // The name is at byte 64.
    let bytes: Vec<u8> = info[16..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

/// Loads a program that returns a number.
#[cfg(feature = "testing")]
pub(crate) fn load(program_type: u32, returns: i32, name: &str) -> io::Result<OwnedFd> {
    const BPF_PROG_LOAD: u32 = 5;
    #[repr(C)]
    struct Attributes {
        program_type: u32,
        instruction_count: u32,
        instructions: u64,
        license: u64,
        log: [u32; 4],
        kernel_version: u32,
        flags: u32,
        name: [u8; 16],
    }
    // r0 = returns; exit
    let number = u64::from(returns.cast_unsigned());
    let instructions = [number << 32 | 0xb7, 0x95];
    let license = c"MIT";
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    let mut attributes = Attributes {
        program_type,
        instruction_count: 2,
        instructions: instructions.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log: [0; 4],
        kernel_version: 0,
        flags: 0,
        name: bytes,
    };
    // SAFETY: the pointers are to two instructions and to a text that ends with zero.
    let number = unsafe { bpf(BPF_PROG_LOAD, &mut attributes)? };
    // SAFETY: the call succeeded, so the descriptor is open and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Fills `info`, which begins with zeros, with what the kernel tells of an object. Pointers in it are
/// null, so that nothing is written elsewhere.
fn object_info<const N: usize>(object: BorrowedFd<'_>, info: &mut [u32; N]) -> io::Result<()> {
    #[repr(C)]
    struct Attributes {
        object: u32,
        len: u32,
        info: u64,
    }
    let mut attributes = Attributes {
        object: object.as_raw_fd().cast_unsigned(),
        len: size_of_val(info) as u32,
        info: info.as_mut_ptr() as u64,
    };
    // SAFETY: the pointer is to as many bytes as `len` says, which outlive the call.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attributes) }.map(drop)
}

/// Calls bpf(2).
///
/// # Safety
/// Each pointer in `attributes` is null, or good for what the command does with it.
unsafe fn bpf<T>(command: u32, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: the pointer and the length describe `attributes`; for pointers within, see above.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>())
    };
    match i32::try_from(result) {
        Ok(number) if number >= 0 => Ok(number),
        _ => Err(io::Error::last_os_error()),
    }
}
