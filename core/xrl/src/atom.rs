//! The types of arguments in Rust.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use weft_base::Handle;

use crate::codec::{Decoder, Encoder, Malformed, tag, type_name};

/// A value that can be an argument.
pub trait Atom: Sized {
    /// The number of its type.
    const TAG: u8;

    /// Writes what a list says once for all its elements: nothing, but for records and lists.
    fn put_header(&self, _: &mut Encoder) {}

    /// Reads and checks what [`Atom::put_header`] writes.
    ///
    /// # Errors
    /// It is that of another type.
    fn take_header(_: &mut Decoder<'_>) -> Result<(), Malformed> {
        Ok(())
    }

    /// Writes the value.
    fn put(self, to: &mut Encoder);

    /// Reads an argument of this type, which is called `name` in errors.
    ///
    /// # Errors
    /// It is missing, of another type, or cut off.
    fn take_argument(from: &mut Decoder<'_>, name: &str) -> Result<Self, Malformed> {
        from.take_any(name)
    }

    /// Writes the value as an argument of its own, with its type in front.
    fn put_argument(self, to: &mut Encoder) {
        to.bytes(&[Self::TAG]);
        self.put_header(to);
        self.put(to);
    }

    /// Reads a value.
    ///
    /// # Errors
    /// The bytes are no such value, or end inside it.
    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed>;
}

/// A record of an interface; its [`Atom`] is made by [`record_is_atom`](crate::record_is_atom).
pub trait Record: Sized {
    /// The numbers of its fields' types.
    const LAYOUT: &'static [u8];

    /// Writes the fields.
    fn put_fields(self, to: &mut Encoder);

    /// Reads the fields.
    ///
    /// # Errors
    /// As [`Atom::take`].
    fn take_fields(from: &mut Decoder<'_>) -> Result<Self, Malformed>;
}

/// Makes a [`Record`] an [`Atom`]; for generated code.
#[macro_export]
macro_rules! record_is_atom {
    ($name:ident) => {
        impl $crate::Atom for $name {
            const TAG: u8 = $crate::tag::RECORD;

            fn put_header(&self, to: &mut $crate::Encoder) {
                $crate::put_layout(<Self as $crate::Record>::LAYOUT, to);
            }

            fn take_header(from: &mut $crate::Decoder<'_>) -> Result<(), $crate::Malformed> {
                $crate::take_layout(<Self as $crate::Record>::LAYOUT, from)
            }

            fn put(self, to: &mut $crate::Encoder) {
                $crate::Record::put_fields(self, to);
            }

            fn take(from: &mut $crate::Decoder<'_>) -> Result<Self, $crate::Malformed> {
                $crate::Record::take_fields(from)
            }
        }
    };
}

/// Writes the layout of a record.
pub fn put_layout(layout: &[u8], to: &mut Encoder) {
    // A record has at most 255 fields; the parser of interfaces sees to it.
    to.bytes(&[layout.len() as u8]);
    to.bytes(layout);
}

/// Reads the layout of a record and compares it.
///
/// # Errors
/// It is another one.
pub fn take_layout(layout: &[u8], from: &mut Decoder<'_>) -> Result<(), Malformed> {
    let len = from.byte()?;
    let found = from.slice(usize::from(len))?;
    if found == layout {
        return Ok(());
    }
    let names = |layout: &[u8]| {
        layout.iter().map(|&number| type_name(number)).collect::<Vec<_>>().join(", ")
    };
    Err(Malformed::new(format!(
        "the record's fields are ({}), expected ({})",
        names(found),
        names(layout)
    )))
}

macro_rules! numbers {
    ($($kind:ty, $tag:ident;)*) => {
        $(impl Atom for $kind {
            const TAG: u8 = tag::$tag;

            #[inline]
            fn put(self, to: &mut Encoder) {
                to.bytes(&self.to_le_bytes());
            }

            // In one piece: where a piece ends must be known before the next can be written.
            #[inline]
            fn put_argument(self, to: &mut Encoder) {
                let argument = to.room(1 + size_of::<Self>());
                argument[0] = Self::TAG;
                argument[1..].copy_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn take_argument(from: &mut Decoder<'_>, name: &str) -> Result<Self, Malformed> {
                let piece = from.piece(Self::TAG, 1 + size_of::<Self>());
                match piece.and_then(|argument| argument.last_chunk()) {
                    Some(value) => Ok(Self::from_le_bytes(*value)),
                    None => from.take_any(name),
                }
            }

            #[inline]
            fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
                Ok(Self::from_le_bytes(from.array()?))
            }
        })*
    };
}

numbers! {
    i32, I32;
    u32, U32;
    i64, I64;
    u64, U64;
    f64, FP64;
}

impl Atom for bool {
    const TAG: u8 = tag::BOOL;

    fn put(self, to: &mut Encoder) {
        to.bytes(&[u8::from(self)]);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        match from.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Malformed::new(format!("{other} is no truth value"))),
        }
    }
}

fn put_bytes(bytes: &[u8], to: &mut Encoder) {
    // A value of 4 GiB does not fit into a message, whose length is checked when it is sent.
    to.bytes(&(bytes.len() as u32).to_le_bytes());
    to.bytes(bytes);
}

fn take_bytes<'a>(from: &mut Decoder<'a>) -> Result<&'a [u8], Malformed> {
    let len = u32::from_le_bytes(from.array()?);
    from.slice(len as usize)
}

impl Atom for String {
    const TAG: u8 = tag::TXT;

    fn put(self, to: &mut Encoder) {
        put_bytes(self.as_bytes(), to);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let bytes = take_bytes(from)?;
        let text = str::from_utf8(bytes).map_err(|_| Malformed::new("a text is not UTF-8"))?;
        Ok(text.to_owned())
    }
}

/// Bytes without meaning for the transport.
#[derive(Clone, Debug, PartialEq, Eq, Default, Hash)]
pub struct Binary(pub Vec<u8>);

impl Atom for Binary {
    const TAG: u8 = tag::BINARY;

    fn put(self, to: &mut Encoder) {
        put_bytes(&self.0, to);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self(take_bytes(from)?.to_vec()))
    }
}

/// A 48-bit hardware address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl Atom for Mac {
    const TAG: u8 = tag::MAC;

    fn put(self, to: &mut Encoder) {
        to.bytes(&self.0);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        from.array().map(Self)
    }
}

/// An identifier of some network: an XID, a name prefix. What the bytes mean says the family.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    /// The number of the family.
    pub family: u16,
    /// At most 255 bytes; what is longer is cut when it is written.
    pub bytes: Vec<u8>,
}

impl Atom for Id {
    const TAG: u8 = tag::ID;

    fn put(self, to: &mut Encoder) {
        let len = self.bytes.len().min(255);
        to.bytes(&self.family.to_le_bytes());
        to.bytes(&[len as u8]);
        to.bytes(&self.bytes[..len]);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let family = u16::from_le_bytes(from.array()?);
        let len = from.byte()?;
        Ok(Self { family, bytes: from.slice(usize::from(len))?.to_vec() })
    }
}

impl Atom for Handle {
    const TAG: u8 = tag::HANDLE;

    fn put(self, to: &mut Encoder) {
        let index = to.handle(self);
        to.bytes(&[index]);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let index = from.byte()?;
        from.handle(index)
    }
}

impl Atom for Ipv4Addr {
    const TAG: u8 = tag::IPV4;

    fn put(self, to: &mut Encoder) {
        to.bytes(&self.octets());
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(from.array::<4>()?.into())
    }
}

impl Atom for Ipv6Addr {
    const TAG: u8 = tag::IPV6;

    fn put(self, to: &mut Encoder) {
        to.bytes(&self.octets());
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(from.array::<16>()?.into())
    }
}

impl Atom for IpAddr {
    const TAG: u8 = tag::IP;

    fn put(self, to: &mut Encoder) {
        match self {
            Self::V4(address) => {
                to.bytes(&[4]);
                address.put(to);
            }
            Self::V6(address) => {
                to.bytes(&[6]);
                address.put(to);
            }
        }
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        match from.byte()? {
            4 => Ipv4Addr::take(from).map(Self::V4),
            6 => Ipv6Addr::take(from).map(Self::V6),
            other => Err(Malformed::new(format!("{other} is no family of IP addresses"))),
        }
    }
}

fn prefix_error(error: ipnet::PrefixLenError) -> Malformed {
    Malformed::new(format!("a prefix is too long for its address: {error}"))
}

impl Atom for Ipv4Net {
    const TAG: u8 = tag::IPV4NET;

    fn put(self, to: &mut Encoder) {
        self.addr().put(to);
        to.bytes(&[self.prefix_len()]);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let address = Ipv4Addr::take(from)?;
        Self::new(address, from.byte()?).map_err(prefix_error)
    }
}

impl Atom for Ipv6Net {
    const TAG: u8 = tag::IPV6NET;

    fn put(self, to: &mut Encoder) {
        self.addr().put(to);
        to.bytes(&[self.prefix_len()]);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let address = Ipv6Addr::take(from)?;
        Self::new(address, from.byte()?).map_err(prefix_error)
    }
}

impl Atom for IpNet {
    const TAG: u8 = tag::IPNET;

    fn put(self, to: &mut Encoder) {
        self.addr().put(to);
        to.bytes(&[self.prefix_len()]);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let address = IpAddr::take(from)?;
        Self::new(address, from.byte()?).map_err(prefix_error)
    }
}

impl<T: Atom> Atom for Vec<T> {
    const TAG: u8 = tag::LIST;

    fn put(self, to: &mut Encoder) {
        to.bytes(&[T::TAG]);
        let count = self.len() as u32;
        let mut elements = self.into_iter();
        let Some(first) = elements.next() else {
            // An empty list says nothing of its elements' layout.
            return to.bytes(&count.to_le_bytes());
        };
        to.bytes(&count.to_le_bytes());
        first.put_header(to);
        first.put(to);
        for element in elements {
            element.put(to);
        }
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let found = from.byte()?;
        if found != T::TAG {
            return Err(Malformed::new(format!(
                "the list has elements of the type {}, expected {}",
                type_name(found),
                type_name(T::TAG)
            )));
        }
        let count = u32::from_le_bytes(from.array()?) as usize;
        if count == 0 {
            return Ok(Self::new());
        }
        T::take_header(from)?;
        // An element takes at least one byte, so that the count cannot ask for more than came.
        if count > from.left() {
            return Err(Malformed::short());
        }
        let mut elements = Self::with_capacity(count.min(from.left() / 4 + 1));
        for _ in 0..count {
            elements.push(T::take(from)?);
        }
        Ok(elements)
    }
}
