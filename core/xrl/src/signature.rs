//! Interfaces as they are needed at run time: to turn arguments into text and back.

use std::collections::BTreeMap;
use std::rc::Rc;

use weft_base::Buffer;

use crate::codec::{Decoder, Encoder};
use crate::component::Encoded;
use crate::interface::Interface;
use crate::text::{decode_arguments, encode_arguments};
use crate::{ErrorCode, XrlError};

/// The interfaces that were needed until now, read once each.
#[derive(Debug, Default)]
pub struct Signatures {
    read: BTreeMap<(&'static str, weft_xif::Version), Option<Rc<weft_xif::Interface>>>,
}

/// A method with the interface that its types belong to.
#[derive(Clone, Debug)]
pub struct Signature {
    pub(crate) interface: Rc<weft_xif::Interface>,
    method: usize,
}

impl Signatures {
    /// The method with a number.
    pub fn of(&mut self, interface: &'static Interface, method: u16) -> Option<Signature> {
        let read = self
            .read
            .entry((interface.name, interface.version))
            .or_insert_with(|| weft_xif::Interface::parse(interface.text).ok().map(Rc::new));
        let method = usize::from(method);
        let interface = read.clone()?;
        (method < interface.methods.len()).then_some(Signature { interface, method })
    }
}

impl Signature {
    pub(crate) fn method(&self) -> &weft_xif::Method {
        &self.interface.methods[self.method]
    }

    /// Arguments from text `name:type=value&…`.
    ///
    /// # Errors
    /// They are not those of the method.
    pub fn arguments_from_text(&self, text: &[u8]) -> Result<Encoded, XrlError> {
        self.encode(text, &self.method().args)
    }

    /// Return arguments from text.
    ///
    /// # Errors
    /// They are not those of the method.
    pub fn returns_from_text(&self, text: &[u8]) -> Result<Encoded, XrlError> {
        self.encode(text, &self.method().returns)
    }

    fn encode(&self, text: &[u8], fields: &[weft_xif::Field]) -> Result<Encoded, XrlError> {
        let text = str::from_utf8(text).map_err(|_| XrlError::bad_args("the text is not UTF-8"))?;
        let bad = |error: crate::text::TextError| XrlError::bad_args(error.text);
        let args = crate::text::parse_arguments(text).map_err(bad)?;
        let mut to = Encoder::new();
        encode_arguments(&args, fields, &self.interface, &mut to).map_err(bad)?;
        Ok(to.into())
    }

    /// Arguments as text.
    ///
    /// # Errors
    /// They are not those of the method.
    pub fn arguments_to_text(&self, encoded: Encoded) -> Result<Buffer, XrlError> {
        self.decode(encoded, &self.method().args)
    }

    /// Return arguments as text.
    ///
    /// # Errors
    /// They are not those of the method.
    pub fn returns_to_text(&self, encoded: Encoded) -> Result<Buffer, XrlError> {
        self.decode(encoded, &self.method().returns)
    }

    fn decode(&self, encoded: Encoded, fields: &[weft_xif::Field]) -> Result<Buffer, XrlError> {
        let mut from = Decoder::new(encoded.args.bytes(), encoded.handles);
        let text = decode_arguments(&mut from, fields, &self.interface)?;
        Ok(Buffer::from_slice(text.as_bytes()))
    }
}

/// The number of the method that a path `interface/version/method` names, among some interfaces.
pub(crate) fn find_method(
    interfaces: &[&'static Interface],
    path: &str,
) -> Result<(&'static Interface, u16), XrlError> {
    let unknown = || {
        let names: Vec<_> =
            interfaces.iter().map(|one| format!("{}/{}", one.name, one.version)).collect();
        let note =
            format!("there is no method {path} here; the interfaces are: {}", names.join(", "));
        XrlError::new(ErrorCode::NoSuchMethod, note)
    };
    let (name, version, method) = split_path(path).ok_or_else(unknown)?;
    let interface = interfaces
        .iter()
        .find(|one| one.name == name && one.version.answers(version))
        .ok_or_else(unknown)?;
    let number = interface.methods.iter().position(|one| *one == method).ok_or_else(unknown)?;
    // An interface has at most 4,096 methods.
    Ok((interface, number as u16))
}

/// The parts of a path `interface/version/method`.
pub(crate) fn split_path(path: &str) -> Option<(&str, weft_xif::Version, &str)> {
    let (name, rest) = path.split_once('/')?;
    let (version, method) = rest.split_once('/')?;
    Some((name, version.parse().ok()?, method))
}
