//! What of bpf(2) works on maps of any form.
//!
//! Keys and values are bytes; whoever calls sees to it that they have the sizes of the map.
//!
//! Reference: bpf(2); linux/bpf.h (`union bpf_attr`, `BPF_MAP_*`).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::AtomicU64;

use weft_mapping::{Fill, Mapping};

use super::{BPF_MAP_CREATE, BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM, NAME};
use super::{bpf, object_info, object_name, open};

const BPF_MAP_DELETE_ELEM: u32 = 3;

/// Type, bytes of a key, bytes of a value, elements, flags: as the kernel counts them.
pub(crate) type Form = [u32; 5];

pub(crate) fn create(form: Form, name: &str) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Attributes {
        form: Form,
        inner: u32,
        node: u32,
        name: [u8; NAME],
    }
    let mut attributes = Attributes { form, inner: 0, node: 0, name: object_name(name) };
    // SAFETY: no member of the attributes is a pointer.
    unsafe { open(BPF_MAP_CREATE, &mut attributes) }
}

/// The form of a map.
pub(crate) fn form(map: BorrowedFd<'_>) -> io::Result<Form> {
    // type, id, size of keys, size of values, elements, flags, name, and room for what later kernels tell.
    let mut info = [0_u32; 24];
    object_info(map, &mut info)?;
    Ok([info[0], info[2], info[3], info[4], info[5]])
}

#[repr(C)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

impl Element {
    fn new(map: BorrowedFd<'_>, key: *const u8, value: *const u8) -> Self {
        let map = map.as_raw_fd().cast_unsigned();
        Self { map, padding: 0, key: key as u64, value: value as u64, flags: 0 }
    }
}

/// Reads the value of a key; false if there is none.
///
/// # Safety
/// Both have the sizes that the map has; of a map per processor the value has as many as there can be.
pub(crate) unsafe fn get(map: BorrowedFd<'_>, key: &[u8], value: &mut [u8]) -> io::Result<bool> {
    let mut element = Element::new(map, key.as_ptr(), value.as_mut_ptr());
    // SAFETY: the pointers are to a key and a value of the sizes that the map has.
    found(unsafe { bpf(BPF_MAP_LOOKUP_ELEM, &mut element) })
}

/// Writes the value of a key.
///
/// # Safety
/// Both have the sizes that the map has.
pub(crate) unsafe fn set(map: BorrowedFd<'_>, key: &[u8], value: &[u8]) -> io::Result<()> {
    let mut element = Element::new(map, key.as_ptr(), value.as_ptr());
    // SAFETY: the pointers are to a key and a value of the sizes that the map has.
    unsafe { bpf(BPF_MAP_UPDATE_ELEM, &mut element) }.map(drop)
}

/// Removes a key; false if it is not there.
///
/// # Safety
/// The key has the size that the map has.
pub(crate) unsafe fn remove(map: BorrowedFd<'_>, key: &[u8]) -> io::Result<bool> {
    let mut element = Element::new(map, key.as_ptr(), ptr::null());
    // SAFETY: the pointer is to a key of the size that the map has.
    found(unsafe { bpf(BPF_MAP_DELETE_ELEM, &mut element) })
}

fn found(result: io::Result<i32>) -> io::Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The memory of an array that was made for it (`BPF_F_MMAPABLE`), until this is dropped.
#[derive(Debug)]
pub(crate) struct Memory(Mapping);

impl Memory {
    /// Maps the first `words` of the array's values; the kernel refuses more than the array has.
    pub(crate) fn map(map: BorrowedFd<'_>, words: usize) -> io::Result<Self> {
        Mapping::new(map, 0, words * size_of::<u64>(), Fill::Later).map(Self)
    }

    pub(crate) fn words(&self) -> &[AtomicU64] {
        let words = self.0.len() / size_of::<u64>();
        // SAFETY: as many words are mapped at this address, which is that of a page, until `self` goes;
        // the kernel and other processes change them, which atomic words allow.
        unsafe { std::slice::from_raw_parts(self.0.start().as_ptr().cast(), words) }
    }
}
