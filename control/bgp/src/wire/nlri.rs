//! Lists of prefixes in an UPDATE.
//!
//! ```text
//!  0 path identifier (4), with ADD-PATH alone
//!    length of the prefix in bits
//!    as many octets as hold these bits; what is behind them means nothing
//! ```
//!
//! A list is read in place: its lengths are checked once, then prefixes come without being stored.
//!
//! Reference: RFC 4271 §4.3, RFC 4760 §5, RFC 7911 §3; RFC 7606 §5.3 (what is malformed).

use weft_routing::Prefix;

use super::family::Family;

/// A prefix is longer than an address of its family, or than the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a prefix is longer than its address, or than the field that holds it")]
pub struct NlriError;

/// A list of prefixes of which every one can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nlri<'a> {
    bytes: &'a [u8],
    is_ipv6: bool,
    has_path_ids: bool,
}

impl<'a> Nlri<'a> {
    /// Checks that `bytes` are prefixes of `family`, with path identifiers or not.
    ///
    /// # Errors
    /// They are not.
    pub fn new_checked(
        bytes: &'a [u8],
        family: Family,
        has_path_ids: bool,
    ) -> Result<Self, NlriError> {
        let bits = family.address_bits();
        let id_len = if has_path_ids { 4 } else { 0 };
        let mut rest = bytes;
        while !rest.is_empty() {
            let length = *rest.get(id_len).ok_or(NlriError)?;
            if length > bits {
                return Err(NlriError);
            }
            rest = rest.get(id_len + 1 + octets(length)..).ok_or(NlriError)?;
        }
        Ok(Self { bytes, is_ipv6: family.is_ipv6(), has_path_ids })
    }

    /// Whether there is no prefix in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The prefixes and their path identifiers, which are 0 without ADD-PATH.
    #[must_use]
    pub const fn iter(&self) -> NlriIter<'a> {
        NlriIter(*self)
    }
}

impl<'a> IntoIterator for Nlri<'a> {
    type Item = (u32, Prefix);
    type IntoIter = NlriIter<'a>;

    fn into_iter(self) -> NlriIter<'a> {
        self.iter()
    }
}

/// The prefixes of a list, first to last.
#[derive(Clone, Debug)]
pub struct NlriIter<'a>(Nlri<'a>);

impl Iterator for NlriIter<'_> {
    type Item = (u32, Prefix);

    // The lengths were checked: `?` is reached at the end of the list alone.
    #[inline]
    fn next(&mut self) -> Option<(u32, Prefix)> {
        let mut rest = self.0.bytes;
        let mut path_id = 0;
        if self.0.has_path_ids {
            let (id, behind) = rest.split_first_chunk()?;
            path_id = u32::from_be_bytes(*id);
            rest = behind;
        }
        let (length, behind) = rest.split_first()?;
        let octets = octets(*length);
        // What is read behind the prefix is cut off with the bits that mean nothing.
        let bits = if self.0.is_ipv6 {
            u128::from_be_bytes(front(behind, octets))
        } else {
            u128::from(u32::from_be_bytes(front(behind, octets))) << 96
        };
        self.0.bytes = behind.get(octets..)?;
        Some((path_id, Prefix::from_high_bits(bits, *length)))
    }
}

/// The first `N` bytes; where the list is shorter, `octets` of them and zeros.
#[inline]
fn front<const N: usize>(bytes: &[u8], octets: usize) -> [u8; N] {
    if let Some(all) = bytes.first_chunk() {
        return *all;
    }
    let mut padded = [0; N];
    for (to, from) in padded.iter_mut().zip(bytes).take(octets) {
        *to = *from;
    }
    padded
}

/// How many octets hold `length` bits.
#[inline]
const fn octets(length: u8) -> usize {
    length.div_ceil(8) as usize
}

/// Writes a prefix, with `path_id` if there is one. It must not be longer than an address of its family.
#[inline]
pub(crate) fn emit(path_id: Option<u32>, prefix: &Prefix, out: &mut Vec<u8>) {
    if let Some(id) = path_id {
        out.extend_from_slice(&id.to_be_bytes());
    }
    out.push(prefix.length());
    // Copying a number of bytes that is known beforehand is faster than asking how many.
    let end = out.len() + octets(prefix.length());
    out.extend_from_slice(&prefix.high_bits().to_be_bytes());
    out.truncate(end);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prefix(bytes: &[u8], length: u8) -> Prefix {
        Prefix::new(bytes, length).unwrap()
    }

    fn read(bytes: &[u8], family: Family, has_path_ids: bool) -> Option<Vec<(u32, Prefix)>> {
        let list = Nlri::new_checked(bytes, family, has_path_ids).ok()?;
        Some(list.into_iter().collect())
    }

    /// RFC 4271 §4.3 gives the layout; 192.0.2.0/24 and 0.0.0.0/0 are its extremes in use.
    #[test]
    fn prefixes_are_read_in_order() {
        let bytes = [24, 192, 0, 2, 0, 9, 10, 0xFF];
        let expected =
            [(0, prefix(&[192, 0, 2], 24)), (0, Prefix::ALL), (0, prefix(&[10, 0x80], 9))];
        assert_eq!(read(&bytes, Family::IPV4_UNICAST, false).unwrap(), expected);
        let with_ids = [0, 0, 0, 7, 8, 10, 1, 0, 0, 0, 33, 0x20, 1, 0x0d, 0xb8, 0xFF];
        let expected = [(7, prefix(&[10], 8)), (1 << 24, prefix(&[0x20, 1, 0x0d, 0xb8, 0x80], 33))];
        assert_eq!(read(&with_ids, Family::IPV6_UNICAST, true).unwrap(), expected);
    }

    #[test]
    fn a_prefix_that_is_too_long_is_refused() {
        assert_eq!(read(&[33, 1, 2, 3, 4, 5], Family::IPV4_UNICAST, false), None);
        assert_eq!(read(&[129; 20], Family::IPV6_UNICAST, false), None);
        assert_eq!(read(&[24, 1, 2], Family::IPV4_UNICAST, false), None);
        assert_eq!(read(&[0, 0, 0], Family::IPV4_UNICAST, true), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            entries in prop::collection::vec((any::<u32>(), any::<[u8; 16]>(), 0u8..=128), 0..40),
            is_ipv6: bool,
            has_ids: bool,
        ) {
            let family = if is_ipv6 { Family::IPV6_UNICAST } else { Family::IPV4_MULTICAST };
            let entries: Vec<_> = entries
                .iter()
                .map(|(id, bytes, length)| {
                    let whole = Prefix::of(&bytes[..usize::from(family.address_bits() / 8)]).unwrap();
                    (if has_ids { *id } else { 0 }, whole.truncate(length % (family.address_bits() + 1)))
                })
                .collect();
            let mut bytes = Vec::new();
            for (id, prefix) in &entries {
                emit(has_ids.then_some(*id), prefix, &mut bytes);
            }
            prop_assert_eq!(read(&bytes, family, has_ids).unwrap(), entries);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60), ids: bool, six: bool) {
            let family = if six { Family::IPV6_UNICAST } else { Family::IPV4_UNICAST };
            if let Some(list) = read(&bytes, family, ids) {
                let length: usize = list.iter().map(|(_, prefix)| 1 + octets(prefix.length()) + if ids { 4 } else { 0 }).sum();
                prop_assert_eq!(length, bytes.len());
            }
        }
    }
}
