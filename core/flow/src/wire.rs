//! What is said on the control socket: one message each way to attach, and then wakings.
//!
//! ```text
//! hello, application to stack, 16 bytes        welcome, stack to application, 16 bytes or more
//!   0  "WFLO"                                    0  "WFLO"
//!   4  version  u16  2                           4  version  u16  2
//!   6  kind     u8   1 datagrams, 2 a stream     6  status   u8   0 attached, 1 refused
//!   7  zero     u8                               7  zero     u8
//!   8  up       u32  bytes of the ring           8  up       u32  as in the hello, zero if refused
//!  12  down     u32  bytes of the ring          12  down     u32  as in the hello, zero if refused
//!                                               16  if refused: why, UTF-8, at most 240 bytes
//! ```
//!
//! All numbers are little-endian. A hello carries two descriptors (`SCM_RIGHTS`): the file with the rings
//! (`layout`), and a socket; nothing else that is said carries any. After the welcome each message is
//! one byte, [`WAKE`]: on the control socket it means "there is something to read for you", on the other
//! one "there is room for you again". The end of either socket is the end of the flow.
//!
//! In version 1 the stack made the memory, and the welcome carried the descriptors. Hello and welcome of
//! all versions begin alike, so that each can refuse another in words.

use crate::layout::{Kind, Sizes};

/// The version of the protocol, of the rings' layout included.
pub(crate) const VERSION: u16 = 2;
/// Wakes the other side.
pub(crate) const WAKE: u8 = b'w';
/// Bytes of a hello, and of a welcome without its text.
pub(crate) const FIXED: usize = 16;
/// The longest text of a refusal, in bytes.
const LONGEST_TEXT: usize = 240;
/// The longest welcome, in bytes.
pub(crate) const LONGEST_WELCOME: usize = FIXED + LONGEST_TEXT;

const MAGIC: [u8; 4] = *b"WFLO";

/// What an application offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) kind: Kind,
    /// Of the rings in the memory that comes along.
    pub(crate) sizes: Sizes,
}

/// What a stack answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Welcome {
    /// The rings have these sizes.
    Attached(Sizes),
    /// No, and why.
    Refused(String),
}

impl Hello {
    pub(crate) fn emit(&self) -> [u8; FIXED] {
        let kind = match self.kind {
            Kind::Datagram => 1,
            Kind::Stream => 2,
        };
        fixed(VERSION, kind, self.sizes)
    }

    /// Reads a hello; an error is a sentence for the application.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let Some((version, kind, sizes)) = split(bytes) else {
            return Err("this is no greeting of a flow".to_owned());
        };
        if version != VERSION {
            return Err(format!(
                "this stack speaks version {VERSION} of flows and not version {version}: \
                 use the library that came with it"
            ));
        }
        let kind = match kind {
            1 => Kind::Datagram,
            2 => Kind::Stream,
            other => return Err(format!("this stack knows no flows of kind {other}")),
        };
        if bytes.len() != FIXED {
            return Err(format!("a greeting has {FIXED} bytes and not {}", bytes.len()));
        }
        if !sizes.are_valid(kind) {
            let Sizes { up, down } = sizes;
            return Err(format!("rings cannot have {up} and {down} bytes"));
        }
        Ok(Self { kind, sizes })
    }
}

impl Welcome {
    pub(crate) fn emit(&self) -> Vec<u8> {
        match self {
            Self::Attached(sizes) => fixed(VERSION, 0, *sizes).to_vec(),
            Self::Refused(text) => {
                let mut bytes = fixed(VERSION, 1, Sizes { up: 0, down: 0 }).to_vec();
                bytes.extend(&text.as_bytes()[..text.floor_char_boundary(LONGEST_TEXT)]);
                bytes
            }
        }
    }

    /// Reads a welcome; an error says what is wrong with it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let (version, status, sizes) = split(bytes).ok_or("its answer is not that of a stack")?;
        match status {
            0 if version == VERSION && bytes.len() == FIXED => Ok(Self::Attached(sizes)),
            0 => Err("it attaches as another version of flows does"),
            // A stack of another version refuses in the same form.
            1 => Ok(Self::Refused(String::from_utf8_lossy(&bytes[FIXED..]).into_owned())),
            _ => Err("its answer is neither yes nor no"),
        }
    }
}

fn fixed(version: u16, word: u8, sizes: Sizes) -> [u8; FIXED] {
    let mut bytes = [0; FIXED];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..6].copy_from_slice(&version.to_le_bytes());
    bytes[6] = word;
    bytes[8..12].copy_from_slice(&sizes.up.to_le_bytes());
    bytes[12..16].copy_from_slice(&sizes.down.to_le_bytes());
    bytes
}

/// Version, word and sizes, if the bytes begin as they should.
fn split(bytes: &[u8]) -> Option<(u16, u8, Sizes)> {
    let (fixed, _) = bytes.split_first_chunk::<FIXED>()?;
    let [m0, m1, m2, m3, v0, v1, word, zero, up @ .., d0, d1, d2, d3] = *fixed;
    if [m0, m1, m2, m3] != MAGIC || zero != 0 {
        return None;
    }
    let sizes = Sizes { up: u32::from_le_bytes(up), down: u32::from_le_bytes([d0, d1, d2, d3]) };
    Some((u16::from_le_bytes([v0, v1]), word, sizes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kinds() -> impl Strategy<Value = Kind> {
        prop_oneof![Just(Kind::Datagram), Just(Kind::Stream)]
    }

    proptest! {
        #[test]
        fn a_hello_is_read_back(kind in kinds(), bits in 17_u32..=26, more in 17_u32..=26) {
            let hello = Hello { kind, sizes: Sizes { up: 1 << bits, down: 1 << more } };
            let bytes = hello.emit();
            prop_assert_eq!(Hello::parse(&bytes), Ok(hello));
            for len in 0..FIXED {
                prop_assert!(Hello::parse(&bytes[..len]).is_err());
            }
        }

        #[test]
        fn a_welcome_is_read_back(up: u32, down: u32) {
            let welcome = Welcome::Attached(Sizes { up, down });
            let bytes = welcome.emit();
            prop_assert_eq!(Welcome::parse(&bytes), Ok(welcome));
            for len in 0..FIXED {
                prop_assert!(Welcome::parse(&bytes[..len]).is_err());
            }
        }

        #[test]
        fn a_refusal_is_read_back_up_to_its_longest_text(text in ".{0,300}") {
            let bytes = Welcome::Refused(text.clone()).emit();
            prop_assert!(bytes.len() <= LONGEST_WELCOME);
            match Welcome::parse(&bytes) {
                Ok(Welcome::Refused(read)) => prop_assert!(text.starts_with(&read)),
                other => prop_assert!(false, "{:?}", other),
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Hello::parse(&bytes);
            let mut begun = Hello { kind: Kind::Stream, sizes: Sizes { up: 1, down: 2 } }.emit().to_vec();
            begun.splice(4.min(bytes.len()).., bytes);
            if let Ok(hello) = Hello::parse(&begun) {
                prop_assert!(hello.sizes.are_valid(hello.kind));
            }
            let _ = Welcome::parse(&begun);
        }
    }

    #[test]
    fn another_version_is_refused_in_words_that_name_both() {
        let mut bytes = Hello { kind: Kind::Datagram, sizes: Sizes { up: 0, down: 0 } }.emit();
        bytes[4] = 7;
        let error = Hello::parse(&bytes).unwrap_err();
        assert!(error.contains("version 2") && error.contains("version 7"), "{error}");
    }

    #[test]
    fn a_refusal_of_another_version_is_understood_and_its_flow_is_not() {
        let mut refused = Welcome::Refused("other times".to_owned()).emit();
        let mut attached = Welcome::Attached(Sizes { up: 4096, down: 4096 }).emit();
        for bytes in [&mut refused, &mut attached] {
            bytes[4] = 1;
        }
        assert_eq!(Welcome::parse(&refused), Ok(Welcome::Refused("other times".to_owned())));
        assert!(Welcome::parse(&attached).unwrap_err().contains("another version"));
    }

    #[test]
    fn rings_of_a_size_that_a_kind_cannot_have_are_not_believed() {
        let hello =
            |kind, up, down| Hello::parse(&Hello { kind, sizes: Sizes { up, down } }.emit());
        for (up, down) in [(0, 4096), (4096, 4097), (2048, 4096), (1 << 27, 4096)] {
            let error = hello(Kind::Stream, up, down).unwrap_err();
            assert!(error.contains(&up.to_string()), "{error}");
        }
        assert!(hello(Kind::Stream, 4096, 4096).is_ok());
        assert!(hello(Kind::Datagram, 4096, 4096).is_err());
    }
}
