//! What generated stubs say of their interface.

use weft_xif::Version;

use crate::codec::{Arguments, Decoder, Malformed};

/// An interface, as it was when the program was built.
#[derive(Debug)]
pub struct Interface {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: Version,
    /// The names of its methods in order of their numbers.
    pub methods: &'static [&'static str],
    /// The text of its file, with all arguments and their documentation.
    pub text: &'static str,
}

impl Interface {
    /// `name/1.0/method`: the method as it stands in an XRL.
    #[must_use]
    pub fn path_of(&self, method: u16) -> String {
        let name = self.methods.get(usize::from(method)).copied().unwrap_or("?");
        format!("{}/{}/{name}", self.name, self.version)
    }
}

/// A call of one method.
pub trait Request: Arguments {
    /// The interface of the method.
    const INTERFACE: &'static Interface;
    /// Its number there.
    const METHOD: u16;
    /// What it answers.
    type Reply: Arguments;
}

/// A call of any method of one interface.
pub trait Calls: Sized {
    /// The interface.
    const INTERFACE: &'static Interface;

    /// Reads the arguments of a method.
    ///
    /// # Errors
    /// They are not those of the method, or there is no such method.
    fn decode(method: u16, from: &mut Decoder<'_>) -> Result<Self, Malformed>;
}
