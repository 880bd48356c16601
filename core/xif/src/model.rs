//! What an interface file says.

use std::fmt;
use std::str::FromStr;

use crate::{Type, XifError, parser};

/// The version of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Callers and components of different major versions do not understand each other.
    pub major: u16,
    /// A component answers callers of any minor version up to its own.
    pub minor: u16,
}

impl Version {
    /// Whether a component of this version answers a caller who asks for `wanted`.
    #[must_use]
    pub fn answers(self, wanted: Self) -> bool {
        self.major == wanted.major && self.minor >= wanted.minor
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| {
            let plain = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| part.parse().ok()).flatten()
        };
        text.split_once('.')
            .and_then(|(major, minor)| Some(Self { major: number(major)?, minor: number(minor)? }))
            .ok_or_else(|| format!("`{text}` is no version; one looks like `1.0`"))
    }
}

/// An argument, a return argument or a field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Type,
    /// Whether it may be left out.
    pub optional: bool,
    /// What it is; may be empty.
    pub doc: String,
}

/// A record: a fixed sequence of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its name, the type word of the interface.
    pub name: String,
    /// Its fields, none of them optional.
    pub fields: Vec<Field>,
    /// What it is; may be empty.
    pub doc: String,
}

/// A method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Its name.
    pub name: String,
    /// Its arguments; optional ones are at the end.
    pub args: Vec<Field>,
    /// What it answers; optional ones are at the end.
    pub returns: Vec<Field>,
    /// What it does; may be empty.
    pub doc: String,
}

/// An interface: a group of methods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// Its records, each before its first use.
    pub records: Vec<Record>,
    /// Its methods in the order of the file, which numbers them.
    pub methods: Vec<Method>,
    /// What it is for; may be empty.
    pub doc: String,
}

impl Interface {
    /// Reads the text of an interface file.
    ///
    /// # Errors
    /// The first mistake with its place.
    pub fn parse(text: &str) -> Result<Self, XifError> {
        parser::parse(text)
    }

    /// The method with a name.
    #[must_use]
    pub fn method(&self, name: &str) -> Option<&Method> {
        self.methods.iter().find(|method| method.name == name)
    }

    /// The record with a name.
    #[must_use]
    pub fn record(&self, name: &str) -> Option<&Record> {
        self.records.iter().find(|record| record.name == name)
    }
}

/// `name/1.0`
impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.version)
    }
}

/// The specification: `name?arg:type&[arg:type]->return:type`.
impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (index, field) in self.args.iter().enumerate() {
            f.write_str(if index == 0 { "?" } else { "&" })?;
            field.fmt(f)?;
        }
        for (index, field) in self.returns.iter().enumerate() {
            f.write_str(if index == 0 { "->" } else { "&" })?;
            field.fmt(f)?;
        }
        Ok(())
    }
}

/// `name:type`, in brackets if it is optional.
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.optional {
            true => write!(f, "[{}:{}]", self.name, self.kind),
            false => write!(f, "{}:{}", self.name, self.kind),
        }
    }
}
