//! Values, and the variables that a protocol brings.
//!
//! Reference: Handley et al. (XORP), §8.1, and its `VarMap`: the language knows types and names, protocols know what is
//! behind them.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::as_path::AsPath;
use crate::community::CommunityKind;

/// What values of a variable are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// On or off.
    Switch,
    /// A number from 0 to `most`. What is calculated, or taken from another variable, stays in these bounds.
    Number {
        /// The greatest.
        most: u64,
    },
    /// One of some words.
    Word(&'static [&'static str]),
    /// Any text.
    Text,
    /// An address of IP.
    Address,
    /// A prefix of IP.
    Prefix,
    /// The autonomous systems that a route came through.
    AsPath,
    /// Communities of one kind.
    Communities(CommunityKind),
}

impl Value<'_> {
    /// The same, or what comes closest to it that a variable of this kind may have.
    pub(crate) fn within(self, kind: Kind) -> Self {
        match (self, kind) {
            (Self::Number(number), Kind::Number { most }) => Self::Number(number.min(most)),
            (value, _) => value,
        }
    }
}

impl Kind {
    /// What it is, with article, for messages.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Switch => "a switch",
            Self::Number { .. } => "a number",
            Self::Word(_) => "a word",
            Self::Text => "a text",
            Self::Address => "an address",
            Self::Prefix => "a prefix",
            Self::AsPath => "an AS path",
            Self::Communities(CommunityKind::Standard) => "a list of communities",
            Self::Communities(CommunityKind::Extended) => "a list of extended communities",
            Self::Communities(CommunityKind::Large) => "a list of large communities",
        }
    }
}

/// Where a variable may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// In `from`: it is said of the route and of where it comes from.
    From,
    /// In `to`: it is said of who is told of the route.
    To,
    /// Only in `then`: it stands for a value.
    Then,
}

/// What may be done with a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Read,
    /// It is read and set.
    Write,
    /// It is read, set and removed.
    Remove,
}

/// A variable of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name in policies; it may be there once for each side.
    pub name: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// Where it may be asked for.
    pub side: Side,
    /// What may be done with it.
    pub access: Access,
    /// What it is, for people.
    pub help: &'static str,
}

impl Variable {
    /// One of the route that may only be read.
    #[must_use]
    pub const fn new(name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self { name, kind, side: Side::From, access: Access::Read, help }
    }

    /// The same with another access.
    #[must_use]
    pub const fn with(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// The same on another side.
    #[must_use]
    pub const fn on(self, side: Side) -> Self {
        Self { side, ..self }
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// On or off.
    Switch(bool),
    /// A number.
    Number(u64),
    /// One of the words of a [`Kind::Word`], by its place.
    Word(usize),
    /// A text.
    Text(Cow<'a, str>),
    /// An address.
    Address(IpAddr),
    /// A prefix.
    Prefix(IpNet),
    /// An AS path.
    AsPath(AsPath<'a>),
    /// Communities: each in the low bits, as on the wire.
    Communities(Cow<'a, [u128]>),
}

impl Value<'_> {
    /// The value as a policy would write it.
    #[must_use]
    pub fn shown(&self, kind: Kind) -> impl fmt::Display {
        Shown { value: self, kind }
    }
}

struct Shown<'v, 'a> {
    value: &'v Value<'a>,
    kind: Kind,
}

impl fmt::Display for Shown<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.value, self.kind) {
            (Value::Switch(value), _) => f.write_str(if *value { "on" } else { "off" }),
            (Value::Number(value), _) => write!(f, "{value}"),
            (Value::Word(place), Kind::Word(words)) => {
                f.write_str(words.get(*place).unwrap_or(&"?"))
            }
            (Value::Word(place), _) => write!(f, "{place}"),
            (Value::Text(value), _) => f.write_str(value),
            (Value::Address(value), _) => write!(f, "{value}"),
            (Value::Prefix(value), _) => write!(f, "{value}"),
            (Value::AsPath(value), _) => write!(f, "{value}"),
            (Value::Communities(all), kind) => {
                let kind = match kind {
                    Kind::Communities(kind) => kind,
                    _ => CommunityKind::Large,
                };
                for (place, one) in all.iter().enumerate() {
                    write!(f, "{}{}", if place > 0 { " " } else { "" }, kind.shown(*one))?;
                }
                Ok(())
            }
        }
    }
}

/// A route, as far as policies see it.
pub trait Route {
    /// What a variable, by its place in the protocol's table, has as value; none if it has none.
    fn read(&self, variable: usize) -> Option<Value<'_>>;
}
