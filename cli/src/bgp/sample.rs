//! `weft bgp sample`: a synthetic table, in the forms that routers and their tools read.
//!
//! Prefixes follow one another. Three or four neighbouring ones share a path of two to five autonomous systems. All of it
//! follows from the arguments.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use clap::ValueEnum;
use weft_base::Random;
use weft_bgp::mrt::{Peer, PeerTable, Rib, RibEntry, emit_peers, emit_rib};
use weft_bgp::wire::{AsPath, Attributes, Family, NextHop, Origin};
use weft_routing::Prefix;
use weft_routing::ip::Version;

use crate::output::Outcome;

/// Numbers of autonomous systems in paths: those for documentation and private use with four octets (RFC 5398, RFC 6996)
/// are left to labs.
const NUMBERS: std::ops::Range<u64> = 1..64_000;
/// Lines of about a megabyte are written at once.
const BUFFER: usize = 1 << 20;

#[derive(Debug, clap::Args)]
pub(crate) struct SampleArgs {
    /// How many routes
    count: u32,
    /// The first prefix; those that follow have the same length
    #[arg(long, default_value = "100.0.0.0/24", value_parser = parse_prefix)]
    first: First,
    /// What is to read it
    #[arg(long, value_enum, default_value_t = Form::Plain)]
    form: Form,
    /// The number of the autonomous system that announces it: the first of each path where ExaBGP is to read it, the peer's
    /// in a file in the form of MRT
    #[arg(long = "as", default_value_t = 65_000)]
    autonomous_system: u32,
    /// Another number gives other paths
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// What can read a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A prefix in each line
    Plain,
    /// Routes of a static protocol of BIRD
    Bird,
    /// Statements `network` of FRR's BGP, without paths
    Frr,
    /// Routes of ExaBGP's block `static`, or of one in its block `announce`
    Exabgp,
    /// A table in the form of MRT (RFC 6396)
    Mrt,
}

/// A prefix and its version of IP.
#[derive(Debug, Clone, Copy)]
struct First {
    version: Version,
    /// The address, in the highest bits.
    bits: u128,
    length: u8,
}

impl First {
    /// The prefix so many places behind it; none behind the last of all.
    fn after(self, number: u32) -> Option<Prefix> {
        let step = 1_u128.checked_shl(128 - u32::from(self.length))?;
        let bits = self.bits.checked_add(step.checked_mul(number.into())?)?;
        Some(Prefix::from_high_bits(bits, self.length))
    }
}

fn parse_prefix(text: &str) -> Result<First, String> {
    let wrong =
        || format!("`{text}` is no prefix: write for example 100.0.0.0/24 or 2001:db8::/48");
    let (address, length) = text.split_once('/').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let length: u8 = length.parse().map_err(|_| wrong())?;
    let (version, bits, most) = match address {
        IpAddr::V4(address) => (Version::V4, u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (Version::V6, address.to_bits(), 128),
    };
    // Nothing is behind the length of a whole address of IPv6.
    let behind = bits.checked_shl(length.into()).unwrap_or(0);
    if !(1..=most).contains(&length) || behind != 0 {
        return Err(format!("{}, with zeros behind its length", wrong()));
    }
    Ok(First { version, bits, length })
}

/// Routes with the same path.
struct Group {
    path: Vec<u32>,
    prefixes: Vec<Prefix>,
}

fn groups(args: &SampleArgs) -> Result<Vec<Group>, String> {
    let mut random = Random::from_seed(args.seed);
    let (mut groups, mut number) = (Vec::new(), 0);
    while number < args.count {
        let size = (3 + random.below(2) as u32).min(args.count - number);
        let length = 2 + random.below(4);
        let path =
            (0..length).map(|_| (NUMBERS.start + random.below(NUMBERS.end - NUMBERS.start)) as u32);
        let path = path.collect();
        let prefixes = (number..number + size).map(|number| args.first.after(number));
        let prefixes: Option<Vec<_>> = prefixes.collect();
        let prefixes = prefixes.ok_or_else(|| {
            format!(
                "there are no {} prefixes from the first one on: begin with a lower one",
                args.count
            )
        })?;
        groups.push(Group { path, prefixes });
        number += size;
    }
    Ok(groups)
}

pub(super) fn run(args: &SampleArgs) -> Outcome {
    let groups = groups(args)?;
    let mut out = io::stdout().lock();
    let written = match args.form {
        Form::Mrt => out.write_all(&mrt(args, &groups)),
        form => write_lines(args, form, &groups, &mut out),
    };
    match written.and_then(|()| out.flush()) {
        // Whoever reads has enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        result => result.map(|()| 0).map_err(|error| format!("standard output: {error}")),
    }
}

fn write_lines(
    args: &SampleArgs,
    form: Form,
    groups: &[Group],
    out: &mut impl Write,
) -> io::Result<()> {
    let mut text = String::with_capacity(BUFFER);
    for group in groups {
        let path = path_text(args, form, group);
        for prefix in &group.prefixes {
            let net = args.first.version.net(prefix);
            // Writing to a string cannot fail.
            let _ = match form {
                Form::Bird => writeln!(text, "route {net} blackhole {{ {path} }};"),
                Form::Frr => writeln!(text, "network {net}"),
                Form::Exabgp => writeln!(text, "route {net} next-hop self as-path [ {path} ];"),
                Form::Plain | Form::Mrt => writeln!(text, "{net}"),
            };
        }
        if text.len() >= BUFFER {
            out.write_all(text.as_bytes())?;
            text.clear();
        }
    }
    out.write_all(text.as_bytes())
}

fn path_text(args: &SampleArgs, form: Form, group: &Group) -> String {
    let number = |number: &u32| number.to_string();
    match form {
        // It is built from its end.
        Form::Bird => {
            let steps =
                group.path.iter().rev().map(|number| format!("bgp_path.prepend({number});"));
            steps.collect::<Vec<_>>().join(" ")
        }
        Form::Exabgp => {
            let all = std::iter::once(&args.autonomous_system).chain(&group.path);
            all.map(number).collect::<Vec<_>>().join(" ")
        }
        Form::Plain | Form::Frr | Form::Mrt => String::new(),
    }
}

/// A table whose only peer, at an address that is nobody's, has announced all.
fn mrt(args: &SampleArgs, groups: &[Group]) -> Vec<u8> {
    let (address, next_hop, family): (IpAddr, _, _) = match args.first.version.is_ipv6() {
        false => {
            let address = Ipv4Addr::new(192, 0, 2, 1);
            (address.into(), NextHop::V4(address), Family::IPV4_UNICAST)
        }
        true => {
            let global = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
            (global.into(), NextHop::V6 { global, link_local: None }, Family::IPV6_UNICAST)
        }
    };
    let identifier = Ipv4Addr::new(192, 0, 2, 1);
    let peer = Peer { address, autonomous_system: args.autonomous_system, identifier };
    let table = PeerTable { collector: identifier, view: "sample".to_owned(), peers: vec![peer] };
    let mut out = Vec::new();
    emit_peers(0, &table, &mut out);
    let mut sequence = 0;
    for group in groups {
        let attributes = Attributes {
            as_path: AsPath::from_sequence(&group.path),
            next_hop: Some(next_hop),
            origin: Origin::Igp,
            ..Attributes::default()
        };
        for prefix in &group.prefixes {
            let entry =
                RibEntry { peer: 0, since: 0, path_id: None, attributes: attributes.clone() };
            emit_rib(0, &Rib { sequence, family, prefix: *prefix, entries: vec![entry] }, &mut out);
            sequence += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use weft_bgp::mrt::{Record, Records};

    use super::*;

    fn args(count: u32, first: &str, form: Form) -> SampleArgs {
        let first = parse_prefix(first).unwrap();
        SampleArgs { count, first, form, autonomous_system: 65_001, seed: 1 }
    }

    fn lines(args: &SampleArgs) -> Vec<String> {
        let mut out = Vec::new();
        write_lines(args, args.form, &groups(args).unwrap(), &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn prefixes_follow_one_another() {
        let four = lines(&args(300, "100.0.255.0/24", Form::Plain));
        assert_eq!((four.len(), four[0].as_str()), (300, "100.0.255.0/24"));
        assert_eq!((four[1].as_str(), four[299].as_str()), ("100.1.0.0/24", "100.2.42.0/24"));
        let six = lines(&args(3, "2001:db8:ffff::/48", Form::Plain));
        assert_eq!(six, ["2001:db8:ffff::/48", "2001:db9::/48", "2001:db9:1::/48"]);
    }

    #[test]
    fn each_form_says_what_its_reader_understands() {
        assert_eq!(lines(&args(1, "10.0.0.0/8", Form::Frr)), ["network 10.0.0.0/8"]);
        let bird = &lines(&args(1, "10.0.0.0/8", Form::Bird))[0];
        assert!(bird.starts_with("route 10.0.0.0/8 blackhole { bgp_path.prepend("), "{bird}");
        let exabgp = &lines(&args(1, "10.0.0.0/8", Form::Exabgp))[0];
        assert!(exabgp.starts_with("route 10.0.0.0/8 next-hop self as-path [ 65001 "), "{exabgp}");
        // The same path, from its end and from its beginning.
        let numbers = |text: &str| -> Vec<u32> {
            let words = text.split(|c: char| !c.is_ascii_digit());
            // Behind the five of the prefix.
            words.filter_map(|word| word.parse().ok()).skip(5).collect()
        };
        let (mut bird, exabgp) = (numbers(bird), numbers(exabgp));
        bird.reverse();
        assert!((2..=5).contains(&bird.len()));
        assert_eq!(bird, exabgp[1..]);
    }

    #[test]
    fn a_file_in_the_form_of_mrt_is_read_back() {
        for (first, family) in
            [("10.0.0.0/24", Family::IPV4_UNICAST), ("2001:db8::/48", Family::IPV6_UNICAST)]
        {
            let args = args(100, first, Form::Mrt);
            let bytes = mrt(&args, &groups(&args).unwrap());
            let records: Vec<_> =
                Records::new(&bytes[..]).map(|record| record.unwrap().1).collect();
            let Record::Peers(table) = &records[0] else { panic!("peers come first") };
            assert_eq!(table.peers[0].autonomous_system, 65_001);
            assert_eq!(records.len(), 101);
            for (number, record) in records[1..].iter().enumerate() {
                let Record::Rib(rib) = record else { panic!("{record:?}") };
                assert_eq!(rib.family, family);
                assert_eq!(Some(rib.prefix), args.first.after(number as u32));
                assert!((2..=5).contains(&rib.entries[0].attributes.as_path.length()));
            }
        }
    }

    #[test]
    fn what_is_no_prefix_is_refused() {
        for wrong in ["", "10.0.0.0", "10.0.0.1/24", "10.0.0.0/33", "0.0.0.0/0", "x/24", "::1/127"]
        {
            assert!(parse_prefix(wrong).is_err(), "{wrong}");
        }
        assert!(parse_prefix("::1/128").is_ok());
        let args = args(3, "255.255.255.255/32", Form::Plain);
        assert!(groups(&args).is_err(), "there is one only");
    }
}
