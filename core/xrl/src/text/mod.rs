//! XRLs as text.
//!
//! Reference: Handley et al. (XORP), §6.1; the separators are those of XORP's `xrl_tokens.hh`.
//!
//! ```text
//! xrl      = protocol "://" target "/" interface "/" version "/" method [ "?" args ] [ "->" args ]
//! args     = arg *( "&" arg )
//! arg      = name ":" type [ "=" value ]                without value: a specification
//! value    = text | list | record
//! list     = value *( "," value )                       in brackets if it stands inside a value;
//!                                                       empty: nothing; a last empty text: "," behind it
//! record   = "(" name "=" value *( ";" name "=" value ) ")"
//! ```
//!
//! In a text every byte that could be taken for a separator is percent-encoded (RFC 3986 §2.1).

mod arguments;
mod escape;
mod value;

use std::fmt;
use std::str::FromStr;

use weft_xif::{Type, Version};

pub use arguments::{decode_arguments, encode_arguments, parse_arguments};
pub(crate) use value::{put_text, take_text};

/// A mistake in the text of an XRL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {}: {text}", .offset + 1)]
pub struct TextError {
    /// Where, in bytes from the beginning of the text.
    pub offset: usize,
    /// What is wrong, in one sentence.
    pub text: String,
}

impl TextError {
    pub(crate) fn at(offset: usize, text: impl Into<String>) -> Self {
        Self { offset, text: text.into() }
    }

    /// The text with a mark below the place of the mistake.
    #[must_use]
    pub fn shown(&self, source: &str) -> String {
        let before = source.get(..self.offset).unwrap_or(source).chars().count();
        format!("{}\n    {source}\n    {:before$}^", self.text, "")
    }
}

/// One argument of an XRL in text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextArg {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Type,
    /// Its value as it stands in the text; `None` in a specification.
    pub value: Option<String>,
    /// Where the value, or without one the argument, begins in the text, in bytes.
    pub offset: usize,
}

/// An XRL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xrl {
    /// `finder` for one that the Finder has to resolve; otherwise a transport.
    pub protocol: String,
    /// The class or the instance of the component, or a transport's address.
    pub target: String,
    /// The interface.
    pub interface: String,
    /// Its version.
    pub version: Version,
    /// The method.
    pub method: String,
    /// The arguments.
    pub args: Vec<TextArg>,
    /// The return arguments behind `->`.
    pub returns: Vec<TextArg>,
}

impl Xrl {
    /// `interface/1.0/method`
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}/{}", self.interface, self.version, self.method)
    }
}

impl FromStr for Xrl {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let (head, args, returns) = sections(text);
        let (protocol, rest) = head.split_once("://").ok_or_else(|| {
            TextError::at(0, "an XRL begins with a protocol, such as `finder://`")
        })?;
        check_name(protocol, 0, "protocol")?;
        let mut at = protocol.len() + 3;
        let mut parts = [("", 0); 4];
        let mut pieces = rest.split('/');
        for (part, what) in parts.iter_mut().zip(["target", "interface", "version", "method"]) {
            let piece = pieces.next().ok_or_else(|| {
                let form = "protocol://target/interface/version/method";
                TextError::at(head.len(), format!("the {what} is missing; an XRL is {form}"))
            })?;
            *part = (piece, at);
            at += piece.len() + 1;
        }
        if pieces.next().is_some() {
            return Err(TextError::at(at - 1, "`/` after the method; arguments begin with `?`"));
        }
        let [
            (target, target_at),
            (interface, interface_at),
            (version, version_at),
            (method, method_at),
        ] = parts;
        if target.is_empty() || target.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(TextError::at(target_at, "the target is empty or has blanks"));
        }
        check_name(interface, interface_at, "interface")?;
        check_name(method, method_at, "method")?;
        Ok(Self {
            protocol: protocol.to_owned(),
            target: target.to_owned(),
            interface: interface.to_owned(),
            version: version.parse().map_err(|text: String| TextError::at(version_at, text))?,
            method: method.to_owned(),
            args: args.map_or(Ok(Vec::new()), |(at, args)| arguments::parse(args, at))?,
            returns: returns.map_or(Ok(Vec::new()), |(at, args)| arguments::parse(args, at))?,
        })
    }
}

/// A part of a text and where it begins.
type Placed<'a> = (usize, &'a str);

/// What stands before `?`, between it and `->`, and behind that.
fn sections(text: &str) -> (&str, Option<Placed<'_>>, Option<Placed<'_>>) {
    let (front, returns) = match text.find("->") {
        Some(at) => (&text[..at], Some((at + 2, &text[at + 2..]))),
        None => (text, None),
    };
    match front.find('?') {
        Some(at) => (&front[..at], Some((at + 1, &front[at + 1..])), returns),
        None => (front, None, returns),
    }
}

fn check_name(name: &str, at: usize, what: &str) -> Result<(), TextError> {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic());
    let wrong = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
    match wrong {
        None if begins => Ok(()),
        _ => Err(TextError::at(
            at + wrong.unwrap_or(0),
            format!("`{name}` is no name of a {what}: a letter, then letters, digits, `_` or `-`"),
        )),
    }
}

impl fmt::Display for Xrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, target, interface, version, method, .. } = self;
        write!(f, "{protocol}://{target}/{interface}/{version}/{method}")?;
        for (index, arg) in self.args.iter().enumerate() {
            write!(f, "{}{arg}", if index == 0 { "?" } else { "&" })?;
        }
        for (index, arg) in self.returns.iter().enumerate() {
            write!(f, "{}{arg}", if index == 0 { "->" } else { "&" })?;
        }
        Ok(())
    }
}

impl fmt::Display for TextArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.kind)?;
        match &self.value {
            Some(value) => write!(f, "={value}"),
            None => Ok(()),
        }
    }
}
