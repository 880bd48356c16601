//! `weft bgp table`: a file in the form of MRT, for people and programs.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use serde_json::{Value, json};
use weft_bgp::mrt::{Message, PeerTable, Record, Records, Rib, RibEntry};
use weft_bgp::wire::{Family, HEADER_LEN, NextHop};

use super::TableArgs;
use crate::output::{Outcome, print_lines};

pub(super) fn run(args: &TableArgs) -> Outcome {
    let name = args.file.display();
    let file: Box<dyn Read> = if args.file == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(&args.file).map_err(|error| format!("{name}: {error}"))?)
    };
    let mut records = Records::new(BufReader::new(file));
    let mut peers = None;
    for record in records.by_ref() {
        let (seconds, record) = record.map_err(|error| format!("{name}: {error}"))?;
        let lines = match args.json {
            true => vec![json_of(seconds, &record).to_string()],
            false => lines(&record, peers.as_ref()),
        };
        print_lines(lines)?;
        if let Record::Peers(table) = record {
            peers = Some(table);
        }
    }
    if records.passed_over() > 0 {
        eprintln!("{} records of other kinds were passed over", records.passed_over());
    }
    Ok(0)
}

fn lines(record: &Record, peers: Option<&PeerTable>) -> Vec<String> {
    match record {
        Record::Peers(table) => {
            let collector = format!("collector {} view `{}`", table.collector, table.view);
            let peers = table.peers.iter().map(|peer| {
                format!(
                    "peer {} as {} id {}",
                    peer.address, peer.autonomous_system, peer.identifier
                )
            });
            std::iter::once(collector).chain(peers).collect()
        }
        Record::Rib(rib) => rib.entries.iter().map(|entry| line(rib, entry, peers)).collect(),
        Record::Message(message) => {
            let [peer, local] = message.addresses;
            let way = if message.is_sent { "to" } else { "from" };
            vec![format!(
                "message {way} {peer} as {} at {local}: type {}, {} bytes",
                message.autonomous_systems[0],
                kind(message),
                message.bytes.len()
            )]
        }
    }
}

fn line(rib: &Rib, entry: &RibEntry, peers: Option<&PeerTable>) -> String {
    let peer = peers.and_then(|table| table.peers.get(usize::from(entry.peer)));
    let from = peer.map_or_else(|| format!("peer {}", entry.peer), |peer| peer.address.to_string());
    let attributes = &entry.attributes;
    let id = entry.path_id.map_or_else(String::new, |id| format!(" id {id}"));
    format!(
        "{} via {} path {} from {from}{id}",
        net(rib),
        next_hop(entry).unwrap_or_else(|| "-".to_owned()),
        attributes.as_path,
    )
}

/// The type of a message (RFC 4271 §4.1); 0 if it is too short to have one.
fn kind(message: &Message) -> u8 {
    message.bytes.get(HEADER_LEN - 1).copied().unwrap_or(0)
}

fn net(rib: &Rib) -> String {
    let is_ipv6 = matches!(rib.family, Family::IPV6_UNICAST | Family::IPV6_MULTICAST);
    let version =
        if is_ipv6 { weft_routing::ip::Version::V6 } else { weft_routing::ip::Version::V4 };
    version.net(&rib.prefix).to_string()
}

fn next_hop(entry: &RibEntry) -> Option<String> {
    entry.attributes.next_hop.map(|next_hop| match next_hop {
        NextHop::V4(address) => address.to_string(),
        NextHop::V6 { global, .. } => global.to_string(),
    })
}

fn json_of(seconds: u32, record: &Record) -> Value {
    match record {
        Record::Peers(table) => {
            let peer = |peer: &weft_bgp::mrt::Peer| json!({ "address": peer.address.to_string(), "as": peer.autonomous_system, "id": peer.identifier.to_string() });
            json!({
                "seconds": seconds, "collector": table.collector.to_string(), "view": table.view,
                "peers": table.peers.iter().map(peer).collect::<Vec<_>>(),
            })
        }
        Record::Rib(rib) => {
            let entry = |entry: &RibEntry| {
                let attributes = &entry.attributes;
                json!({
                    "peer": entry.peer, "since": entry.since, "path-id": entry.path_id,
                    "next-hop": next_hop(entry), "path": attributes.as_path.to_string(),
                    "origin": format!("{:?}", attributes.origin).to_lowercase(), "med": attributes.med,
                    "local-pref": attributes.local_pref, "communities": attributes.communities,
                })
            };
            json!({
                "seconds": seconds, "sequence": rib.sequence, "prefix": net(rib), "family": rib.family.to_string(),
                "entries": rib.entries.iter().map(entry).collect::<Vec<_>>(),
            })
        }
        Record::Message(message) => {
            let [peer, local] = message.addresses;
            json!({
                "seconds": seconds, "peer": peer.to_string(), "local": local.to_string(),
                "as": message.autonomous_systems[0], "sent": message.is_sent, "type": kind(message),
                "length": message.bytes.len(),
            })
        }
    }
}
