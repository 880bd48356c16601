//! Writing captures that Wireshark reads.
//!
//! Reference: M. Tuexen et al., "PCAP Now Generic (pcapng) Capture File Format",
//! draft-ietf-opsawg-pcapng, §3.1 (blocks), §3.5 (options), §4.1-4.3 (section header, interface
//! description, enhanced packet).

use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const VERSION: (u16, u16) = (1, 0);
/// The section's length is not known.
const UNKNOWN_LENGTH: u64 = u64::MAX;

const LINKTYPE_ETHERNET: u16 = 1;
const OPTION_END: u16 = 0;
const SECTION_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_RESOLUTION: u16 = 9;
/// Times count in units of 10^-9 seconds.
const NANOSECONDS: u8 = 9;
const PACKET_FLAGS: u16 = 2;

/// Which way a frame passed an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    In,
    Out,
}

/// A capture file that is being written.
pub(crate) struct Writer<W> {
    out: W,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a capture at these interfaces; packets name them by their places.
    pub(crate) fn new<'n>(
        out: W,
        interfaces: impl IntoIterator<Item = &'n str>,
    ) -> io::Result<Self> {
        let mut writer = Self { out, block: Vec::new() };
        writer.block.extend(BYTE_ORDER.to_le_bytes());
        writer.block.extend(VERSION.0.to_le_bytes());
        writer.block.extend(VERSION.1.to_le_bytes());
        writer.block.extend(UNKNOWN_LENGTH.to_le_bytes());
        writer.option(SECTION_APPLICATION, b"weft lab");
        writer.option(OPTION_END, b"");
        writer.write_block(SECTION_HEADER)?;
        for name in interfaces {
            writer.interface(name)?;
        }
        Ok(writer)
    }

    fn interface(&mut self, name: &str) -> io::Result<()> {
        self.block.extend(LINKTYPE_ETHERNET.to_le_bytes());
        self.block.extend([0; 2]); // Reserved.
        self.block.extend([0; 4]); // No limit of the length of packets.
        self.option(INTERFACE_NAME, name.as_bytes());
        self.option(INTERFACE_RESOLUTION, &[NANOSECONDS]);
        self.option(OPTION_END, b"");
        self.write_block(INTERFACE_DESCRIPTION)
    }

    /// Writes a frame that passed an interface at `time`, in nanoseconds.
    pub(crate) fn packet(
        &mut self,
        interface: u32,
        time: u64,
        way: Option<Way>,
        frame: &[u8],
    ) -> io::Result<()> {
        let length = u32::try_from(frame.len()).map_err(|_| io::ErrorKind::InvalidData)?;
        self.block.extend(interface.to_le_bytes());
        let [low, high] = [time as u32, (time >> 32) as u32];
        for word in [high, low, length, length] {
            self.block.extend(word.to_le_bytes());
        }
        self.block.extend(frame);
        self.pad();
        if let Some(way) = way {
            let flags: u32 = if way == Way::In { 1 } else { 2 };
            self.option(PACKET_FLAGS, &flags.to_le_bytes());
            self.option(OPTION_END, b"");
        }
        self.write_block(ENHANCED_PACKET)
    }

    /// Hands all that was written over to the system.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        // Names of nodes and interfaces are short.
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.block.extend(code.to_le_bytes());
        self.block.extend(length.to_le_bytes());
        self.block.extend(&value[..length.into()]);
        self.pad();
    }

    /// Fills up to a multiple of four bytes.
    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Writes the block whose body was gathered.
    fn write_block(&mut self, kind: u32) -> io::Result<()> {
        let length =
            u32::try_from(self.block.len() + 12).map_err(|_| io::ErrorKind::InvalidData)?;
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&length.to_le_bytes())?;
        self.block.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The types and bodies of all blocks.
    fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let length = word(&file[4..]) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(&file[length - 4..]) as usize, length, "the length stands twice");
            blocks.push((word(file), &file[8..length - 4]));
            file = &file[length..];
        }
        blocks
    }

    #[test]
    fn files_begin_with_their_interfaces_and_keep_every_byte() {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, ["a:eth0", "b:eth0"]).unwrap();
        writer.packet(1, 0x1_0000_0002, Some(Way::Out), b"frame").unwrap();
        writer.packet(0, 7, None, b"").unwrap();
        let blocks = blocks(&file);
        let kinds: Vec<u32> = blocks.iter().map(|block| block.0).collect();
        assert_eq!(kinds, [SECTION_HEADER, 1, 1, 6, 6]);
        assert_eq!(blocks[0].1[..4], [0x4d, 0x3c, 0x2b, 0x1a]);
        assert_eq!(blocks[1].1[8..18], *b"\x02\0\x06\0a:eth0");
        let packet = blocks[3].1;
        assert_eq!(packet[..20], [1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0]);
        assert_eq!(packet[20..28], *b"frame\0\0\0");
        assert_eq!(packet[28..36], [2, 0, 4, 0, 2, 0, 0, 0]);
        assert_eq!(blocks[4].1.len(), 20);
    }
}
