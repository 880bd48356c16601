//! The destinations: as many prefixes as a full table had, with lengths as they are in the Internet; or those of
//! a table that is given.
//!
//! Reference: Machado et al., "Linux XIA", §6.3.1, which takes 462,150 CIDR blocks from Route Views;
//! AltraMayor/net-eval for how a prefix becomes a destination. RFC 6396 §2, §4.3 (MRT, `TABLE_DUMP_V2`) for the files
//! that Route Views and RIPE RIS offer.

use std::collections::HashSet;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use weft_base::Random;
use weft_xip::{Xid, XidType};

use super::super::xip_engine::world::Names;

/// How many of 100,000 prefixes have which length: rounded from the tables of 2012 and 2013, when the paper
/// was measured.
const LENGTHS: [(u8, u32); 19] = [
    (8, 4),
    (9, 3),
    (10, 6),
    (11, 18),
    (12, 52),
    (13, 103),
    (14, 200),
    (15, 350),
    (16, 2_700),
    (17, 1_400),
    (18, 2_400),
    (19, 4_700),
    (20, 7_000),
    (21, 6_800),
    (22, 9_600),
    (23, 9_200),
    (24, 55_064),
    (25, 200),
    (26, 200),
];

/// A block of IPv4 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::bench) struct Prefix {
    pub(in crate::bench) address: Ipv4Addr,
    pub(in crate::bench) length: u8,
}

impl Prefix {
    /// The address of the block that stands for it: the bit behind the prefix is one, all others are zero. No
    /// two blocks have the same.
    pub(in crate::bench) fn destination(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.address.to_bits() | 1 << (31 - self.length))
    }

    /// The domain that stands for the block: its destination, and zeros.
    fn domain(self) -> Xid {
        let mut id = [0; 20];
        id[..4].copy_from_slice(&self.destination().octets());
        Xid::new(XidType::AD, id)
    }
}

/// The names of a router with so many ports, to which these blocks are domains.
pub(in crate::bench) fn names(prefixes: &[Prefix], ports: usize) -> Names {
    let domains = prefixes.iter().map(|prefix| prefix.domain()).collect();
    Names::behind(ports, domains, &mut Random::from_seed(1))
}

/// The blocks of a file, in its order: a dump in the format MRT, or text with a block at the beginning of each
/// line.
///
/// # Errors
/// What is wrong with the file. Blocks that no packet of this benchmark could go to are left out, as are those
/// with bits behind their length, and repetitions.
pub(super) fn read(path: &Path) -> Result<Vec<Prefix>, String> {
    let shown = path.display();
    let bytes = fs::read(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    if let Some((name, program)) = compressed(&bytes) {
        return Err(format!(
            "{shown} is compressed with {name}; decompress it first, for example with `{program}`"
        ));
    }
    let found = match std::str::from_utf8(&bytes) {
        Ok(text) => from_text(text),
        Err(_) => from_mrt(&bytes).map_err(|error| format!("{shown} {error}"))?,
    };
    let mut known = HashSet::with_capacity(found.len());
    let usable = |prefix: &Prefix| {
        (8..=30).contains(&prefix.length)
            && prefix.address.to_bits() << prefix.length == 0
            && is_routable(prefix.address)
    };
    let prefixes: Vec<_> =
        found.into_iter().filter(usable).filter(|prefix| known.insert(*prefix)).collect();
    match prefixes.len() {
        0 => Err(format!(
            "{shown} has no IPv4 prefixes: it should be a dump of a routing table in the format MRT \
             (TABLE_DUMP_V2), or text with a prefix such as 192.0.2.0/24 at the beginning of each line"
        )),
        _ => Ok(prefixes),
    }
}

fn compressed(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    match bytes {
        [b'B', b'Z', b'h', ..] => Some(("bzip2", "bunzip2 -k")),
        [0x1f, 0x8b, ..] => Some(("gzip", "gunzip -k")),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Some(("xz", "unxz -k")),
        _ => None,
    }
}

fn from_text(text: &str) -> Vec<Prefix> {
    let prefix = |line: &str| {
        let (address, length) = line.split_whitespace().next()?.split_once('/')?;
        Some(Prefix { address: address.parse().ok()?, length: length.parse().ok()? })
    };
    text.lines().filter_map(prefix).collect()
}

/// The blocks of the records that tell of IPv4 unicast routes.
fn from_mrt(bytes: &[u8]) -> Result<Vec<Prefix>, String> {
    /// Time, type, subtype and length.
    const HEADER: usize = 12;
    const TABLE_DUMP_V2: u16 = 13;
    const RIB_IPV4_UNICAST: u16 = 2;
    let (mut prefixes, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let cut =
            || format!("is no MRT file, or it is cut off: the record at byte {at} is incomplete");
        let header = bytes.get(at..at + HEADER).ok_or_else(cut)?;
        let number = |from: usize| u16::from_be_bytes([header[from], header[from + 1]]);
        let length = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let body = bytes.get(at + HEADER..at + HEADER + length).ok_or_else(cut)?;
        if (number(4), number(6)) == (TABLE_DUMP_V2, RIB_IPV4_UNICAST) {
            prefixes.push(of_record(body).ok_or_else(cut)?);
        }
        at += HEADER + length;
    }
    Ok(prefixes)
}

/// The block of one record: a number, the length in bits, and as many bytes as that takes.
fn of_record(body: &[u8]) -> Option<Prefix> {
    let length = *body.get(4)?;
    let given = body.get(5..5 + usize::from(length).div_ceil(8))?;
    let mut octets = [0; 4];
    octets.get_mut(..given.len())?.copy_from_slice(given);
    Some(Prefix { address: Ipv4Addr::from(octets), length })
}

/// This many blocks, all different, in no order; which ones follows from `random`.
pub(in crate::bench) fn prefixes(count: usize, random: &mut Random) -> Vec<Prefix> {
    let mut known = HashSet::with_capacity(count);
    let mut prefixes = Vec::with_capacity(count);
    let all: u32 = LENGTHS.iter().map(|(_, share)| share).sum();
    while prefixes.len() < count {
        let length = length(random.below(u64::from(all)) as u32);
        let bits = (random.number() as u32) >> (32 - length) << (32 - length);
        let prefix = Prefix { address: Ipv4Addr::from_bits(bits), length };
        if is_routable(prefix.address) && known.insert(prefix) {
            prefixes.push(prefix);
        }
    }
    prefixes
}

fn length(mut place: u32) -> u8 {
    for (length, share) in LENGTHS {
        if place < share {
            return length;
        }
        place -= share;
    }
    24
}

/// Whether a block may begin here: none of those that the kernel, or the network of the benchmark, has a use
/// of its own for.
fn is_routable(address: Ipv4Addr) -> bool {
    !matches!(address.octets()[0], 0 | 10 | 127 | 169 | 224..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_as_long_as_those_of_the_internet_and_have_destinations_of_their_own() {
        let prefixes = prefixes(20_000, &mut Random::from_seed(1));
        let share = |length| {
            let count = prefixes.iter().filter(|prefix| prefix.length == length).count();
            count as f64 / prefixes.len() as f64
        };
        assert!((share(24) - 0.55).abs() < 0.02 && (share(22) - 0.096).abs() < 0.01);
        let destinations: HashSet<_> = prefixes.iter().map(|prefix| prefix.destination()).collect();
        assert_eq!(destinations.len(), prefixes.len());
    }

    fn record(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.extend([13_u16, kind].iter().flat_map(|number| number.to_be_bytes()));
        bytes.extend((body.len() as u32).to_be_bytes());
        bytes.extend(body);
        bytes
    }

    fn read_bytes(bytes: &[u8]) -> Result<Vec<Prefix>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        read(file.path())
    }

    #[test]
    fn a_dump_gives_its_prefixes_once() {
        let twenty = Prefix { address: Ipv4Addr::new(20, 1, 16, 0), length: 20 };
        let eight = Prefix { address: Ipv4Addr::new(30, 0, 0, 0), length: 8 };
        // An index of peers, two prefixes, one of them twice, one of IPv6, and a default route.
        let dump = [
            record(1, &[0; 8]),
            record(2, &[0, 0, 0, 0, 20, 20, 1, 16, 9, 9]),
            record(2, &[0, 0, 0, 1, 8, 30, 9]),
            record(4, &[0, 0, 0, 2, 32, 0x20, 1, 0xd, 0xb8]),
            record(2, &[0, 0, 0, 3, 20, 20, 1, 16]),
            record(2, &[0, 0, 0, 4, 0]),
            record(2, &[0, 0, 0, 5, 24, 200, 255, 3]),
        ]
        .concat();
        let last = Prefix { address: Ipv4Addr::new(200, 255, 3, 0), length: 24 };
        assert_eq!(read_bytes(&dump).unwrap(), [twenty, eight, last]);
        let cut = read_bytes(&dump[..dump.len() - 1]).unwrap_err();
        assert!(cut.contains("cut off: the record at byte"), "{cut}");
        let text = "# a table\n20.1.16.0/20 via 9.9.9.9\n30.0.0.0/8\n30.0.0.1/8\n127.0.0.0/8\n";
        assert_eq!(read_bytes(text.as_bytes()).unwrap(), [twenty, eight]);
        assert!(read_bytes(b"nothing").unwrap_err().contains("has no IPv4 prefixes"));
        assert!(read_bytes(b"BZh91AY").unwrap_err().contains("bunzip2"));
    }

    #[test]
    fn a_destination_is_the_prefix_and_the_bit_behind_it() {
        let prefix = Prefix { address: Ipv4Addr::new(11, 0, 0, 0), length: 8 };
        assert_eq!(prefix.destination(), Ipv4Addr::new(11, 128, 0, 0));
        assert_eq!(prefix.domain().id[..5], [11, 128, 0, 0, 0]);
    }
}
