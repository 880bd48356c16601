//! One value as text, and on the wire.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use weft_xif::{Family, Interface, Record, Type};

use super::TextError;
use super::escape::{escape, unescape};
use crate::atom::{Atom, Binary, Id, Mac, put_layout, take_layout};
use crate::codec::{Decoder, Encoder, Malformed, tag, type_name};

/// The number of a type on the wire.
pub(super) fn tag_of(kind: &Type) -> u8 {
    match kind {
        Type::I32 => tag::I32,
        Type::U32 => tag::U32,
        Type::I64 => tag::I64,
        Type::U64 => tag::U64,
        Type::Fp64 => tag::FP64,
        Type::Bool => tag::BOOL,
        Type::Txt => tag::TXT,
        Type::Binary => tag::BINARY,
        Type::Mac => tag::MAC,
        Type::Ip(Family::Any) => tag::IP,
        Type::Ip(Family::V4) => tag::IPV4,
        Type::Ip(Family::V6) => tag::IPV6,
        Type::IpNet(Family::Any) => tag::IPNET,
        Type::IpNet(Family::V4) => tag::IPV4NET,
        Type::IpNet(Family::V6) => tag::IPV6NET,
        Type::Id => tag::ID,
        Type::Handle => tag::HANDLE,
        Type::List(_) => tag::LIST,
        Type::Record(_) => tag::RECORD,
    }
}

pub(super) fn layout_of(record: &Record) -> Vec<u8> {
    record.fields.iter().map(|field| tag_of(&field.kind)).collect()
}

/// Writes the value that `text` stands for, which begins at `at` in the XRL. `inside` says that it is
/// part of another value. Its tag is already written, and its layout unless it is a list.
pub(crate) fn put_text(
    kind: &Type,
    text: &str,
    at: usize,
    inside: bool,
    interface: &Interface,
    to: &mut Encoder,
) -> Result<(), TextError> {
    match kind {
        Type::List(element) => return put_list(element, text, at, inside, interface, to),
        Type::Record(name) => {
            let record = interface.record(name).ok_or_else(|| {
                TextError::at(at, format!("the interface has no record `{name}`"))
            })?;
            return put_record(record, text, at, interface, to);
        }
        Type::Handle => {
            return Err(TextError::at(at, "a descriptor cannot be written as text"));
        }
        _ => {}
    }
    let bytes = unescape(text, at)?;
    if *kind == Type::Binary {
        Binary(bytes).put(to);
        return Ok(());
    }
    let plain =
        String::from_utf8(bytes).map_err(|_| TextError::at(at, "the value is not UTF-8"))?;
    put_plain(kind, plain, to).map_err(|text| TextError::at(at, text))
}

fn parsed<T: FromStr + Atom>(plain: &str, what: &str, to: &mut Encoder) -> Result<(), String> {
    let value: T = plain.parse().map_err(|_| format!("`{plain}` is no {what}"))?;
    value.put(to);
    Ok(())
}

fn put_plain(kind: &Type, plain: String, to: &mut Encoder) -> Result<(), String> {
    match kind {
        Type::I32 => parsed::<i32>(&plain, "i32 (-2147483648 to 2147483647)", to),
        Type::U32 => parsed::<u32>(&plain, "u32 (0 to 4294967295)", to),
        Type::I64 => parsed::<i64>(&plain, "i64", to),
        Type::U64 => parsed::<u64>(&plain, "u64", to),
        Type::Fp64 => parsed::<f64>(&plain, "number", to),
        Type::Bool => parsed::<bool>(&plain, "truth value (`true` or `false`)", to),
        Type::Ip(Family::Any) => parsed::<IpAddr>(&plain, "IP address", to),
        Type::Ip(Family::V4) => parsed::<Ipv4Addr>(&plain, "IPv4 address", to),
        Type::Ip(Family::V6) => parsed::<Ipv6Addr>(&plain, "IPv6 address", to),
        Type::IpNet(Family::Any) => parsed::<IpNet>(&plain, "address prefix", to),
        Type::IpNet(Family::V4) => parsed::<Ipv4Net>(&plain, "IPv4 prefix", to),
        Type::IpNet(Family::V6) => parsed::<Ipv6Net>(&plain, "IPv6 prefix", to),
        Type::Mac => parsed::<Mac>(&plain, "hardware address (`02:00:00:00:00:01`)", to),
        Type::Id => parsed::<Id>(&plain, "identifier (`FAMILY:HEXADECIMAL`)", to),
        _ => {
            plain.put(to);
            Ok(())
        }
    }
}

fn put_list(
    element: &Type,
    text: &str,
    at: usize,
    inside: bool,
    interface: &Interface,
    to: &mut Encoder,
) -> Result<(), TextError> {
    let (mut text, mut at) = (text, at);
    if inside {
        text = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .ok_or_else(|| TextError::at(at, "a list inside a value stands in brackets"))?;
        at += 1;
    }
    let elements = split(text, at, ',')?;
    to.bytes(&[tag_of(element)]);
    to.bytes(&(elements.len() as u32).to_le_bytes());
    if let (Type::Record(name), false) = (element, elements.is_empty()) {
        let record = interface.record(name);
        put_layout(&record.map(layout_of).unwrap_or_default(), to);
    }
    elements.into_iter().try_for_each(|(at, text)| put_text(element, text, at, true, interface, to))
}

fn put_record(
    record: &Record,
    text: &str,
    at: usize,
    interface: &Interface,
    to: &mut Encoder,
) -> Result<(), TextError> {
    let form = || {
        let fields: Vec<_> =
            record.fields.iter().map(|field| format!("{}=…", field.name)).collect();
        format!("a {} is written as ({})", record.name, fields.join(";"))
    };
    let inner = text
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
        .ok_or_else(|| TextError::at(at, form()))?;
    let fields = split(inner, at + 1, ';')?;
    if fields.len() != record.fields.len() {
        return Err(TextError::at(at, form()));
    }
    for (field, (at, text)) in record.fields.iter().zip(fields) {
        let value = text
            .strip_prefix(field.name.as_str())
            .and_then(|rest| rest.strip_prefix('='))
            .ok_or_else(|| TextError::at(at, format!("expected `{}=`; {}", field.name, form())))?;
        let at = at + field.name.len() + 1;
        put_text(&field.kind, value, at, true, interface, to)?;
    }
    Ok(())
}

/// The pieces between separators that stand outside of brackets, with their places.
fn split(text: &str, at: usize, separator: char) -> Result<Vec<(usize, &str)>, TextError> {
    let (mut pieces, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (index, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => {
                depth = depth.checked_sub(1).ok_or_else(|| {
                    TextError::at(at + index, format!("`{c}` without a beginning"))
                })?;
            }
            _ if c == separator && depth == 0 => {
                pieces.push((at + start, &text[start..index]));
                start = index + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err(TextError::at(at + text.len(), "a bracket is not closed"));
    }
    // What is empty behind the last separator is no element, so that an empty list is empty text.
    if start < text.len() {
        pieces.push((at + start, &text[start..]));
    }
    Ok(pieces)
}

/// Reads a value, whose tag is already read, and its layout unless it is a list, and writes it as text.
pub(crate) fn take_text(
    kind: &Type,
    from: &mut Decoder<'_>,
    inside: bool,
    interface: &Interface,
    out: &mut String,
) -> Result<(), Malformed> {
    match kind {
        Type::I32 => plain(&i32::take(from)?, out),
        Type::U32 => plain(&u32::take(from)?, out),
        Type::I64 => plain(&i64::take(from)?, out),
        Type::U64 => plain(&u64::take(from)?, out),
        Type::Fp64 => plain(&f64::take(from)?, out),
        Type::Bool => plain(&bool::take(from)?, out),
        Type::Txt => escape(String::take(from)?.as_bytes(), out),
        Type::Binary => escape(&Binary::take(from)?.0, out),
        Type::Mac => plain(&Mac::take(from)?, out),
        Type::Ip(Family::Any) => plain(&IpAddr::take(from)?, out),
        Type::Ip(Family::V4) => plain(&Ipv4Addr::take(from)?, out),
        Type::Ip(Family::V6) => plain(&Ipv6Addr::take(from)?, out),
        Type::IpNet(Family::Any) => plain(&IpNet::take(from)?, out),
        Type::IpNet(Family::V4) => plain(&Ipv4Net::take(from)?, out),
        Type::IpNet(Family::V6) => plain(&Ipv6Net::take(from)?, out),
        Type::Id => plain(&Id::take(from)?, out),
        Type::Handle => {
            return Err(Malformed::new("a descriptor cannot be written as text"));
        }
        Type::List(element) => return take_list(element, from, inside, interface, out),
        Type::Record(name) => {
            let record = known(interface, name)?;
            return take_record(record, from, interface, out);
        }
    }
    Ok(())
}

fn known<'a>(interface: &'a Interface, name: &str) -> Result<&'a Record, Malformed> {
    interface.record(name).ok_or_else(|| Malformed::new(format!("there is no record `{name}`")))
}

/// Writes a value whose text has no separators, or only such as are harmless.
fn plain(value: &impl std::fmt::Display, out: &mut String) {
    let _ = write!(out, "{value}");
}

fn take_list(
    element: &Type,
    from: &mut Decoder<'_>,
    inside: bool,
    interface: &Interface,
    out: &mut String,
) -> Result<(), Malformed> {
    let (found, expected) = (from.byte()?, tag_of(element));
    if found != expected {
        let (found, expected) = (type_name(found), type_name(expected));
        return Err(Malformed::new(format!("a list of {found}, expected one of {expected}")));
    }
    let count = u32::from_le_bytes(from.array()?) as usize;
    if count > from.left() {
        return Err(Malformed::short());
    }
    if let (Type::Record(name), true) = (element, count > 0) {
        take_layout(&layout_of(known(interface, name)?), from)?;
    }
    if inside {
        out.push('[');
    }
    let mut start = out.len();
    for index in 0..count {
        if index > 0 {
            out.push(',');
        }
        start = out.len();
        take_text(element, from, true, interface, out)?;
    }
    if count > 0 && out.len() == start {
        // Only so is a last, empty text told from none.
        out.push(',');
    }
    if inside {
        out.push(']');
    }
    Ok(())
}

fn take_record(
    record: &Record,
    from: &mut Decoder<'_>,
    interface: &Interface,
    out: &mut String,
) -> Result<(), Malformed> {
    out.push('(');
    for (index, field) in record.fields.iter().enumerate() {
        if index > 0 {
            out.push(';');
        }
        out.push_str(&field.name);
        out.push('=');
        take_text(&field.kind, from, true, interface, out)?;
    }
    out.push(')');
    Ok(())
}

impl FromStr for Mac {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| (1..=2).contains(&part.len())).ok_or(())?;
            *byte = u8::from_str_radix(part, 16).map_err(drop)?;
        }
        parts.next().is_none().then_some(Self(bytes)).ok_or(())
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:", self.family)?;
        self.bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Id {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (family, digits) = text.split_once(':').ok_or(())?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || digits.len() % 2 != 0 || digits.len() > 510 {
            return Err(());
        }
        let pairs = (0..digits.len()).step_by(2).map(|at| &digits[at..at + 2]);
        let bytes: Result<_, _> = pairs.map(|pair| u8::from_str_radix(pair, 16)).collect();
        Ok(Self { family: family.parse().map_err(drop)?, bytes: bytes.map_err(drop)? })
    }
}
