//! Reads test vectors: packets as hexadecimal text, and captures.
//!
//! Tests of any crate take this file in with `#[path]`, so that crates which must not know one
//! another share it.

#![allow(dead_code, reason = "each test takes what it needs")]
#![allow(clippy::unwrap_used, reason = "a broken vector fails the test")]

/// The bytes of a `.hex` file: blanks are ignored, `#` begins a comment.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let content = text.lines().flat_map(|line| line.split('#').next());
    let digits: Vec<u8> = content
        .flat_map(str::chars)
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).unwrap_or_else(|| panic!("`{c}` is no hexadecimal digit")) as u8)
        .collect();
    assert!(digits.len().is_multiple_of(2), "odd number of hexadecimal digits");
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// One frame of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Number in the capture, counted from 1 as Wireshark does.
    pub(crate) number: usize,
    /// Seconds of the time stamp.
    pub(crate) seconds: u32,
    /// Microseconds of the time stamp.
    pub(crate) microseconds: u32,
    /// The frame as captured, Ethernet header first.
    pub(crate) bytes: Vec<u8>,
}

impl Frame {
    /// EtherType of the frame.
    pub(crate) fn ethertype(&self) -> u16 {
        u16::from_be_bytes([self.bytes[12], self.bytes[13]])
    }

    /// What follows the Ethernet header, padding included.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.bytes[14..]
    }
}

/// The frames of a classic pcap file (little endian, microseconds, Ethernet, nothing cut off).
pub(crate) fn pcap(file: &[u8]) -> Vec<Frame> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    assert_eq!(word(0), 0xa1b2_c3d4, "not a little-endian pcap file with microseconds");
    assert_eq!(word(20), 1, "link type is not Ethernet");
    let mut frames = Vec::new();
    let mut at = 24;
    while at < file.len() {
        let len = word(at + 8) as usize;
        assert_eq!(len, word(at + 12) as usize, "the capture cuts frames off");
        frames.push(Frame {
            number: frames.len() + 1,
            seconds: word(at),
            microseconds: word(at + 4),
            bytes: file[at + 16..at + 16 + len].to_vec(),
        });
        at += 16 + len;
    }
    frames
}
