//! Files over lossy links.

use std::time::Duration;

use super::*;

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
