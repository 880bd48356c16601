//! System calls as an attacker makes them, with whatever arguments a test names.

#![allow(unsafe_code, reason = "the kernel is asked what no safe function asks for")]

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};

/// Makes the system call `number`. An argument is a number, `$NAME` for a descriptor that is held, or
/// `@HEX` for a pointer to these bytes. Returns `ok` with the result, or `error` with its number.
pub(crate) fn call(number: &str, arguments: &[&str], held: &BTreeMap<String, OwnedFd>) -> String {
    let mut buffers: Vec<Vec<u8>> = Vec::new();
    let mut values = [0_i64; 6];
    for (value, argument) in values.iter_mut().zip(arguments) {
        *value = if let Some(name) = argument.strip_prefix('$') {
            held[name].as_raw_fd().into()
        } else if let Some(hex) = argument.strip_prefix('@') {
            buffers.push(bytes(hex));
            buffers.last_mut().unwrap().as_mut_ptr() as i64
        } else {
            argument.parse().unwrap()
        };
    }
    let [a, b, c, d, e, f] = values;
    // SAFETY: none in general: a test asks for calls that fail, or that touch the buffers only.
    let result = unsafe { libc::syscall(number.parse().unwrap(), a, b, c, d, e, f) };
    said(result)
}

/// Sends one byte over a socket, to an address given in bytes, by sendmsg(2) or, as one of `many`, by
/// sendmmsg(2).
pub(crate) fn send_message(socket: &OwnedFd, address: &str, many: bool) -> String {
    let (mut address, mut byte) = (bytes(address), 0_u8);
    let mut slice = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: all bytes zero are an mmsghdr.
    let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
    message.msg_hdr.msg_name = address.as_mut_ptr().cast();
    message.msg_hdr.msg_namelen = address.len() as u32;
    message.msg_hdr.msg_iov = &raw mut slice;
    message.msg_hdr.msg_iovlen = 1;
    // SAFETY: the message and what it points to live on.
    said(unsafe {
        match many {
            true => libc::sendmmsg(socket.as_raw_fd(), &raw mut message, 1, 0) as i64,
            false => libc::sendmsg(socket.as_raw_fd(), &raw const message.msg_hdr, 0) as i64,
        }
    })
}

/// Loads a program of two instructions (return 0) of a type of `enum bpf_prog_type`.
pub(crate) fn load_program(kind: &str) -> String {
    const CODE: [u64; 2] = [0xb7, 0x95];
    let licence = c"GPL";
    let mut attributes = [0_u8; 128];
    attributes[0..4].copy_from_slice(&kind.parse::<u32>().unwrap().to_ne_bytes());
    attributes[4..8].copy_from_slice(&2_u32.to_ne_bytes());
    attributes[8..16].copy_from_slice(&(CODE.as_ptr() as u64).to_ne_bytes());
    attributes[16..24].copy_from_slice(&(licence.as_ptr() as u64).to_ne_bytes());
    bpf(5, &attributes)
}

/// Makes a map with keys of 8 bytes, values of 4 and room for 4, of a type of `enum bpf_map_type`.
pub(crate) fn make_map(kind: &str, flags: u32) -> String {
    let mut attributes = [0_u8; 128];
    for (place, value) in [kind.parse::<u32>().unwrap(), 8, 4, 4, flags].into_iter().enumerate() {
        attributes[4 * place..4 * place + 4].copy_from_slice(&value.to_ne_bytes());
    }
    bpf(0, &attributes)
}

/// Writes an element of a map of which a descriptor is held.
pub(crate) fn update_map(map: &OwnedFd) -> String {
    let (key, value) = (7_u64, 9_u32);
    let mut attributes = [0_u8; 128];
    attributes[0..4].copy_from_slice(&map.as_raw_fd().to_ne_bytes());
    attributes[8..16].copy_from_slice(&(&raw const key as u64).to_ne_bytes());
    attributes[16..24].copy_from_slice(&(&raw const value as u64).to_ne_bytes());
    bpf(2, &attributes)
}

fn bpf(command: i64, attributes: &[u8; 128]) -> String {
    // SAFETY: the attributes, and what they point to, live on; their length is given.
    said(unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), attributes.len()) })
}

fn said(result: i64) -> String {
    match result {
        0.. => format!("ok {result}"),
        _ => format!("error {}", std::io::Error::last_os_error().raw_os_error().unwrap()),
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let pair = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(pair).collect()
}
