//! What stations are told of this router itself: who it is, and that the connection ends.
//!
//! ```text
//!  0 version = 3
//!  1 length of the message (4)
//!  5 type
//!  6 information: type (2), length (2), text
//! ```
//!
//! Reference: RFC 7854 §4.1 (the header), §4.3 (Initiation), §4.4 (information), §4.5 (Termination).

const VERSION: u8 = 3;
const INITIATION: u8 = 4;
const TERMINATION: u8 = 5;
/// What is said: in words.
const DESCRIPTION: u16 = 1;
/// And by which name.
const NAME: u16 = 2;
/// Why it ends.
const REASON: u16 = 1;
/// Somebody wants that.
const ADMINISTRATIVE: [u8; 2] = [0, 0];

/// Who this is.
pub(crate) fn initiation(name: &str) -> Vec<u8> {
    let description = concat!("weft ", env!("CARGO_PKG_VERSION"));
    message(INITIATION, &[(DESCRIPTION, description.as_bytes()), (NAME, name.as_bytes())])
}

/// The connection ends, since the configuration wants that or this process stops.
pub(crate) fn termination() -> Vec<u8> {
    message(TERMINATION, &[(REASON, &ADMINISTRATIVE)])
}

/// A message with this information, of which each piece has less than 64 KiB.
fn message(kind: u8, information: &[(u16, &[u8])]) -> Vec<u8> {
    let mut out = vec![VERSION, 0, 0, 0, 0, kind];
    for (of, text) in information {
        out.extend(of.to_be_bytes());
        out.extend((text.len() as u16).to_be_bytes());
        out.extend(*text);
    }
    let length = (out.len() as u32).to_be_bytes();
    out[1..5].copy_from_slice(&length);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_says_who_it_is_and_that_it_goes() {
        let initiation = initiation("border");
        assert_eq!(initiation[..6], [3, 0, 0, 0, initiation.len() as u8, 4]);
        assert!(initiation.ends_with(b"\0\x02\0\x06border"));
        assert_eq!(termination(), [3, 0, 0, 0, 12, 5, 0, 1, 0, 2, 0, 0]);
    }
}
