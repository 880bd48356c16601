//! Addresses in C: the texts of `weft_xia.h`, and its struct.

use std::ffi::{CStr, c_char, c_int};
use std::slice;

use weft_c_border::{Failure, argument, check_count, fail, guarded, length, status};
use weft_xia_sockets::{parse_address, tree};
use weft_xip::dag::ROW_LEN;
use weft_xip::numbers::MAX_NODES;
use weft_xip::{Address, Xid};

/// `WEFT_XIA_TOO_SMALL`.
pub(crate) const TOO_SMALL: c_int = -6;
/// `WEFT_XIA_BAD_ADDRESS`.
const BAD_ADDRESS: c_int = -13;

/// `weft_xia_address`: only bytes, so that every pattern of bits is one.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CAddress {
    count: u8,
    rows: [u8; MAX_NODES * ROW_LEN],
}

impl CAddress {
    /// No address.
    const NONE: Self = Self { count: 0, rows: [0; MAX_NODES * ROW_LEN] };

    /// The struct for an address, or for none.
    pub(crate) fn new(address: Option<&Address>) -> Self {
        let mut new = Self::NONE;
        if let Some(address) = address {
            new.count = address.len() as u8;
            // There is room for the most rows that an address has.
            let _ = address.emit(&mut new.rows);
        }
        new
    }

    /// The address, whose rows are not checked.
    pub(crate) fn read(&self) -> Result<Address, Failure> {
        let rows = self.rows.get(..usize::from(self.count) * ROW_LEN).unwrap_or_default();
        Address::from_bytes(rows).map_err(|_| {
            let words = format!("an address has 1 to {MAX_NODES} rows and not {}", self.count);
            fail(BAD_ADDRESS, &words)
        })
    }
}

/// The text that a caller gave.
///
/// # Safety
/// `text` is null or a string of C that lives as long as the result is used.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(argument(&format!("{what} is a null pointer")));
    }
    // SAFETY: not null, so a string of C, as the caller promises.
    let bytes = unsafe { CStr::from_ptr(text) };
    bytes.to_str().map_err(|_| fail(BAD_ADDRESS, &format!("{what} is no text")))
}

/// What is wrong with an address, in words.
pub(crate) fn bad(words: &impl ToString) -> Failure {
    fail(BAD_ADDRESS, &words.to_string())
}

/// Where a caller wants an address.
///
/// # Safety
/// `to` is null or points to a `weft_xia_address`.
pub(crate) unsafe fn put(to: *mut CAddress, address: &Address) -> Result<(), Failure> {
    if to.is_null() {
        return Err(argument("the address is a null pointer"));
    }
    // SAFETY: not null, so room for an address, as the caller promises.
    unsafe { to.write(CAddress::new(Some(address))) };
    Ok(())
}

/// Writes `words` and a zero to where a caller wants a text; returns the length of `words`.
///
/// # Safety
/// `to` is null or points to `len` bytes that nobody else uses meanwhile.
unsafe fn put_text(to: *mut c_char, len: usize, words: &str) -> Result<usize, Failure> {
    if to.is_null() {
        return Err(argument("the text is a null pointer"));
    }
    if len <= words.len() {
        let words = format!("the text has {} bytes and a zero, the buffer {len}", words.len());
        return Err(fail(TOO_SMALL, &words));
    }
    // SAFETY: not null, so as many bytes as the caller promises, and they are more than are written.
    unsafe {
        to.cast::<u8>().copy_from_nonoverlapping(words.as_ptr(), words.len());
        to.add(words.len()).write(0);
    }
    Ok(words.len())
}

/// The XIDs that a caller gave as texts.
///
/// # Safety
/// `xids` is null or points to `count` pointers, each null or a string of C.
unsafe fn xids(xids: *const *const c_char, count: usize) -> Result<Vec<Xid>, Failure> {
    if xids.is_null() && count > 0 {
        return Err(argument("the XIDs are a null pointer"));
    }
    check_count::<*const c_char>(count)?;
    let texts = match count {
        0 => &[],
        // SAFETY: not null, and as many pointers as the caller promises, which are only read.
        _ => unsafe { slice::from_raw_parts(xids, count) },
    };
    let read = |given: &*const c_char| {
        // SAFETY: as the caller promises.
        let given = unsafe { text(*given, "an XID") }?;
        given.parse().map_err(|error| bad(&format!("`{given}` is no XID: {error}")))
    };
    texts.iter().map(read).collect()
}

/// See `weft_xia.h`.
///
/// # Safety
/// `given` is null or a string of C; `address` is null or points to a `weft_xia_address`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_xia_parse(given: *const c_char, address: *mut CAddress) -> c_int {
    status(guarded(|| {
        // SAFETY: as the caller promises.
        let given = unsafe { text(given, "the text") }?;
        let parsed = parse_address(given).map_err(|words| bad(&words))?;
        // SAFETY: as the caller promises.
        unsafe { put(address, &parsed) }
    }))
}

/// See `weft_xia.h`.
///
/// # Safety
/// `address` is null or points to a `weft_xia_address`; `to` is null or points to `len` bytes that nobody
/// else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_xia_text(
    address: *const CAddress,
    to: *mut c_char,
    len: usize,
) -> i64 {
    length(guarded(|| {
        // SAFETY: as the caller promises.
        let address = unsafe { given(address) }?;
        // SAFETY: as the caller promises.
        unsafe { put_text(to, len, &address.to_string()) }
    }))
}

/// The address that a caller gave.
///
/// # Safety
/// `address` is null or points to a `weft_xia_address`.
pub(crate) unsafe fn given(address: *const CAddress) -> Result<Address, Failure> {
    // SAFETY: as the caller promises.
    let address = unsafe { address.as_ref() };
    address.ok_or_else(|| argument("the address is a null pointer"))?.read()
}

/// See `weft_xia.h`.
///
/// # Safety
/// `path` points to `count` strings of C; `address` is null or points to a `weft_xia_address`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_xia_path(
    path: *const *const c_char,
    count: usize,
    address: *mut CAddress,
) -> c_int {
    status(guarded(|| {
        // SAFETY: as the caller promises.
        let path = unsafe { xids(path, count) }?;
        let built = Address::scoping(&path).map_err(|error| bad(&error))?;
        // SAFETY: as the caller promises.
        unsafe { put(address, &built) }
    }))
}

/// See `weft_xia.h`.
///
/// # Safety
/// `links` points to `count` strings of C; `to` is null or points to `len` bytes that nobody else uses
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_xia_tree(
    links: *const *const c_char,
    count: usize,
    to: *mut c_char,
    len: usize,
) -> i64 {
    length(guarded(|| {
        // SAFETY: as the caller promises.
        let links = unsafe { xids(links, count) }?;
        let filter = tree(&links).map_err(|error| bad(&error))?;
        // SAFETY: as the caller promises.
        unsafe { put_text(to, len, &filter.to_string()) }
    }))
}
