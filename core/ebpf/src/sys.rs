//! What of bpf(2) is used: loading programs, links at the hooks of traffic control (TCX), and questions
//! about what is attached; in `map` what works on maps, in `xdp` what concerns XDP.
//!
//! It takes `CAP_BPF` and `CAP_NET_ADMIN`; what is asked by number takes `CAP_SYS_ADMIN`, which the FEA does
//! not have.
//!
//! Reference: bpf(2); linux/bpf.h (`union bpf_attr`, `struct bpf_link_info`, `struct bpf_prog_info`);
//! links at traffic control are there since Linux 6.6.

pub(crate) mod map;
pub(crate) mod xdp;

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use weft_netlink::Direction;

const BPF_MAP_CREATE: u32 = 0;
const BPF_MAP_LOOKUP_ELEM: u32 = 1;
const BPF_MAP_UPDATE_ELEM: u32 = 2;
const BPF_PROG_LOAD: u32 = 5;
const BPF_PROG_GET_FD_BY_ID: u32 = 13;
const BPF_MAP_GET_FD_BY_ID: u32 = 14;
const BPF_OBJ_GET_INFO_BY_FD: u32 = 15;
const BPF_PROG_QUERY: u32 = 16;
const BPF_LINK_CREATE: u32 = 28;
const BPF_LINK_DETACH: u32 = 34;

const BPF_TCX_INGRESS: u32 = 46;
const BPF_TCX_EGRESS: u32 = 47;
const BPF_LINK_TYPE_TCX: u32 = 11;

/// The type of a program for traffic control (`BPF_PROG_TYPE_SCHED_CLS`).
pub(crate) const SCHED_CLS: u32 = 3;
/// `BPF_MAP_TYPE_ARRAY`.
const ARRAY: u32 = 2;
/// The bytes of a name, the final zero included (`BPF_OBJ_NAME_LEN`).
const NAME: usize = 16;
/// The most maps of a program that are looked at.
const MOST_MAPS: usize = 16;

/// Room for what the verifier says, and how many of its last lines are told.
const LOG: usize = 1 << 16;
const SAID: usize = 6;

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
    unsafe { open(BPF_LINK_CREATE, &mut attributes) }
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

/// Loads a program. `license` says whether it may call helpers that are under the GPL. If the verifier
/// refuses it, the error ends with what it said last.
pub(crate) fn load(
    program_type: u32,
    instructions: &[u64],
    license: &CStr,
    name: &str,
) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Attributes {
        program_type: u32,
        instruction_count: u32,
        instructions: u64,
        license: u64,
        log_level: u32,
        log_size: u32,
        log: u64,
        kernel_version: u32,
        flags: u32,
        name: [u8; NAME],
    }
    let mut attributes = Attributes {
        program_type,
        instruction_count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: object_name(name),
    };
    // SAFETY: the pointers are to as many instructions as is said, and to a text that ends with zero; the
    // kernel reads both during the call.
    let refusal = match unsafe { open(BPF_PROG_LOAD, &mut attributes) } {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EACCES)) => error,
        result => return result,
    };
    let mut log = vec![0_u8; LOG];
    (attributes.log_level, attributes.log_size) = (4, LOG as u32);
    attributes.log = log.as_mut_ptr() as u64;
    // SAFETY: as above; and the log has room for as many bytes as is said.
    let result = unsafe { open(BPF_PROG_LOAD, &mut attributes) };
    result.map_err(|_| {
        let said = String::from_utf8_lossy(&log);
        let said = said.trim_end_matches('\0').trim_end();
        let last = said.lines().rev().take(SAID).collect::<Vec<_>>();
        let last = last.into_iter().rev().collect::<Vec<_>>().join("; ");
        io::Error::new(refusal.kind(), format!("{refusal}: {last}"))
    })
}

/// Makes a map: an array of `elements` pairs of words.
pub(crate) fn create_array(elements: u32, name: &str) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Attributes {
        map_type: u32,
        key_size: u32,
        value_size: u32,
        elements: u32,
        flags: u32,
        inner: u32,
        node: u32,
        name: [u8; NAME],
    }
    let mut attributes = Attributes {
        map_type: ARRAY,
        key_size: size_of::<u32>() as u32,
        value_size: size_of::<[u64; 2]>() as u32,
        elements,
        flags: 0,
        inner: 0,
        node: 0,
        name: object_name(name),
    };
    // SAFETY: no member of the attributes is a pointer.
    unsafe { open(BPF_MAP_CREATE, &mut attributes) }
}

/// Whether a map is one that [`create_array`] makes with this many elements. It has the name, or, as some
/// loaders give none, no name.
pub(crate) fn is_array(map: BorrowedFd<'_>, elements: u32, name: &str) -> io::Result<bool> {
    // type, id, size of keys, size of values, elements, flags, name, and room for what later kernels tell.
    let mut info = [0_u32; 24];
    object_info(map, &mut info)?;
    let form = [info[0], info[2], info[3], info[4]];
    let found = text(&info[6..10]);
    let expected = [ARRAY, size_of::<u32>() as u32, size_of::<[u64; 2]>() as u32, elements];
    Ok(form == expected && (found.is_empty() || found == name))
}

#[repr(C)]
struct ElementAttributes {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

impl ElementAttributes {
    fn new(map: BorrowedFd<'_>, key: &u32, value: *const [u64; 2]) -> Self {
        let map = map.as_raw_fd().cast_unsigned();
        Self { map, padding: 0, key: std::ptr::from_ref(key) as u64, value: value as u64, flags: 0 }
    }
}

/// Reads an element of a map for which [`is_array`] holds.
pub(crate) fn read_element(map: BorrowedFd<'_>, key: u32) -> io::Result<[u64; 2]> {
    let mut value = [0; 2];
    let mut attributes = ElementAttributes::new(map, &key, &raw mut value);
    // SAFETY: the pointers are to a key and a value of the sizes that the map has.
    unsafe { bpf(BPF_MAP_LOOKUP_ELEM, &mut attributes)? };
    Ok(value)
}

/// Writes an element of a map for which [`is_array`] holds.
pub(crate) fn write_element(map: BorrowedFd<'_>, key: u32, value: [u64; 2]) -> io::Result<()> {
    let mut attributes = ElementAttributes::new(map, &key, &raw const value);
    // SAFETY: the pointers are to a key and a value of the sizes that the map has.
    unsafe { bpf(BPF_MAP_UPDATE_ELEM, &mut attributes) }.map(drop)
}

/// The maps of a program.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`, `ENOENT`.
pub(crate) fn maps_of(program: u32) -> io::Result<Vec<OwnedFd>> {
    let descriptor = by_number(BPF_PROG_GET_FD_BY_ID, program)?;
    let mut numbers = [0_u32; MOST_MAPS];
    let mut info = [0_u32; 20];
    // How many numbers there is room for, and where.
    info[13] = MOST_MAPS as u32;
    let address = (numbers.as_mut_ptr() as u64).to_ne_bytes();
    let half = |half: usize| array(&address[half * 4..]);
    (info[14], info[15]) = (half(0), half(1));
    object_info(descriptor.as_fd(), &mut info)?;
    let count = (info[13] as usize).min(MOST_MAPS);
    numbers[..count].iter().map(|number| by_number(BPF_MAP_GET_FD_BY_ID, *number)).collect()
}

/// The name of a program: at most 15 bytes.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`, `ENOENT`.
pub(crate) fn program_name(program: u32) -> io::Result<String> {
    let descriptor = by_number(BPF_PROG_GET_FD_BY_ID, program)?;
    let mut info = [0_u32; 20];
    object_info(descriptor.as_fd(), &mut info)?;
    Ok(text(&info[16..20]))
}

fn by_number(command: u32, number: u32) -> io::Result<OwnedFd> {
    let mut attributes = [number, 0, 0];
    // SAFETY: no member of the attributes is a pointer.
    unsafe { open(command, &mut attributes) }
}

/// A name as the kernel takes it: letters, digits, `_` and `.`, cut to what fits.
fn object_name(name: &str) -> [u8; NAME] {
    let mut bytes = [0; NAME];
    let len = name.len().min(NAME - 1);
    bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
    bytes
}

/// The text in these words, up to its final zero.
fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The first four bytes as a number; zero if there are fewer.
fn array(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

/// Fills `info` with what the kernel tells of an object. Where it holds no zeros before, it says where there
/// is room for lists.
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
    // SAFETY: the pointer is to as many bytes as `len` says, which outlive the call; what these point to is
    // null, or a list of the caller, with its length.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attributes) }.map(drop)
}

/// Calls bpf(2) with a command that opens a descriptor.
///
/// # Safety
/// As of [`bpf`].
unsafe fn open<T>(command: u32, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller's.
    let number = unsafe { bpf(command, attributes)? };
    // SAFETY: the call succeeded, so the descriptor is open and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
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
