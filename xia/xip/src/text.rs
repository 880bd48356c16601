//! The text form of XIDs, and the scanner that address text shares.
//!
//! Reference: the text that AltraMayor/xiaconf (`libxia`), the logs of AltraMayor/XIA-for-Linux
//! and Wireshark's XIP dissector use.
//!
//! ```text
//! xid  := type "-" 40 hex digits
//! type := name | "0x" 1 to 8 hex digits
//! ```
//!
//! Upper and lower case are the same on input. Output is in lower case, with the principal's name
//! if it is known and else its number. Errors name the byte at which the text stops being an XID.

use std::fmt;
use std::str::FromStr;

use crate::numbers::{MAX_FAN_OUT, MAX_NAME_LEN, MAX_NODES};
use crate::principal_map::Names;
use crate::xid::{ID_LEN, Xid, XidType};

/// A text that is no XID or no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {kind}")]
pub struct TextError {
    /// Offset in bytes of the place where the text goes wrong, counted from 0.
    pub at: usize,
    /// What is wrong there.
    pub kind: TextErrorKind,
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextErrorKind {
    /// A row begins with something else than a type.
    #[error("expected a principal's name or number, as in `hid` or `0x11`")]
    ExpectedType,
    /// The name is longer than any name can be.
    #[error("a principal's name has at most {MAX_NAME_LEN} characters, this one has {len}")]
    NameTooLong {
        /// Length of the name.
        len: usize,
    },
    /// No principal has this name.
    #[error(
        "no principal is named `{name}`; use its number, as in `0x11`, or name it in the principal map"
    )]
    UnknownName {
        /// The name.
        name: String,
    },
    /// The digits after `0x` are missing, too many or not hexadecimal.
    #[error("a principal's number has 1 to 8 hexadecimal digits after `0x`")]
    TypeNumber,
    /// The type is not followed by `-`.
    #[error("expected `-` between the type and the identifier")]
    ExpectedDash,
    /// The identifier is too short.
    #[error("expected a hexadecimal digit; an identifier has 40 of them, here are {found}")]
    ExpectedHexDigit {
        /// Digits before this place.
        found: usize,
    },
    /// A single XID is followed by something.
    #[error("expected the end of the XID after 40 hexadecimal digits")]
    ExpectedEndOfXid,
    /// An identifier is followed by something that cannot stand there.
    #[error("expected `-` and edges, `:` and another row, or the end of the address")]
    ExpectedEdgesOrRow,
    /// No edge after `-` or `>`.
    #[error("expected an edge: a digit, a letter or `*`, with `>` before it if it was chosen")]
    ExpectedEdge,
    /// A node has more than four edges.
    #[error("a node has at most {MAX_FAN_OUT} edges")]
    TooManyEdges,
    /// Edges are followed by something that cannot stand there.
    #[error("expected another edge, `:` and another row, or the end of the address")]
    ExpectedRow,
    /// A tenth row.
    #[error("an address has at most {MAX_NODES} nodes")]
    TooManyRows,
    /// Something after the line feed that ends the address.
    #[error("expected the end of the address after the line feed")]
    ExpectedEnd,
}

/// Reads a text byte by byte and knows where it is.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, at: 0 }
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips one byte. Callers have peeked at it and it was ASCII.
    pub(crate) fn skip(&mut self) {
        self.at += 1;
    }

    /// Skips `byte` if it comes next.
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn error(&self, kind: TextErrorKind) -> TextError {
        TextError { at: self.at, kind }
    }

    /// `type "-" 40 hex digits`
    pub(crate) fn xid(&mut self, names: &Names) -> Result<Xid, TextError> {
        let kind = self.xid_type(names)?;
        if !self.eat(b'-') {
            return Err(self.error(TextErrorKind::ExpectedDash));
        }
        let rest = &self.text.as_bytes()[self.at..];
        let digits = &rest[..rest.len().min(2 * ID_LEN)];
        let found = digits.iter().take_while(|byte| nibble(**byte).is_some()).count();
        self.at += found;
        if found < 2 * ID_LEN {
            return Err(self.error(TextErrorKind::ExpectedHexDigit { found }));
        }
        let mut id = [0; ID_LEN];
        for (byte, digits) in id.iter_mut().zip(digits.chunks_exact(2)) {
            // All of them are digits.
            *byte = nibble(digits[0]).unwrap_or(0) << 4 | nibble(digits[1]).unwrap_or(0);
        }
        Ok(Xid { kind, id })
    }

    fn xid_type(&mut self, names: &Names) -> Result<XidType, TextError> {
        let rest = &self.text[self.at..];
        let is_part = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'-' | b':');
        let len = rest.bytes().take_while(is_part).count();
        let word = &rest[..len];
        let kind = if word.is_empty() {
            Err(TextErrorKind::ExpectedType)
        } else if let Some(digits) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            parse_type_number(digits).ok_or(TextErrorKind::TypeNumber)
        } else if len > MAX_NAME_LEN {
            Err(TextErrorKind::NameTooLong { len })
        } else {
            names.type_of(word).ok_or_else(|| TextErrorKind::UnknownName { name: word.to_owned() })
        };
        let kind = kind.map_err(|kind| self.error(kind))?;
        self.at += len;
        Ok(kind)
    }
}

/// The value of a hexadecimal digit. A long configuration has very many.
#[inline]
fn nibble(digit: u8) -> Option<u8> {
    /// What is no digit.
    const NONE: u8 = 0xff;
    static VALUES: [u8; 256] = {
        let mut values = [NONE; 256];
        let digits = b"0123456789abcdef";
        let mut value = 0;
        while value < digits.len() {
            values[digits[value] as usize] = value as u8;
            values[digits[value].to_ascii_uppercase() as usize] = value as u8;
            value += 1;
        }
        values
    };
    let value = VALUES[usize::from(digit)];
    (value != NONE).then_some(value)
}

fn parse_type_number(digits: &str) -> Option<XidType> {
    let valid = digits.bytes().all(|byte| byte.is_ascii_hexdigit()) && digits.len() <= 8;
    valid.then(|| u32::from_str_radix(digits, 16).ok().map(XidType)).flatten()
}

/// Something with the names of a table, made by `display`.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a, T> {
    pub(crate) value: &'a T,
    pub(crate) names: &'a Names,
}

impl XidType {
    /// The name from `names` or else the number.
    pub fn display<'a>(&'a self, names: &'a Names) -> Named<'a, XidType> {
        Named { value: self, names }
    }
}

impl Xid {
    /// The text form with the principal's name from `names`.
    pub fn display<'a>(&'a self, names: &'a Names) -> Named<'a, Xid> {
        Named { value: self, names }
    }
}

impl fmt::Display for Named<'_, XidType> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names.name_of(*self.value) {
            Some(name) => f.write_str(name),
            None => write!(f, "0x{:x}", self.value.0),
        }
    }
}

impl fmt::Display for Named<'_, Xid> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-", self.value.kind.display(self.names))?;
        self.value.id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for XidType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.display(&Names::new()).fmt(f)
    }
}

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.display(&Names::new()).fmt(f)
    }
}

impl Names {
    /// Reads one XID; nothing may follow.
    pub fn parse_xid(&self, text: &str) -> Result<Xid, TextError> {
        let mut scanner = Scanner::new(text);
        let xid = scanner.xid(self)?;
        match scanner.peek() {
            None => Ok(xid),
            Some(_) => Err(scanner.error(TextErrorKind::ExpectedEndOfXid)),
        }
    }
}

/// Reads an XID of a well-known or numbered principal; see [`Names::parse_xid`] for others.
impl FromStr for Xid {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Xid, TextError> {
        Names::new().parse_xid(text)
    }
}
