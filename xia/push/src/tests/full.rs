//! Full disks: what stays for a later run.

use std::time::Duration;

use super::*;
use crate::host::HostInput;
use crate::receiver::FullDisk;

const LONG: Duration = Duration::from_secs(600);

fn give_up() -> ReceiverConfig {
    ReceiverConfig { on_full: FullDisk::Fail, ..to_directory() }
}

fn limited(capacity: u64) -> Disk {
    Disk { capacity: Some(capacity), ..Disk::default() }
}

/// Runs until the receiver has given up, and says with what words.
fn failure(network: &mut Network) -> String {
    network.run_until(LONG, |network| network.receivers[0].done);
    assert_eq!(network.receivers[0].disk.open_files(), 0);
    let failures = &network.receivers[0].failures;
    assert_eq!(failures.len(), 1, "{failures:?}");
    failures[0].clone()
}

/// Starts the receiver again, with room, and runs until it has the file; how many symbols earlier runs
/// had left it.
fn resumed(network: &mut Network, file: &[u8]) -> u64 {
    network.receivers[0].disk.capacity = None;
    network.start_receiver(0);
    network.run_until_received(1, LONG);
    network.run_for(Duration::from_millis(1));
    assert_only_file(network, 0, "/dst/file.bin", file);
    network.receivers[0].reports[0].symbols_resumed
}

#[test]
fn what_was_received_before_the_disk_was_full_stays_for_a_later_run() {
    let file = content(600_000, 1);
    for (loss, late) in [(0, false), (10, false), (40, false), (10, true)] {
        let mut network = Network::new(loss);
        network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
        let round = u32::from(late);
        network.run_until(LONG, |network| network.senders[0].sender.round() >= round);
        network.add_receiver(give_up(), limited(300_000), lossy(loss));
        let text = failure(&mut network);
        assert!(text.contains("disk is full"), "{text}");
        assert!(text.ends_with("; what was received stays for a later run"), "{text}");
        // 300 kB have room for 4,687 symbols, or holes where some were lost; the last thousand make
        // room for the state.
        let resumed = resumed(&mut network, &file);
        assert!(resumed > 1500, "{resumed} symbols with {loss} % lost, late: {late}");
    }
}

#[test]
fn part_of_a_block_is_kept_where_a_whole_one_finds_no_room() {
    let file = content(640_000, 5);
    let mut network = Network::new(5);
    let config = SenderConfig { block_size: 64 * 8192, ..small_sender(Limit::UntilStopped) };
    network.add_receiver(give_up(), limited(200_000), lossy(10));
    network.add_sender("a", config, source(&file));
    let text = failure(&mut network);
    assert!(text.ends_with("; what was received stays for a later run"), "{text}");
    assert!(resumed(&mut network, &file) > 1000);
}

#[test]
fn a_receiver_that_is_stopped_on_a_full_disk_saves_what_it_has() {
    let file = content(600_000, 2);
    let mut network = Network::new(2);
    network.add_receiver(to_directory(), limited(300_000), lossy(10));
    network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
    network.run_until(LONG, |network| {
        network.receivers[0].lines.iter().any(|line| line.contains("disk is full"))
    });
    network.tell_receiver(0, HostInput::Stop.into());
    network.run_until(LONG, |network| network.receivers[0].done);
    assert_eq!(network.receivers[0].disk.open_files(), 0);
    assert!(resumed(&mut network, &file) > 2500);
}

#[test]
fn a_state_from_before_the_disk_was_full_is_kept() {
    let file = content(100_000, 3);
    let mut network = Network::new(3);
    network.add_receiver(give_up(), Disk::default(), lossy(40));
    network.add_sender("a", small_sender(Limit::Rounds(0)), source(&file));
    // A second of silence after the source round the state is saved.
    network.run_until(LONG, |network| {
        let mut files = network.receivers[0].disk.files.keys();
        files.any(|path| path.extension().is_some_and(|extension| extension == "state"))
    });
    let disk = &mut network.receivers[0].disk;
    disk.capacity = Some(disk.used());
    network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
    let text = failure(&mut network);
    assert!(text.ends_with("; what was saved before stays for a later run"), "{text}");
    assert!(resumed(&mut network, &file) > 500);
}

#[test]
fn what_cannot_be_gone_on_with_is_said_and_removed() {
    let file = content(100_000, 4);
    let mut network = Network::new(4);
    network.add_receiver(give_up(), limited(6000), lossy(10));
    network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
    let text = failure(&mut network);
    assert!(text.contains("nothing of it stays"), "{text}");
    assert!(network.receivers[0].disk.files.is_empty());
    assert_eq!(resumed(&mut network, &file), 0);
}
