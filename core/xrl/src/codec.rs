//! Arguments on the wire.
//!
//! Reference: the packed arguments of XORP (libxipc, `xrl_atom.hh`), whose type numbers are kept. What
//! differs: numbers are little-endian, arguments stand in the order of the method's specification
//! and have no names, and a list says the type of its elements once.
//!
//! ```text
//! arguments  = { atom }                        in the order of the specification
//! atom       = tag(1) value                    tag 0: an optional argument that is left out
//! i32 u32    = 4 bytes        i64 u64 fp64 = 8 bytes        bool = 1 byte, 0 or 1
//! txt binary = length(4) bytes                  mac = 6 bytes
//! ipv4       = 4 bytes        ipv6  = 16 bytes  ip    = family(1, 4 or 6) address
//! ipv4net …  = address, prefix length(1)        id    = family(2) length(1) bytes
//! handle     = index(1) among the descriptors that came with the message
//! record     = fields(1) tag(1)… values         values without tags
//! list       = tag(1) [fields(1) tag(1)…] count(4) values
//! ```
//!
//! A reader therefore understands arguments without their specification, and a batch of a million
//! records costs nothing but its values.

use weft_base::{Buffer, Handle};

use crate::atom::Atom;

/// Numbers of types.
pub mod tag {
    #![allow(missing_docs, reason = "the names are the types of the module's text")]
    pub const ABSENT: u8 = 0;
    pub const I32: u8 = 1;
    pub const U32: u8 = 2;
    pub const IPV4: u8 = 3;
    pub const IPV4NET: u8 = 4;
    pub const IPV6: u8 = 5;
    pub const IPV6NET: u8 = 6;
    pub const MAC: u8 = 7;
    pub const TXT: u8 = 8;
    pub const LIST: u8 = 9;
    pub const BOOL: u8 = 10;
    pub const BINARY: u8 = 11;
    pub const I64: u8 = 12;
    pub const U64: u8 = 13;
    pub const FP64: u8 = 14;
    pub const IP: u8 = 15;
    pub const IPNET: u8 = 16;
    pub const ID: u8 = 17;
    pub const HANDLE: u8 = 18;
    pub const RECORD: u8 = 19;
}

/// Why bytes are not the arguments that were expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub(crate) String);

impl Malformed {
    /// The method's number is not one of the interface.
    #[must_use]
    pub fn no_method(number: u16) -> Self {
        Self(format!("the interface has no method number {number}"))
    }

    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    #[cold]
    pub(crate) fn short() -> Self {
        Self("the arguments end inside a value".to_owned())
    }

    #[cold]
    fn missing(name: &str) -> Self {
        Self(format!("the argument `{name}` is missing"))
    }

    #[cold]
    fn mistaken(name: &str, found: u8, expected: u8) -> Self {
        let (found, expected) = (type_name(found), type_name(expected));
        Self(format!("the argument `{name}` is a {found}, expected a {expected}"))
    }

    #[cold]
    fn in_argument(self, name: &str) -> Self {
        Self(format!("the argument `{name}`: {self}"))
    }
}

/// Writes arguments.
#[derive(Debug, Default)]
pub struct Encoder {
    buffer: Buffer,
    handles: Vec<Handle>,
}

impl Encoder {
    /// An encoder without arguments yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an argument.
    #[inline]
    pub fn put<T: Atom>(&mut self, value: T) {
        value.put_argument(self);
    }

    /// Adds an optional argument.
    pub fn put_optional<T: Atom>(&mut self, value: Option<T>) {
        match value {
            Some(value) => self.put(value),
            None => self.bytes(&[tag::ABSENT]),
        }
    }

    /// Adds bytes as they are. In line, so that a number of known length is stored and not copied.
    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.buffer.extend(bytes);
    }

    /// Room for `count` bytes more, to be filled.
    #[inline]
    pub(crate) fn room(&mut self, count: usize) -> &mut [u8] {
        self.buffer.push_back(count)
    }

    /// Adds a descriptor and says its index.
    pub(crate) fn handle(&mut self, handle: Handle) -> u8 {
        self.handles.push(handle);
        // More than the transports carry is refused there, long before the index wraps.
        (self.handles.len() - 1) as u8
    }

    /// What was written.
    #[must_use]
    pub fn finish(self) -> (Buffer, Vec<Handle>) {
        (self.buffer, self.handles)
    }
}

/// Reads arguments.
#[derive(Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    handles: Vec<Option<Handle>>,
}

impl<'a> Decoder<'a> {
    /// Reads `bytes`, which came with `handles`.
    #[must_use]
    pub fn new(bytes: &'a [u8], handles: Vec<Handle>) -> Self {
        Self { bytes, handles: handles.into_iter().map(Some).collect() }
    }

    /// The next argument, which is called `name` in errors.
    ///
    /// # Errors
    /// It is missing, left out, of another type, or cut off.
    #[inline]
    pub fn take<T: Atom>(&mut self, name: &str) -> Result<T, Malformed> {
        T::take_argument(self, name)
    }

    /// As [`Decoder::take`], of any type.
    pub(crate) fn take_any<T: Atom>(&mut self, name: &str) -> Result<T, Malformed> {
        match self.bytes.split_first() {
            Some((&first, rest)) if first == T::TAG => {
                self.bytes = rest;
                T::take_header(self)
                    .and_then(|()| T::take(self))
                    .map_err(|error| error.in_argument(name))
            }
            Some((&first, _)) if first != tag::ABSENT => {
                Err(Malformed::mistaken(name, first, T::TAG))
            }
            _ => Err(Malformed::missing(name)),
        }
    }

    /// The next argument, if it is not left out; at the end all are.
    ///
    /// # Errors
    /// It is of another type, or cut off.
    pub fn take_optional<T: Atom>(&mut self, name: &str) -> Result<Option<T>, Malformed> {
        match self.bytes.split_first() {
            None => Ok(None),
            Some((&tag::ABSENT, rest)) => {
                self.bytes = rest;
                Ok(None)
            }
            Some(_) => self.take(name).map(Some),
        }
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// There are more arguments than expected.
    pub fn finish(&self) -> Result<(), Malformed> {
        match self.bytes.len() {
            0 => Ok(()),
            _ => Err(Malformed("there are more arguments than the method has".to_owned())),
        }
    }

    /// Whether everything was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (first, rest) = self.bytes.split_first_chunk().ok_or_else(Malformed::short)?;
        self.bytes = rest;
        Ok(*first)
    }

    /// The next `len` bytes, if they are there and begin with `first`; else nothing is taken.
    #[inline]
    pub(crate) fn piece(&mut self, first: u8, len: usize) -> Option<&'a [u8]> {
        let (piece, rest) = self.bytes.split_at_checked(len)?;
        if piece.first() != Some(&first) {
            return None;
        }
        self.bytes = rest;
        Some(piece)
    }

    pub(crate) fn slice(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (first, rest) = self.bytes.split_at_checked(len).ok_or_else(Malformed::short)?;
        self.bytes = rest;
        Ok(first)
    }

    pub(crate) fn handle(&mut self, index: u8) -> Result<Handle, Malformed> {
        let slot = self.handles.get_mut(usize::from(index));
        slot.and_then(Option::take)
            .ok_or_else(|| Malformed(format!("no descriptor number {index} came with the call")))
    }
}

/// The word of a type's number.
pub(crate) fn type_name(number: u8) -> &'static str {
    const NAMES: [&str; 20] = [
        "missing argument",
        "i32",
        "u32",
        "ipv4",
        "ipv4net",
        "ipv6",
        "ipv6net",
        "mac",
        "txt",
        "list",
        "bool",
        "binary",
        "i64",
        "u64",
        "fp64",
        "ip",
        "ipnet",
        "id",
        "handle",
        "record",
    ];
    NAMES.get(usize::from(number)).copied().unwrap_or("value of an unknown type")
}

/// The arguments of a request or a reply.
pub trait Arguments: Sized {
    /// Writes them in the order of the specification.
    fn encode(self, to: &mut Encoder);

    /// Reads them.
    ///
    /// # Errors
    /// They are not those of the specification.
    fn decode(from: &mut Decoder<'_>) -> Result<Self, Malformed>;
}

impl Arguments for () {
    fn encode(self, _: &mut Encoder) {}

    fn decode(_: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(())
    }
}
