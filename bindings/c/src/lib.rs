//! Flows for programs in C: the functions of `weft_flow.h`, which says what they do.
//!
//! Each function is a thin border: it checks its pointers for null, makes Rust values of them, and calls
//! `weft_flow::Client`. No panic crosses it (`guarded`). What a caller must keep to, besides what the
//! header says, is what C demands of every pointer: it points to as many bytes as were said, and a
//! `weft_flow *` came from `weft_flow_connect` and was not closed.

#![allow(unsafe_code, reason = "pointers of C callers; each block says what it relies on")]

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use weft_c_border::{
    FOR_EVER, Failure, argument, check_count, fail, guarded, length, status, timeout,
};
use weft_flow::{Client, Error, Kind, Options, Sizes};

/// The number of the header for what went wrong; the words are noted.
fn failure(error: Error) -> Failure {
    let number = match &error {
        Error::Closed => -1,
        Error::Hostile { .. } => -2,
        Error::TimedOut => -3,
        Error::Empty => -4,
        Error::TooLong { .. } => -5,
        Error::BufferTooSmall { .. } => -6,
        Error::NoStack { .. } => -7,
        Error::Refused { .. } => -8,
        Error::NotAFlow { .. } => -9,
        Error::System { .. } => -10,
    };
    fail(number, &error.to_string())
}

/// The flow that a caller means.
///
/// # Safety
/// `flow` is null, or came from `weft_flow_connect`, was not closed, and no other call uses it.
unsafe fn client<'a>(flow: *mut Client) -> Result<&'a mut Client, Failure> {
    // SAFETY: as the caller promises.
    unsafe { flow.as_mut() }.ok_or_else(|| argument("the flow is a null pointer"))
}

/// See `weft_flow.h`.
///
/// # Safety
/// `path` is null or a string of C; `error` is null or points to an `int`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_flow_connect(
    path: *const c_char,
    kind: c_int,
    up: u32,
    down: u32,
    timeout_ms: c_int,
    error: *mut c_int,
) -> *mut Client {
    let connected = guarded(|| {
        if path.is_null() {
            return Err(argument("the path is a null pointer"));
        }
        // SAFETY: not null, so a string of C, as the caller promises.
        let path = OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes());
        let kind = match kind {
            1 => Kind::Datagram,
            2 => Kind::Stream,
            _ => return Err(argument("the kind is neither WEFT_FLOW_DATAGRAM nor _STREAM")),
        };
        let usual = Options::new(kind);
        let patience = timeout(timeout_ms).unwrap_or(usual.patience);
        let options = Options { sizes: Sizes { up, down }, patience, ..usual };
        Client::connect(path, &options).map(Box::new).map_err(failure)
    });
    match connected {
        Ok(client) => Box::into_raw(client),
        Err(number) => {
            if !error.is_null() {
                // SAFETY: not null, so an `int`, as the caller promises.
                unsafe { error.write(number) };
            }
            ptr::null_mut()
        }
    }
}

/// See `weft_flow.h`.
///
/// # Safety
/// `flow` as `client` says; `bytes` points to `len` bytes, or `len` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_flow_send(
    flow: *mut Client,
    bytes: *const c_void,
    len: usize,
    timeout_ms: c_int,
) -> i64 {
    length(guarded(|| {
        // SAFETY: as the caller promises.
        let client = unsafe { client(flow) }?;
        if bytes.is_null() && len > 0 {
            return Err(argument("the bytes are a null pointer"));
        }
        check_count::<u8>(len)?;
        let bytes = match len {
            0 => &[],
            // SAFETY: not null, and as many bytes as the caller promises, which are only read.
            _ => unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) },
        };
        client.send(bytes, timeout(timeout_ms)).map_err(failure)
    }))
}

/// See `weft_flow.h`.
///
/// # Safety
/// `flow` as `client` says; `buffer` points to `len` bytes that nobody else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_flow_recv(
    flow: *mut Client,
    buffer: *mut c_void,
    len: usize,
    timeout_ms: c_int,
) -> i64 {
    length(guarded(|| {
        // SAFETY: as the caller promises.
        let client = unsafe { client(flow) }?;
        if buffer.is_null() || len == 0 {
            return Err(argument("there is no buffer to receive into"));
        }
        check_count::<u8>(len)?;
        // SAFETY: not null, and as many bytes as the caller promises; they are only written, so that
        // it does not matter whether they were before.
        let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), len) };
        client.receive(buffer, timeout(timeout_ms)).map_err(failure)
    }))
}

/// See `weft_flow.h`.
///
/// # Safety
/// `flow` as `client` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_flow_fd(flow: *const Client) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { descriptor(flow, Client::fd) }
}

/// See `weft_flow.h`.
///
/// # Safety
/// `flow` as `client` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_flow_room_fd(flow: *const Client) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { descriptor(flow, Client::room_fd) }
}

/// # Safety
/// `flow` as `client` says.
unsafe fn descriptor(flow: *const Client, which: fn(&Client) -> BorrowedFd<'_>) -> c_int {
    let found = guarded(|| {
        // SAFETY: as the caller promises.
        let client = unsafe { client(flow.cast_mut()) }?;
        Ok(which(client).as_raw_fd())
    });
    found.unwrap_or_else(|number| number)
}

/// See `weft_flow.h`.
///
/// # Safety
/// `flow` as `client` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_flow_reattach(flow: *mut Client, timeout_ms: c_int) -> c_int {
    status(guarded(|| {
        // SAFETY: as the caller promises.
        let client = unsafe { client(flow) }?;
        client.reattach(timeout(timeout_ms).unwrap_or(FOR_EVER)).map_err(failure)
    }))
}

/// See `weft_flow.h`.
///
/// # Safety
/// `flow` as `client` says; it is gone afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_flow_close(flow: *mut Client) {
    if !flow.is_null() {
        // SAFETY: not null, so it came from `Box::into_raw` in `weft_flow_connect`, as the caller
        // promises, and nobody uses it any more.
        let client = unsafe { Box::from_raw(flow) };
        let _ = guarded(|| {
            drop(client);
            Ok(())
        });
    }
}

/// See `weft_flow.h`.
#[unsafe(no_mangle)]
pub extern "C" fn weft_flow_error() -> *const c_char {
    weft_c_border::error()
}
