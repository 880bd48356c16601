//! All arguments of a call as text, and on the wire.

use weft_xif::{Field, Interface, Type};

use super::value::{layout_of, tag_of};
use super::{TextArg, TextError, check_name, put_text, take_text};
use crate::atom::{put_layout, take_layout};
use crate::codec::{Decoder, Encoder, Malformed, tag, type_name};

/// Reads arguments alone: `name:type=value&…`.
///
/// # Errors
/// The first mistake with its place.
pub fn parse_arguments(text: &str) -> Result<Vec<TextArg>, TextError> {
    parse(text, 0)
}

/// Reads `name:type=value&…`, which begins at `at` in the XRL.
pub(super) fn parse(text: &str, at: usize) -> Result<Vec<TextArg>, TextError> {
    let mut args: Vec<TextArg> = Vec::new();
    if text.is_empty() {
        return Ok(args);
    }
    let mut at = at;
    for piece in text.split('&') {
        let arg = parse_one(piece, at)?;
        if args.iter().any(|other| other.name == arg.name) {
            return Err(TextError::at(at, format!("the argument `{}` is there twice", arg.name)));
        }
        args.push(arg);
        at += piece.len() + 1;
    }
    Ok(args)
}

fn parse_one(text: &str, at: usize) -> Result<TextArg, TextError> {
    let (front, value) = match text.split_once('=') {
        Some((front, value)) => (front, Some(value)),
        None => (text, None),
    };
    let (name, word) = front.split_once(':').ok_or_else(|| {
        TextError::at(at, "an argument is `name:type=value`, such as `as:u32=65001`")
    })?;
    check_name(name, at, "argument")?;
    let kind = Type::from_word(word).ok_or_else(|| {
        TextError::at(
            at + name.len() + 1,
            format!("`{word}` is no type, such as u32, txt or ipnet"),
        )
    })?;
    Ok(TextArg {
        name: name.to_owned(),
        kind,
        value: value.map(str::to_owned),
        offset: if value.is_some() { at + front.len() + 1 } else { at },
    })
}

/// Writes the arguments of a call, in whatever order they stand in the text, as `fields` specifies them.
///
/// # Errors
/// One is missing, unknown, of another type, without value, or has a value that its type has not.
pub fn encode_arguments(
    args: &[TextArg],
    fields: &[Field],
    interface: &Interface,
    to: &mut Encoder,
) -> Result<(), TextError> {
    if let Some(arg) = args.iter().find(|arg| fields.iter().all(|field| field.name != arg.name)) {
        let names: Vec<_> = fields.iter().map(ToString::to_string).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join("&") };
        return Err(TextError::at(
            arg.offset,
            format!("there is no argument `{}`; the arguments are: {names}", arg.name),
        ));
    }
    for field in fields {
        let arg = args.iter().find(|arg| arg.name == field.name);
        match arg.map(|arg| (arg, arg.value.as_deref())) {
            Some((arg, _)) if arg.kind != field.kind => {
                let text = format!("`{}` is a {}, not a {}", arg.name, field.kind, arg.kind);
                return Err(TextError::at(arg.offset, text));
            }
            Some((arg, Some(value))) => {
                to.bytes(&[tag_of(&field.kind)]);
                if let Type::Record(name) = &field.kind {
                    let record = interface.record(name);
                    put_layout(&record.map(layout_of).unwrap_or_default(), to);
                }
                put_text(&field.kind, value, arg.offset, false, interface, to)?;
            }
            Some((arg, None)) => {
                return Err(TextError::at(arg.offset, format!("`{}` has no value", arg.name)));
            }
            None if field.optional => to.bytes(&[tag::ABSENT]),
            None => return Err(TextError::at(0, format!("the argument `{field}` is missing"))),
        }
    }
    Ok(())
}

/// Writes arguments from the wire as `name:type=value&…`. What a newer version has added behind the
/// known ones is left out.
///
/// # Errors
/// They are not those that `fields` specifies.
pub fn decode_arguments(
    from: &mut Decoder<'_>,
    fields: &[Field],
    interface: &Interface,
) -> Result<String, Malformed> {
    let mut out = String::new();
    for field in fields {
        let found = if from.is_empty() { tag::ABSENT } else { from.byte()? };
        let expected = tag_of(&field.kind);
        if found == tag::ABSENT && field.optional {
            continue;
        }
        if found != expected {
            let (found, expected) = (type_name(found), type_name(expected));
            let name = &field.name;
            return Err(Malformed::new(format!("`{name}` is a {found}, expected a {expected}")));
        }
        if let Type::Record(name) = &field.kind {
            let record = interface.record(name);
            take_layout(&record.map(layout_of).unwrap_or_default(), from)?;
        }
        if !out.is_empty() {
            out.push('&');
        }
        out.push_str(&format!("{}:{}=", field.name, field.kind));
        take_text(&field.kind, from, false, interface, &mut out)?;
    }
    Ok(out)
}
