//! Requests to the kernel over rtnetlink, one at a time.
//!
//! Reference: RFC 3549 §2 (messages and attributes), netlink(7), rtnetlink(7).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                 length, this header included                  |
//! +-------------------------------+-------------------------------+
//! |             type              |             flags             |
//! +-------------------------------+-------------------------------+
//! |                        sequence number                        |
//! +---------------------------------------------------------------+
//! |                            port id                            |
//! +---------------------------------------------------------------+
//! |  fixed part of the type, then attributes: length, type, value
//! ```
//!
//! All numbers are in the byte order of the machine; attributes begin at multiples of four bytes.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const HEADER_LEN: usize = 16;
const ATTRIBUTE_HEADER_LEN: usize = 4;
/// Answers about one object are far smaller; the kernel cuts what does not fit.
const RECEIVE_BUFFER_LEN: usize = 32 * 1024;

/// Attribute of an error message: the kernel's explanation (linux/netlink.h, `NLMSGERR_ATTR_MSG`).
const ERROR_EXPLANATION: u16 = 1;
/// Flag of an error message: attributes follow (linux/netlink.h, `NLM_F_ACK_TLVS`).
const ERROR_HAS_ATTRIBUTES: u16 = 0x200;
/// Flag of an error message: the request is not repeated in it (linux/netlink.h, `NLM_F_CAPPED`).
const ERROR_IS_CAPPED: u16 = 0x100;

/// The kernel's refusal of a request.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: io::Error,
    explanation: Option<String>,
}

impl Refusal {
    /// The number of the error, as in errno(3).
    pub(crate) fn code(&self) -> Option<i32> {
        self.error.raw_os_error()
    }

    /// What the kernel said, in its own words if it used any.
    pub(crate) fn detail(&self) -> String {
        match &self.explanation {
            Some(explanation) => format!("{explanation}: {}", self.error),
            None => self.error.to_string(),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self { error, explanation: None }
    }
}

/// A request that is being written.
pub(crate) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// A request of this type, with `flags` beside "request" and "acknowledge".
    pub(crate) fn new(message_type: u16, flags: i32) -> Self {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
        let mut bytes = vec![0; HEADER_LEN];
        bytes[4..6].copy_from_slice(&message_type.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        Self { bytes }
    }

    /// Appends bytes of the fixed part.
    pub(crate) fn fixed(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    /// Appends an attribute.
    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        let start = self.bytes.len();
        self.bytes.extend([0; ATTRIBUTE_HEADER_LEN]);
        self.bytes.extend(value);
        self.close_attribute(start, kind);
        self
    }

    /// Appends an attribute that consists of the attributes which `content` appends.
    pub(crate) fn nested(mut self, kind: u16, content: impl FnOnce(Self) -> Self) -> Self {
        let start = self.bytes.len();
        self.bytes.extend([0; ATTRIBUTE_HEADER_LEN]);
        self = content(self);
        self.close_attribute(start, kind);
        self
    }

    /// Writes the header of the attribute that began at `start`, and pads it. No request of this
    /// crate has an attribute near 64 KiB.
    fn close_attribute(&mut self, start: usize, kind: u16) {
        let length = (self.bytes.len() - start) as u16;
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.bytes[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        self.bytes.resize(align(self.bytes.len()), 0);
    }

    /// What follows the header, as the kernel would send it back.
    #[cfg(test)]
    pub(crate) fn into_body(mut self) -> Vec<u8> {
        self.bytes.split_off(HEADER_LEN)
    }

    fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = self.bytes.len() as u32;
        self.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

/// A message of the kernel.
struct Message<'a> {
    message_type: u16,
    flags: u16,
    sequence: u32,
    body: &'a [u8],
}

/// Cuts the first message off `data`; `None` at the end or where the kernel's bytes make no sense.
fn next_message<'a>(data: &mut &'a [u8]) -> Option<Message<'a>> {
    let length = u32::from_ne_bytes(array(data, 0)?) as usize;
    let body = data.get(HEADER_LEN..length)?;
    let message = Message {
        message_type: u16::from_ne_bytes(array(data, 4)?),
        flags: u16::from_ne_bytes(array(data, 6)?),
        sequence: u32::from_ne_bytes(array(data, 8)?),
        body,
    };
    *data = data.get(align(length)..).unwrap_or_default();
    Some(message)
}

/// The attributes in `data`, up to the first one that makes no sense.
pub(crate) fn attributes(mut data: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(array(data, 0)?));
        let kind = u16::from_ne_bytes(array(data, 2)?) & libc::NLA_TYPE_MASK as u16;
        let value = data.get(ATTRIBUTE_HEADER_LEN..length)?;
        data = data.get(align(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The value of the first attribute of this kind in `data`.
pub(crate) fn attribute(data: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(data).find_map(|(found, value)| (found == kind).then_some(value))
}

/// The `N` bytes at `offset`, if they are there.
pub(crate) fn array<const N: usize>(data: &[u8], offset: usize) -> Option<[u8; N]> {
    data.get(offset..offset + N)?.try_into().ok()
}

const fn align(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// A socket to the network configuration of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    sequence: u32,
}

impl Socket {
    pub(crate) fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so the descriptor is open and nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let socket = Self { fd, sequence: 0 };
        socket.ask_for_explanations();
        Ok(socket)
    }

    /// Errors come with a sentence. Nothing is lost if the kernel does not know the option.
    fn ask_for_explanations(&self) {
        let on: libc::c_int = 1;
        // SAFETY: the pointer and the length describe `on`, which outlives the call.
        unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_NETLINK,
                libc::NETLINK_EXT_ACK,
                (&raw const on).cast(),
                size_of_val(&on) as libc::socklen_t,
            );
        }
    }

    /// Sends `request` and waits for the kernel's acknowledgement. Returns the body of the last
    /// message that came before it, empty if there was none.
    pub(crate) fn request(&mut self, request: Request) -> Result<Vec<u8>, Refusal> {
        self.sequence = self.sequence.wrapping_add(1);
        self.send(&request.finish(self.sequence))?;
        let mut answer = Vec::new();
        let mut buffer = vec![0; RECEIVE_BUFFER_LEN];
        loop {
            let length = self.receive(&mut buffer)?;
            let mut data = &buffer[..length];
            while let Some(message) = next_message(&mut data) {
                if message.sequence != self.sequence {
                    continue; // The end of an answer that an earlier error left unread.
                }
                if i32::from(message.message_type) == libc::NLMSG_ERROR {
                    return acknowledgement(&message).map(|()| answer);
                }
                answer = message.body.to_vec();
            }
        }
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: the pointer and the length describe `bytes`, which outlives the call.
        let sent =
            unsafe { libc::send(self.fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // SAFETY: the pointer and the length describe `buffer`, which outlives the call.
            let length = unsafe {
                libc::recv(self.fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0)
            };
            if length >= 0 {
                return Ok(length.unsigned_abs());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

/// Reads an error message: a code, which is zero for success, and the request it is about.
fn acknowledgement(message: &Message<'_>) -> Result<(), Refusal> {
    const CODE_LEN: usize = 4;
    let Some(code) = array(message.body, 0).map(i32::from_ne_bytes) else {
        return Err(io::Error::from(io::ErrorKind::InvalidData).into());
    };
    if code == 0 {
        return Ok(());
    }
    let explanation = (message.flags & ERROR_HAS_ATTRIBUTES != 0).then(|| {
        let request_len = array(message.body, CODE_LEN).map_or(0, u32::from_ne_bytes) as usize;
        let capped = message.flags & ERROR_IS_CAPPED != 0;
        let skipped = CODE_LEN + if capped { HEADER_LEN } else { align(request_len) };
        let text = attribute(message.body.get(skipped..)?, ERROR_EXPLANATION)?;
        let text = String::from_utf8_lossy(text);
        Some(text.trim_end_matches(['\0', '.']).to_owned())
    });
    Err(Refusal {
        error: io::Error::from_raw_os_error(code.wrapping_neg()),
        explanation: explanation.flatten(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_are_laid_out_as_rfc_3549_says() {
        let request = Request::new(36, libc::NLM_F_EXCL)
            .fixed(&[0xaa; 4])
            .nested(2, |options| options.attribute(1, b"abcde").attribute(3, &[]));
        let bytes = request.finish(7);
        let mut expected = Vec::new();
        expected.extend(40u32.to_ne_bytes());
        expected.extend(36u16.to_ne_bytes());
        expected.extend(0x205u16.to_ne_bytes()); // Request, acknowledge, exclusive.
        expected.extend(7u32.to_ne_bytes());
        expected.extend(0u32.to_ne_bytes());
        expected.extend([0xaa; 4]);
        for (length, kind, value) in [(20u16, 2u16, &b""[..]), (9, 1, b"abcde\0\0\0"), (4, 3, b"")]
        {
            expected.extend(length.to_ne_bytes());
            expected.extend(kind.to_ne_bytes());
            expected.extend(value);
        }
        assert_eq!(bytes, expected);
    }

    #[test]
    fn attributes_are_read_back() {
        let bytes = Request::new(0, 0)
            .nested(2, |options| options.attribute(1, b"abcde").attribute(3, b"x"))
            .finish(0);
        let options = attribute(&bytes[HEADER_LEN..], 2).unwrap();
        let read: Vec<_> = attributes(options).collect();
        assert_eq!(read, [(1, &b"abcde"[..]), (3, b"x")]);
        assert_eq!(attribute(options, 4), None);
    }

    // Both forms exist: the capped one repeats the header of the request alone.
    #[test]
    fn explanations_are_found_behind_the_request() {
        for (capped, request_len) in [(true, HEADER_LEN), (false, HEADER_LEN + 20)] {
            let mut body = (-libc::ENOENT).to_ne_bytes().to_vec();
            body.extend((HEADER_LEN as u32 + 20).to_ne_bytes());
            body.resize(4 + request_len, 0);
            body.extend(
                Request::new(0, 0).attribute(1, b"No such thing.\0").finish(0).split_off(16),
            );
            let flags = ERROR_HAS_ATTRIBUTES | if capped { ERROR_IS_CAPPED } else { 0 };
            let message = Message { message_type: 2, flags, sequence: 0, body: &body };
            let refusal = acknowledgement(&message).unwrap_err();
            assert_eq!(refusal.code(), Some(libc::ENOENT));
            assert!(refusal.detail().starts_with("No such thing: "), "{}", refusal.detail());
        }
    }

    #[test]
    fn the_kernel_refuses_a_request_that_makes_no_sense() {
        let mut socket = Socket::open().unwrap();
        // RTM_GETLINK for an interface that cannot exist: everybody may ask.
        let request =
            Request::new(libc::RTM_GETLINK, 0).fixed(&[0; 4]).fixed(&i32::MAX.to_ne_bytes());
        let refusal = socket.request(request.fixed(&[0; 8])).unwrap_err();
        assert_eq!(refusal.code(), Some(libc::ENODEV));
        // The socket goes on to work: the loopback interface has index 1 in every namespace.
        let request = Request::new(libc::RTM_GETLINK, 0).fixed(&[0; 4]).fixed(&1i32.to_ne_bytes());
        let answer = socket.request(request.fixed(&[0; 8])).unwrap();
        assert_eq!(attribute(&answer[16..], libc::IFLA_IFNAME), Some(&b"lo\0"[..]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_walked_to_an_end(bytes: Vec<u8>) {
            let _ = attributes(&bytes).count();
            let mut data = &bytes[..];
            while let Some(message) = next_message(&mut data) {
                let _ = acknowledgement(&message);
            }
        }
    }
}
