//! Files over lossy links.

use std::time::Duration;

use super::*;
use crate::receiver::DropReason;

const LONG: Duration = Duration::from_secs(600);

#[test]
fn a_file_arrives_over_a_clean_link_without_decoding() {
    let file = content(10_000, 1);
    let mut network = Network::new(1);
    network.add_receiver(to_directory(), Disk::default(), lossy(0));
    network.add_sender("a", small_sender(Limit::Rounds(0)), source(&file));
    network.run_until_received(1, LONG);
    network.run_for(Duration::from_secs(3));
    let report = &network.receivers[0].reports[0];
    assert_eq!((report.bytes, report.symbols_needed, report.symbols_used), (10_000, 157, 157));
    assert_eq!((report.blocks_decoded, report.duplicates), (0, 0));
    assert_only_file(&network, 0, "/dst/file.bin", &file);
    let summary = network.senders[0].done.clone().unwrap().unwrap();
    assert_eq!((summary.source_symbols, summary.repair_symbols), (157, 0));
    assert_eq!(network.receivers[0].disk.open_files(), 0);
}

#[test]
fn a_file_arrives_whatever_is_lost_repeated_and_reordered() {
    for seed in 0..30 {
        let mut network = Network::new(seed);
        let file = content(network.random.below(60_000) as usize, seed);
        for _ in 0..3 {
            let link = Link {
                loss: network.random.below(51),
                duplicates: network.random.below(20),
                jitter: Duration::from_millis(network.random.below(50)),
            };
            network.add_receiver(to_directory(), Disk::default(), link);
        }
        network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
        network.run_until_received(1, LONG);
        network.run_for(Duration::from_millis(1));
        for receiver in 0..3 {
            assert_only_file(&network, receiver, "/dst/file.bin", &file);
            let report = &network.receivers[receiver].reports[0];
            let blocks = file.len().div_ceil(64 * 50) as u64;
            assert!(report.symbols_used <= report.symbols_needed + 2 * blocks, "{report:?}");
        }
    }
}

#[test]
fn small_files_arrive() {
    for len in [0, 1, 2, 63, 64, 65, 128, 64 * 50, 64 * 50 + 1] {
        for loss in [0, 40] {
            let file = content(len, 3);
            let mut network = Network::new(len as u64);
            network.add_receiver(to_directory(), Disk::default(), lossy(loss));
            network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
            network.run_until_received(1, LONG);
            network.run_for(Duration::from_millis(1));
            assert_only_file(&network, 0, "/dst/file.bin", &file);
            assert_eq!(network.receivers[0].reports[0].bytes, len as u64);
        }
    }
}

#[test]
fn an_empty_file_arrives_by_its_announce_even_in_one_round() {
    let mut network = Network::new(4);
    network.add_receiver(to_directory(), Disk::default(), lossy(30));
    network.add_sender("a", small_sender(Limit::Rounds(1)), source(&[]));
    network.run_until_received(1, LONG);
    network.run_until(LONG, |network| network.senders[0].done.is_some());
    assert_only_file(&network, 0, "/dst/file.bin", &[]);
}

#[test]
fn repair_symbols_alone_are_enough_for_those_who_come_late() {
    let file = content(50_000, 5);
    let mut network = Network::new(5);
    network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
    network.run_until(LONG, |network| network.senders[0].sender.round() >= 1);
    network.add_receiver(to_directory(), Disk::default(), lossy(10));
    network.run_until(LONG, |network| network.senders[0].sender.round() >= 7);
    network.add_receiver(to_directory(), Disk::default(), lossy(10));
    network.run_until_received(1, LONG);
    network.run_for(Duration::from_millis(1));
    for receiver in 0..2 {
        assert_only_file(&network, receiver, "/dst/file.bin", &file);
        let report = &network.receivers[receiver].reports[0];
        assert_eq!((report.blocks_decoded, report.duplicates), (16, 0));
    }
}

#[test]
fn the_rounds_asked_for_are_sent_and_no_more() {
    let file = content(64 * 50 * 3, 6);
    for (limit, repair) in
        [(Limit::Rounds(2), 3 * 2 * 3), (Limit::Overhead(10), 3 * 5), (Limit::Rounds(0), 0)]
    {
        let mut network = Network::new(6);
        network.add_sender("a", small_sender(limit), source(&file));
        network.run_until(LONG, |network| network.senders[0].done.is_some());
        let summary = network.senders[0].done.clone().unwrap().unwrap();
        assert_eq!((summary.source_symbols, summary.repair_symbols), (150, repair), "{limit:?}");
    }
}

#[test]
fn a_sender_that_begins_again_goes_on_with_its_object() {
    let file = content(40_000, 7);
    let mut network = Network::new(7);
    network.add_receiver(to_directory(), Disk::default(), lossy(30));
    network.add_sender("a", small_sender(Limit::Rounds(1)), source(&file));
    network.run_until(LONG, |network| network.senders[0].done.is_some());
    assert!(network.receivers[0].reports.is_empty());
    network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
    network.run_until_received(1, LONG);
    network.run_for(Duration::from_millis(1));
    let ids: Vec<_> = network.senders.iter().filter_map(|host| host.sender.object()).collect();
    assert_eq!(ids[0], ids[1]);
    let report = &network.receivers[0].reports[0];
    assert!(report.duplicates > 200, "the source symbols came twice: {report:?}");
    assert_only_file(&network, 0, "/dst/file.bin", &file);
}

#[test]
fn files_of_one_name_from_two_senders_are_both_kept() {
    let files = [content(20_000, 8), content(21_000, 9)];
    let mut network = Network::new(8);
    network.add_receiver(to_directory(), Disk::default(), lossy(20));
    for (key, file) in ["a", "b"].iter().zip(&files) {
        network.add_sender(key, small_sender(Limit::UntilStopped), source(file));
    }
    network.run_until_received(2, LONG);
    network.run_for(Duration::from_millis(1));
    let stored = &network.receivers[0].disk.files;
    let names: Vec<_> = stored.keys().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(names, ["/dst/file-1.bin", "/dst/file.bin"]);
    for file in &files {
        assert!(stored.values().any(|content| content.bytes() == *file));
    }
}

#[test]
fn the_same_file_from_two_senders_is_kept_once() {
    let file = content(20_000, 10);
    let mut network = Network::new(10);
    network.add_receiver(to_directory(), Disk::default(), lossy(20));
    for key in ["a", "b"] {
        network.add_sender(key, small_sender(Limit::UntilStopped), source(&file));
    }
    network.run_until_received(2, LONG);
    network.run_for(Duration::from_millis(1));
    assert_only_file(&network, 0, "/dst/file.bin", &file);
}

#[test]
fn a_file_of_the_same_name_is_kept_unless_told_otherwise() {
    let (old, file) = (content(20_000, 11), content(20_000, 12));
    for overwrite in [false, true] {
        let mut network = Network::new(11);
        let config = ReceiverConfig { overwrite, ..to_directory() };
        network.add_receiver(config, Disk::with_file("/dst/file.bin", &old), lossy(5));
        network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
        network.run_until_received(1, LONG);
        network.run_for(Duration::from_millis(1));
        if overwrite {
            assert_only_file(&network, 0, "/dst/file.bin", &file);
        } else {
            let stored = &network.receivers[0].disk.files;
            assert_eq!(stored[Path::new("/dst/file.bin")].bytes(), old);
            assert_eq!(stored[Path::new("/dst/file-1.bin")].bytes(), file);
        }
    }
}

#[test]
fn a_receiver_ends_after_the_objects_it_was_to_receive() {
    let mut network = Network::new(13);
    let config = ReceiverConfig { count: Some(1), ..to_directory() };
    network.add_receiver(config, Disk::default(), lossy(10));
    let file = content(5_000, 13);
    network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
    network.run_until(LONG, |network| network.receivers[0].done);
    assert_only_file(&network, 0, "/dst/file.bin", &file);
    assert_eq!(network.receivers[0].disk.open_files(), 0);
}

#[test]
fn the_rest_of_the_carousel_is_ignored() {
    let mut network = Network::new(14);
    network.add_receiver(to_directory(), Disk::default(), lossy(0));
    let file = content(5_000, 14);
    network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
    network.run_for(Duration::from_secs(5));
    let host = &network.receivers[0];
    assert_eq!(host.reports.len(), 1);
    assert!(host.receiver.as_ref().unwrap().drops().get(DropReason::Ended) > 1000);
    assert_only_file(&network, 0, "/dst/file.bin", &file);
}

#[test]
fn memory_does_not_grow_with_the_file() {
    let peaks: Vec<(usize, usize)> = [2 << 20, 8 << 20]
        .into_iter()
        .map(|len| {
            let file = content(len, 15);
            let mut network = Network::new(15);
            network.add_receiver(to_directory(), Disk::default(), lossy(2));
            let config =
                SenderConfig { rate: Some(500_000_000), ..SenderConfig::new("/src/file.bin") };
            network.add_sender("a", config, source(&file));
            network.run_until_received(1, LONG);
            let report = &network.receivers[0].reports[0];
            assert!(report.symbols_used * 100 <= report.symbols_needed * 102);
            (network.senders[0].peak, network.receivers[0].peak)
        })
        .collect();
    let block = 512 * 1280;
    for (sender, receiver) in peaks {
        assert!(sender <= 2 * block, "the sender holds {sender} bytes");
        assert!(receiver <= 4 * block, "the receiver holds {receiver} bytes");
    }
}

#[test]
fn the_rate_is_kept_in_any_window_of_time() {
    let file = content(300_000, 16);
    let mut network = Network::new(16);
    let rate = 20_000_000;
    let config = SenderConfig { rate: Some(rate), ..SenderConfig::new("/src/file.bin") };
    network.add_sender("a", config, source(&file));
    let sent = network.record_sending(Duration::from_secs(1));
    let bits: u64 = sent.iter().map(|(_, bytes)| *bytes as u64 * 8).sum();
    let burst = rate / 1000 + 4 * 1312 * 8;
    assert!(bits <= rate + burst && bits + 2 * burst >= rate, "{bits} bits in a second");
    for (first, (start, _)) in sent.iter().enumerate() {
        let mut window = 0;
        for (time, bytes) in &sent[first..sent.len().min(first + 100)] {
            window += *bytes as u64 * 8;
            let allowed = time.since(*start).as_nanos() as u64 * rate / 1_000_000_000 + burst;
            assert!(window <= allowed, "{window} bits in {:?}", time.since(*start));
        }
    }
}
