//! Datagrams that lie.

use std::time::Duration;

use weft_base::{Packet, Random};

use super::*;
use crate::object::{Description, Extent, ObjectId, ObjectKind, SenderKey, Sha256Digest, Total};
use crate::receiver::{DropReason, Limits};
use crate::wire::{Announce, Symbol};

const LONG: Duration = Duration::from_secs(600);

/// A symbol of zeros.
pub(super) fn symbol(object: ObjectId, offset: u64, len: u32, esi: u32, size: usize) -> Packet {
    let block = Extent { offset, len };
    let payload = vec![0; size];
    let symbol = Symbol { object, kind: ObjectKind::File, block, esi, payload: &payload };
    symbol.emit(size as u16)
}

/// Numbers that are likely to make trouble.
fn odd_number(random: &mut Random, bits: u32) -> u64 {
    let all = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    match random.below(4) {
        0 => random.below(5),
        1 => all - random.below(5),
        2 => 1 << random.below(u64::from(bits)),
        _ => random.number() & all,
    }
}

fn odd_symbol(random: &mut Random, object: ObjectId) -> Packet {
    let size = [1, 16, 64, 1280, 2000][random.below(5) as usize];
    let kind = if random.chance(1, 4) { ObjectKind::Stream } else { ObjectKind::File };
    let near = random.chance(1, 2);
    let (offset, len) = if near {
        (3200 * random.below(10), 3200 - random.below(2) as u32)
    } else {
        (odd_number(random, 48), odd_number(random, 32) as u32)
    };
    let mut payload = vec![0; size];
    random.fill(&mut payload);
    let esi = odd_number(random, 24) as u32;
    let block = Extent { offset, len };
    Symbol { object, kind, block, esi, payload: &payload }.emit(size as u16)
}

fn odd_announce(random: &mut Random, object: Option<ObjectId>) -> Packet {
    let kind = if random.chance(1, 2) { ObjectKind::Stream } else { ObjectKind::File };
    let symbol_size = odd_number(random, 16) as u16;
    let symbols = odd_number(random, 13) as u32;
    let block_size = symbols.wrapping_mul(u32::from(symbol_size));
    let name = ["../x", "", "file.bin", "\u{202e}gpj"][random.below(4) as usize].to_owned();
    let description = Description { name, symbol_size, block_size };
    let total = Total { length: odd_number(random, 48), sha256: Sha256Digest([1; 32]) };
    // An honest id for a dishonest object, or a dishonest id.
    let object = object.unwrap_or_else(|| description.file_id(&total));
    let total = Some(total).filter(|_| kind == ObjectKind::File || random.chance(1, 2));
    let round = odd_number(random, 16) as u16;
    Announce { object, kind, round, description, total }.emit()
}

#[test]
fn floods_of_odd_datagrams_neither_crash_nor_fill_memory_nor_stop_others() {
    for seed in 0..6 {
        let mut network = Network::new(seed);
        let file = content(30_000, seed);
        network.add_receiver(to_directory(), Disk::default(), lossy(5));
        network.add_sender("good", small_sender(Limit::UntilStopped), source(&file));
        let ids: Vec<ObjectId> = (0..30).map(|id| ObjectId([id; 16])).collect();
        let evil = [SenderKey::new(b"evil"), SenderKey::new(b"worse")];
        for _ in 0..3000 {
            let random = &mut network.random;
            let id = ids[random.below(30) as usize];
            let packet = match random.below(10) {
                0 => odd_announce(random, Some(id)),
                1 => odd_announce(random, None),
                2 => {
                    let mut bytes = vec![0; random.below(100) as usize];
                    random.fill(&mut bytes);
                    Packet::from_slice(&bytes)
                }
                _ => odd_symbol(random, id),
            };
            let from = evil[random.below(2) as usize];
            network.deliver(0, &packet, from);
            network.run_for(Duration::from_micros(50));
        }
        let good = network.senders[0].sender.object();
        network.run_until(LONG, |network| {
            network.receivers[0].reports.iter().any(|report| Some(report.object) == good)
        });
        let host = &network.receivers[0];
        assert!(host.peak < 64 << 20, "{} bytes in memory", host.peak);
        let stored = host.disk.files.iter().filter(|(_, content)| content.is(&file)).count();
        assert_eq!(stored, 1, "seed {seed}");
        for path in host.disk.files.keys() {
            assert_eq!(path.parent(), Some(Path::new("/dst")));
        }
    }
}

#[test]
fn objects_are_limited_in_all_and_per_sender() {
    let mut network = Network::new(1);
    let limits = Limits { objects: 5, objects_per_sender: 3, ..Limits::default() };
    let config = ReceiverConfig { limits, ..to_directory() };
    network.add_receiver(config, Disk::default(), lossy(0));
    network.run_for(Duration::from_millis(1));
    for sender in [b"a", b"b"] {
        for id in 0..10 {
            let packet = symbol(ObjectId([id; 16]), 0, 1000, 0, 64);
            network.deliver(0, &packet, SenderKey::new(sender));
        }
    }
    network.run_for(Duration::from_millis(100));
    let drops = network.receivers[0].receiver.as_ref().unwrap().drops().clone();
    assert_eq!(drops.get(DropReason::SenderObjects), 7);
    assert_eq!(drops.get(DropReason::Objects), 8);
}

/// Sends symbols to one receiver with these limits and says what was dropped for `reason`.
fn dropped(limits: Limits, packets: &[Packet], reason: DropReason) -> u64 {
    let mut network = Network::new(2);
    let config = ReceiverConfig { limits, ..to_directory() };
    network.add_receiver(config, Disk::default(), lossy(0));
    network.run_for(Duration::from_millis(1));
    for packet in packets {
        network.deliver(0, packet, SenderKey::new(b"a"));
        network.run_for(Duration::from_millis(1));
    }
    network.run_for(Duration::from_millis(100));
    network.receivers[0].receiver.as_ref().unwrap().drops().get(reason)
}

#[test]
fn what_one_object_may_take_is_limited() {
    let id = ObjectId([1; 16]);
    let default = Limits::default;
    let symbols = |count: u32| -> Vec<Packet> {
        (0..count).map(|esi| symbol(id, 0, 64_000, esi, 64)).collect()
    };

    let limits = Limits { disk_bytes_per_sender: 640, ..default() };
    assert_eq!(dropped(limits, &symbols(30), DropReason::SenderDisk), 20);

    let large = [symbol(id, 0, 2000, 0, 64), symbol(id, 1 << 30, 1000, 0, 64)];
    let limits = Limits { object_bytes: 1 << 20, block_bytes: 1000, ..default() };
    assert_eq!(dropped(limits, &large, DropReason::TooLarge), 2);
    let many = [symbol(id, 0, 20_000, 0, 1)];
    assert_eq!(dropped(default(), &many, DropReason::TooLarge), 1);

    let blocks: Vec<_> = (0..100).map(|block| symbol(id, block * 64_000, 64_000, 0, 64)).collect();
    let limits = Limits { index_bytes: 20 * (160 + 128), ..default() };
    assert_eq!(dropped(limits, &blocks, DropReason::Index), 80);

    // One slot: a block nearer to the start takes it from one further away.
    let repair: Vec<_> = [2, 1, 3, 1].map(|block| symbol(id, block * 1000, 1000, 99, 64)).into();
    let limits = Limits { repair_bytes: 80, ..default() };
    assert_eq!(dropped(limits, &repair, DropReason::RepairSpace), 1);

    let conflicts = [
        symbol(id, 0, 1000, 0, 64),
        symbol(id, 0, 999, 1, 64),
        symbol(id, 500, 1000, 0, 64),
        symbol(id, 0, 1000, 1, 65),
    ];
    assert_eq!(dropped(default(), &conflicts, DropReason::Conflict), 3);
}

#[test]
fn forged_announces_of_files_are_dropped() {
    let mut random = Random::from_seed(3);
    let forged: Vec<Packet> = (0..200)
        .map(|_| odd_announce(&mut random, Some(ObjectId([1; 16]))))
        .filter(|packet| packet.bytes()[1] & 1 == 0)
        .collect();
    let forged_drops = dropped(Limits::default(), &forged, DropReason::Forged);
    let malformed = dropped(Limits::default(), &forged, DropReason::Malformed);
    assert_eq!(forged_drops + malformed, forged.len() as u64);
    assert!(forged_drops > 10);
}

#[test]
fn symbols_that_contradict_the_announce_are_thrown_away_when_it_comes() {
    let file = content(20_000, 4);
    let mut network = Network::new(4);
    network.add_receiver(to_directory(), Disk::default(), lossy(0));
    network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
    // Before anything honest comes, somebody forges the sender and cuts the object otherwise.
    network.run_until(LONG, |network| network.senders[0].sender.object().is_some());
    let object = network.senders[0].sender.object().unwrap();
    let key = network.senders[0].key;
    for block in 0..4 {
        network.tell_receiver(
            0,
            crate::receiver::ReceiverInput::Datagram {
                packet: symbol(object, block * 1000, 1000, 0, 100),
                from: key,
            },
        );
    }
    network.run_until_received(1, LONG);
    network.run_for(Duration::from_millis(1));
    assert_only_file(&network, 0, "/dst/file.bin", &file);
}
