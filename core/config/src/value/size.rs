//! Sizes in bytes: `16MiB`.

use std::fmt;

use super::scale::Scale;
use super::{FromWord, ToWord, ValueError};

const SIZE: Scale = Scale {
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("KiB", 1 << 10),
        ("MB", 1_000_000),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("GiB", 1 << 30),
        ("TB", 1_000_000_000_000),
        ("TiB", 1 << 40),
    ],
    form: "a number directly followed by a unit of bytes",
    resolution: "1B",
};

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

impl ByteSize {
    /// From bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// In bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromWord for ByteSize {
    const WHAT: &'static str = "a size";
    const EXAMPLE: &'static str = "16MiB";

    fn from_word(text: &str) -> Result<Self, ValueError> {
        SIZE.parse(text).map(Self)
    }
}

impl ToWord for ByteSize {
    fn to_word(&self) -> String {
        SIZE.print(self.0)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::tests::{reads, refuses};
    use proptest::prelude::*;

    #[test]
    fn sizes_have_decimal_and_binary_prefixes() {
        reads("1500B", ByteSize(1500), "1500B");
        reads("64kB", ByteSize(64_000), "64kB");
        reads("16MiB", ByteSize(16 << 20), "16MiB");
        reads("0.5GiB", ByteSize(512 << 20), "512MiB");
        reads("4GB", ByteSize(4_000_000_000), "4GB");
        reads("0B", ByteSize(0), "0B");
    }

    #[test]
    fn malformed_sizes_are_refused_with_the_reason() {
        let all = "`B`, `kB`, `KiB`, `MB`, `MiB`, `GB`, `GiB`, `TB` or `TiB`";
        refuses::<ByteSize>("1500", &format!("its unit is missing, one of {all}"));
        refuses::<ByteSize>("64KB", "its unit `KB` is unknown, did you mean `kB`?");
        refuses::<ByteSize>("0.1B", "it is finer than 1B");
        refuses::<ByteSize>("99999999TiB", "it must be 0B to 18446744073709551615B");
        refuses::<ByteSize>("big", "it must be a number directly followed by a unit of bytes");
    }

    proptest! {
        #[test]
        fn sizes_round_trip(bytes: u64) {
            prop_assert_eq!(ByteSize::from_word(&ByteSize(bytes).to_word()), Ok(ByteSize(bytes)));
        }
    }
}
