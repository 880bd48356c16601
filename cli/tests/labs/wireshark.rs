//! What is sent is what Wireshark, a decoder that others wrote, takes for XIP and NWP.
//!
//! The command `tshark` must be installed. It knows the two EtherTypes; that a UDP port carries XIP it
//! has to be told.

use std::fs;
use std::path::Path;

use weft_xip::Address;

use crate::network::{TO, lab, push, receive, run};
use crate::support::{is_root, run_as_nobody, succeeded};

/// What tells Wireshark that the tunnel's port carries XIP; the handbook says the same.
const TUNNEL: &str = "DissectorTable.get(\"udp.port\"):add(13781, Dissector.get(\"xip\"))\n";

/// What is asked of each frame.
const FIELDS: [&str; 5] =
    ["eth.type", "frame.protocols", "xip.dst_dag_entry", "_ws.expert.message", "_ws.malformed"];

/// A frame as Wireshark sees it.
#[derive(Debug)]
struct Frame {
    ethertype: u32,
    layers: String,
    /// Empty if there is none.
    destination: String,
    complaint: String,
}

/// The frames of a capture.
fn dissect(capture: &Path) -> Vec<Frame> {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("tunnel.lua"), TUNNEL).unwrap();
    fs::copy(capture, directory.path().join("capture")).unwrap();
    let mut arguments = vec!["-X", "lua_script:tunnel.lua", "-r", "capture"];
    // The simulator computes them itself.
    arguments.extend(["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]);
    arguments.extend(["-T", "fields", "-E", "separator=|"]);
    arguments.extend(FIELDS.iter().flat_map(|field| ["-e", field]));
    // Version 4.4 loads no scripts for root.
    let output = run_as_nobody("tshark", directory.path(), &arguments);
    succeeded(&output).lines().map(frame).collect()
}

fn frame(line: &str) -> Frame {
    let fields: Vec<&str> = line.split('|').collect();
    let [ethertype, layers, destination, expert, malformed] = fields[..] else {
        panic!("not the fields {FIELDS:?}: {line}")
    };
    Frame {
        // Some versions print four digits, some eight.
        ethertype: u32::from_str_radix(ethertype.trim_start_matches("0x"), 16).unwrap(),
        layers: layers.to_owned(),
        destination: destination.replace("\\n", "\n"),
        complaint: format!("{expert}{malformed}"),
    }
}

/// An address as Wireshark writes it, which is how weft writes it.
fn address(shown: &str) -> Address {
    let address: Address = shown.parse().unwrap();
    assert_eq!(format!("{address:#}"), shown);
    address
}

/// Runs a push through tunnel and tree, and some pings; the frames, and the address pushed to.
fn frames(name: &str, engine: &str) -> (Vec<Frame>, Address) {
    let receivers = ["client1", "client2", "client3"];
    let steps = receivers.map(|client| receive(client, &format!("at-{client}"))).concat()
        + &format!("say \"pushed to {TO}\";\n")
        + &push()
        + &receivers.map(|client| format!("wait-exit at-{client} timeout 10min;\n")).concat()
        // Whoever has received is known as a neighbour.
        + "exec r \"weft xia ping @client1 --count 5 --interval 0.1 --quiet\";
           stop sender;
           expect-files-equal payload client1/payload client2/payload client3/payload;";
    let options = ["--engine", engine, "--capture", "all.pcapng"];
    let ran = run(name, &lab(name, &steps), &[], &options);
    let to = ran.stderr.lines().find_map(|line| line.strip_prefix("pushed to ")).unwrap();
    (dissect(&ran.path("../all.pcapng")), to.parse().unwrap())
}

/// Every frame is what its EtherType says, and nothing is wrong with it.
fn check(frames: &[Frame], pushed_to: Address) {
    let mut counts = [0, 0, 0];
    for frame in frames {
        if frame.ethertype == 0xc0df && frame.complaint.starts_with("Unknown NWP packet type (0x8")
        {
            // Messages of weft's own, which it does not know.
            continue;
        }
        assert_eq!(frame.complaint, "", "{frame:?}");
        let (count, layers) = match frame.ethertype {
            0x0800 => (0, "eth:ethertype:ip:udp:xip:data"),
            0xc0de => (1, "eth:ethertype:xip:data"),
            0xc0df => (2, "eth:ethertype:nwp"),
            // The kernel's, for the next hop of the tunnel.
            0x0806 => continue,
            _ => panic!("{frame:?}"),
        };
        assert_eq!(frame.layers, layers, "{frame:?}");
        counts[count] += 1;
    }
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    // In the tunnel the address is as it was given; behind it, the way so far is marked.
    let count = |ethertype, as_given: fn(Address) -> Address| {
        let frames = frames.iter().filter(|frame| frame.ethertype == ethertype);
        let addresses = frames.map(|frame| address(&frame.destination));
        addresses.filter(|address| as_given(*address) == pushed_to).count()
    };
    assert_eq!(count(0x0800, |address| address), counts[0]);
    assert!(count(0xc0de, Address::without_marks) > counts[1] / 2);
}

#[test]
fn wireshark_understands_what_the_simulator_sends() {
    let (frames, pushed_to) = frames("seen-in-simulator", "sim");
    check(&frames, pushed_to);
}

#[test]
fn wireshark_understands_what_real_interfaces_send() {
    if !is_root() {
        return;
    }
    let (frames, pushed_to) = frames("seen-on-wires", "netns");
    check(&frames, pushed_to);
}

#[test]
fn complaints_of_wireshark_are_seen() {
    // Probes of a router, some of them wrong on purpose.
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/xia");
    let frames = dissect(&vectors.join("xia-router-behaviour.pcap"));
    let wrong = frames.iter().filter(|frame| !frame.complaint.is_empty()).count();
    assert!(0 < wrong && wrong < frames.len(), "{wrong} of {}", frames.len());
}
