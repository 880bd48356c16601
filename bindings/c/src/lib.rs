//! Flows for programs in C: the functions of `weft_flow.h`, which says what they do.
//!
//! Each function is a thin border: it checks its pointers for null, makes Rust values of them, and calls
//! `weft_flow::Client`. No panic crosses it (`guarded`). What a caller must keep to, besides what the
//! header says, is what C demands of every pointer: it points to as many bytes as were said, and a
//! `weft_flow *` came from `weft_flow_connect` and was not closed.

#![allow(unsafe_code, reason = "pointers of C callers; each block says what it relies on")]

use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::time::Duration;

use weft_flow::{Client, Error, Kind, Options, Sizes};

/// `WEFT_FLOW_ARGUMENT`.
const ARGUMENT: c_int = -11;
/// `WEFT_FLOW_BUG`.
const BUG: c_int = -12;
/// Longer than any program runs, and the sum with the time of day still is a time.
const FOR_EVER: Duration = Duration::from_secs(1 << 32);

thread_local! {
    /// Why the last call failed.
    static ERROR: RefCell<CString> = RefCell::default();
}

/// What a call failed with: its number, and the words are noted.
struct Failure(c_int);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
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
}

fn fail(number: c_int, words: &str) -> Failure {
    let words: Vec<u8> = words.bytes().filter(|byte| *byte != 0).collect();
    // A thread that is ending has nowhere to note it.
    let _ = ERROR.try_with(|error| *error.borrow_mut() = CString::new(words).unwrap_or_default());
    Failure(number)
}

fn argument(words: &str) -> Failure {
    fail(ARGUMENT, words)
}

/// Does the work of a call; a panic, which would be an error in here, becomes a number.
fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, c_int> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(Failure(number))) => Err(number),
        Err(_) => Err(fail(BUG, "the library failed inside: please report it").0),
    }
}

fn timeout(milliseconds: c_int) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
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
        Ok(Box::new(Client::connect(path, &options)?))
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
    number(guarded(|| {
        // SAFETY: as the caller promises.
        let client = unsafe { client(flow) }?;
        if bytes.is_null() && len > 0 {
            return Err(argument("the bytes are a null pointer"));
        }
        let bytes = match len {
            0 => &[],
            // SAFETY: not null, and as many bytes as the caller promises, which are only read.
            _ => unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) },
        };
        Ok(client.send(bytes, timeout(timeout_ms))?)
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
    number(guarded(|| {
        // SAFETY: as the caller promises.
        let client = unsafe { client(flow) }?;
        if buffer.is_null() || len == 0 {
            return Err(argument("there is no buffer to receive into"));
        }
        // SAFETY: not null, and as many bytes as the caller promises; they are only written, so that
        // it does not matter whether they were before.
        let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), len) };
        Ok(client.receive(buffer, timeout(timeout_ms))?)
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
    let attached = guarded(|| {
        // SAFETY: as the caller promises.
        let client = unsafe { client(flow) }?;
        Ok(client.reattach(timeout(timeout_ms).unwrap_or(FOR_EVER))?)
    });
    attached.map_or_else(|number| number, |()| 0)
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
    // The string stays where it is until the next failure of this thread.
    ERROR.try_with(|error| error.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

fn number(result: Result<usize, c_int>) -> i64 {
    // A slice has no more bytes than fit.
    result.map_or_else(i64::from, |len| len as i64)
}
