//! Sockets in C: an [`XdpSocket`], and the datagram that a caller's buffer was too small for.

use std::ffi::{OsStr, c_char, c_int, c_void};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::time::Duration;

use weft_c_border::{
    FOR_EVER, Failure, argument, check_count, fail, guarded, length, status, timeout,
};
use weft_flow::Error;
use weft_xia_sockets::{SocketError, XdpSocket, parse_bind};
use weft_xip::Address;

use crate::address::{CAddress, TOO_SMALL, bad, given, put, text};

/// How long to wait for a node if the caller has no wish.
const PATIENCE: Duration = Duration::from_secs(5);

/// `weft_xia_socket`.
pub struct Socket {
    socket: XdpSocket,
    /// A datagram that came and has not been taken.
    waiting: Option<(Vec<u8>, Option<Address>)>,
}

/// The number of the header for what went wrong; the words are noted.
fn failure(error: SocketError) -> Failure {
    let number = match &error {
        SocketError::Closed => -1,
        SocketError::Flow(Error::Hostile { .. }) => -2,
        SocketError::TimedOut => -3,
        SocketError::Flow(Error::TooLong { .. }) => -5,
        SocketError::NoNode(_) => -7,
        SocketError::Refused(_) => -8,
        SocketError::Flow(_) => -10,
    };
    fail(number, &error.to_string())
}

/// The socket that a caller means.
///
/// # Safety
/// `socket` is null, or came from `weft_xia_open`, was not closed, and no other call uses it.
unsafe fn own<'a>(socket: *mut Socket) -> Result<&'a mut Socket, Failure> {
    // SAFETY: as the caller promises.
    unsafe { socket.as_mut() }.ok_or_else(|| argument("the socket is a null pointer"))
}

impl Socket {
    fn open(node: &Path, bind: &str, patience: Duration) -> Result<Self, Failure> {
        let request = parse_bind(bind).map_err(|words| bad(&words))?;
        let socket = XdpSocket::bind_within(node, request, patience).map_err(failure)?;
        Ok(Self { socket, waiting: None })
    }

    /// The datagram that comes next; it has to be put back if it is not taken.
    fn next(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<(Vec<u8>, Option<Address>), SocketError> {
        if let Some(waiting) = self.waiting.take() {
            return Ok(waiting);
        }
        self.socket.set_timeout(timeout);
        self.socket.recv_from()
    }

    fn receive(
        &mut self,
        buffer: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<(usize, Option<Address>), Failure> {
        let (payload, from) = self.next(timeout).map_err(failure)?;
        let (needed, room) = (payload.len(), buffer.len());
        let Some(buffer) = buffer.get_mut(..needed) else {
            self.waiting = Some((payload, from));
            let words = format!(
                "the next datagram has {needed} bytes and the buffer {room}: receive with a larger one"
            );
            return Err(fail(TOO_SMALL, &words));
        };
        buffer.copy_from_slice(&payload);
        Ok((needed, from))
    }
}

/// See `weft_xia.h`.
///
/// # Safety
/// `node` and `bind` are null or strings of C; `error` is null or points to an `int`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_xia_open(
    node: *const c_char,
    bind: *const c_char,
    timeout_ms: c_int,
    error: *mut c_int,
) -> *mut Socket {
    let opened = guarded(|| {
        if node.is_null() {
            return Err(argument("the path of the node's socket is a null pointer"));
        }
        // SAFETY: not null, so a string of C, as the caller promises.
        let node = unsafe { std::ffi::CStr::from_ptr(node) };
        let node = Path::new(OsStr::from_bytes(node.to_bytes()));
        let bind = match bind.is_null() {
            true => "xdp",
            // SAFETY: as the caller promises.
            false => unsafe { text(bind, "what to bind to") }?,
        };
        Socket::open(node, bind, timeout(timeout_ms).unwrap_or(PATIENCE)).map(Box::new)
    });
    match opened {
        Ok(socket) => Box::into_raw(socket),
        Err(number) => {
            if !error.is_null() {
                // SAFETY: not null, so an `int`, as the caller promises.
                unsafe { error.write(number) };
            }
            ptr::null_mut()
        }
    }
}

/// See `weft_xia.h`.
///
/// # Safety
/// `socket` as `own` says; `address` is null or points to a `weft_xia_address`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_xia_local(socket: *const Socket, address: *mut CAddress) -> c_int {
    status(guarded(|| {
        // SAFETY: as the caller promises.
        let socket = unsafe { own(socket.cast_mut()) }?;
        // SAFETY: as the caller promises.
        unsafe { put(address, socket.socket.address()) }
    }))
}

/// See `weft_xia.h`.
///
/// # Safety
/// `socket` as `own` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_xia_set_hop_limit(socket: *mut Socket, hops: c_int) -> c_int {
    status(guarded(|| {
        // SAFETY: as the caller promises.
        let socket = unsafe { own(socket) }?;
        let hops = u8::try_from(hops)
            .map_err(|_| argument(&format!("a hop limit is 0 to 255 and not {hops}")))?;
        socket.socket.set_hop_limit(hops);
        Ok(())
    }))
}

/// See `weft_xia.h`.
///
/// # Safety
/// `socket` as `own` says; `bytes` points to `len` bytes, or `len` is 0; `to` is null or points to a
/// `weft_xia_address`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_xia_send(
    socket: *mut Socket,
    bytes: *const c_void,
    len: usize,
    to: *const CAddress,
    timeout_ms: c_int,
) -> i64 {
    length(guarded(|| {
        // SAFETY: as the caller promises.
        let socket = unsafe { own(socket) }?;
        // SAFETY: as the caller promises.
        let to = unsafe { given(to) }?;
        if bytes.is_null() && len > 0 {
            return Err(argument("the bytes are a null pointer"));
        }
        check_count::<u8>(len)?;
        let bytes = match len {
            0 => &[],
            // SAFETY: not null, and as many bytes as the caller promises, which are only read.
            _ => unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) },
        };
        socket.socket.set_timeout(timeout(timeout_ms));
        socket.socket.send_to(bytes, &to).map_err(failure)?;
        Ok(len)
    }))
}

/// See `weft_xia.h`.
///
/// # Safety
/// `socket` as `own` says; `buffer` points to `len` bytes that nobody else uses meanwhile; `from` is null
/// or points to a `weft_xia_address`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_xia_recv(
    socket: *mut Socket,
    buffer: *mut c_void,
    len: usize,
    from: *mut CAddress,
    timeout_ms: c_int,
) -> i64 {
    length(guarded(|| {
        // SAFETY: as the caller promises.
        let socket = unsafe { own(socket) }?;
        if buffer.is_null() && len > 0 {
            return Err(argument("the buffer is a null pointer"));
        }
        check_count::<u8>(len)?;
        let buffer = match len {
            0 => &mut [],
            // SAFETY: not null, and as many bytes as the caller promises; they are only written, so
            // that it does not matter whether they were before.
            _ => unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), len) },
        };
        let (received, source) = socket.receive(buffer, timeout(timeout_ms))?;
        if !from.is_null() {
            // SAFETY: not null, so room for an address, as the caller promises.
            unsafe { from.write(CAddress::new(source.as_ref())) };
        }
        Ok(received)
    }))
}

/// See `weft_xia.h`.
///
/// # Safety
/// `socket` as `own` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_xia_fd(socket: *const Socket) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { descriptor(socket, XdpSocket::as_fd) }
}

/// See `weft_xia.h`.
///
/// # Safety
/// `socket` as `own` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_xia_room_fd(socket: *const Socket) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { descriptor(socket, XdpSocket::room_fd) }
}

/// # Safety
/// `socket` as `own` says.
unsafe fn descriptor(socket: *const Socket, which: fn(&XdpSocket) -> BorrowedFd<'_>) -> c_int {
    let found = guarded(|| {
        // SAFETY: as the caller promises.
        let socket = unsafe { own(socket.cast_mut()) }?;
        Ok(which(&socket.socket).as_raw_fd())
    });
    found.unwrap_or_else(|number| number)
}

/// See `weft_xia.h`.
///
/// # Safety
/// `socket` as `own` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_xia_reattach(socket: *mut Socket, timeout_ms: c_int) -> c_int {
    status(guarded(|| {
        // SAFETY: as the caller promises.
        let socket = unsafe { own(socket) }?;
        socket.socket.reattach(timeout(timeout_ms).unwrap_or(FOR_EVER)).map_err(failure)
    }))
}

/// See `weft_xia.h`.
///
/// # Safety
/// `socket` as `own` says; it is gone afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_xia_close(socket: *mut Socket) {
    if !socket.is_null() {
        // SAFETY: not null, so it came from `Box::into_raw` in `weft_xia_open`, as the caller promises,
        // and nobody uses it any more.
        let socket = unsafe { Box::from_raw(socket) };
        let _ = guarded(|| {
            drop(socket);
            Ok(())
        });
    }
}

/// See `weft_xia.h`.
#[unsafe(no_mangle)]
pub extern "C" fn weft_xia_error() -> *const c_char {
    weft_c_border::error()
}
