//! Kills, full disks, wrong content.

use std::time::Duration;

use super::disk::Sparse;
use super::*;
use crate::host::HostInput;
use crate::receiver::{DropReason, FullDisk, Limits, ReceiverInput};
use crate::sender::SenderInput;

const LONG: Duration = Duration::from_secs(600);

#[test]
fn a_killed_receiver_goes_on_and_nothing_wrong_is_ever_taken_over() {
    for seed in 0..40 {
        let mut network = Network::new(seed);
        let file = content(30_000 + network.random.below(60_000) as usize, seed);
        let link = Link {
            loss: network.random.below(51),
            duplicates: 3,
            jitter: Duration::from_millis(5),
        };
        network.add_receiver(to_directory(), Disk::default(), link);
        // Slow enough that states are saved while it sends.
        let config = SenderConfig { rate: Some(100_000), ..small_sender(Limit::UntilStopped) };
        network.add_sender("a", config, source(&file));
        let mut kills = 0;
        while kills < 4 && network.receivers[0].reports.is_empty() {
            let span = Duration::from_millis(network.random.below(6000));
            network.run_for(span);
            network.kill_receiver(0);
            network.run_for(Duration::from_millis(20));
            network.start_receiver(0);
            kills += 1;
        }
        network.run_until_received(1, LONG * 10);
        network.run_for(Duration::from_millis(1));
        assert_file(&network, "/dst/file.bin", &file);
        let lines = &network.receivers[0].lines;
        assert!(!lines.iter().any(|line| line.contains("SHA-256;")), "seed {seed}: {lines:?}");
    }
}

#[test]
fn a_killed_receiver_keeps_most_of_what_it_had() {
    let file = content(200_000, 1);
    let mut network = Network::new(1);
    network.add_receiver(to_directory(), Disk::default(), lossy(20));
    let config = SenderConfig { rate: Some(4_000_000), ..small_sender(Limit::Rounds(0)) };
    network.add_sender("a", config, source(&file));
    // The source round takes half a second; a second of silence later the state is saved.
    network.run_for(Duration::from_secs(4));
    network.kill_receiver(0);
    network.start_receiver(0);
    network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
    network.run_until_received(1, LONG);
    let report = &network.receivers[0].reports[0];
    assert!(report.symbols_resumed > 2300, "{report:?}");
    assert!(report.symbols_received < 900, "{report:?}");
}

#[test]
fn a_stopped_receiver_saves_what_it_has() {
    let file = content(100_000, 2);
    let mut network = Network::new(2);
    network.add_receiver(to_directory(), Disk::default(), lossy(30));
    network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
    network.run_for(Duration::from_millis(70));
    network.tell_receiver(0, HostInput::Stop.into());
    network.run_until(LONG, |network| network.receivers[0].done);
    assert_eq!(network.receivers[0].disk.open_files(), 0);
    network.start_receiver(0);
    network.run_until_received(1, LONG);
    network.run_for(Duration::from_millis(1));
    assert!(network.receivers[0].reports[0].symbols_resumed > 500);
    assert_only_file(&network, 0, "/dst/file.bin", &file);
}

#[test]
fn a_full_disk_is_told_once_and_reception_goes_on_when_there_is_room() {
    let file = content(100_000, 3);
    let mut network = Network::new(3);
    let disk = Disk { capacity: Some(50_000), ..Disk::default() };
    network.add_receiver(to_directory(), disk, lossy(10));
    network.add_sender("a", slow_sender(), source(&file));
    network.run_for(Duration::from_secs(20));
    let host = &mut network.receivers[0];
    assert!(host.reports.is_empty() && host.failures.is_empty());
    let told = host.lines.iter().filter(|line| line.contains("disk is full")).count();
    assert_eq!(told, 1, "{:?}", host.lines);
    assert!(!host.lines.iter().any(|line| line.contains("room on the disk again")));
    assert!(host.receiver.as_ref().unwrap().drops().get(DropReason::DiskFull) > 500);
    host.disk.capacity = None;
    network.run_until_received(1, LONG);
    network.run_for(Duration::from_millis(1));
    assert_only_file(&network, 0, "/dst/file.bin", &file);
}

#[test]
fn disks_that_fill_up_anywhere_never_spoil_a_file() {
    for seed in 0..20 {
        let mut network = Network::new(seed);
        let file = content(60_000, seed);
        let capacity = Some(network.random.below(120_000));
        let disk = Disk { capacity, ..Disk::default() };
        network.add_receiver(to_directory(), disk, lossy(30));
        network.add_sender("a", slow_sender(), source(&file));
        for _ in 0..5 {
            network.run_for(Duration::from_secs(2));
            network.receivers[0].disk.capacity = Some(network.random.below(120_000));
        }
        network.receivers[0].disk.capacity = None;
        network.run_until_received(1, LONG);
        network.run_for(Duration::from_millis(1));
        assert_file(&network, "/dst/file.bin", &file);
    }
}

#[test]
fn a_receiver_told_not_to_wait_ends_with_a_full_disk() {
    let file = content(100_000, 4);
    let mut network = Network::new(4);
    let disk = Disk { capacity: Some(50_000), ..Disk::default() };
    let config = ReceiverConfig { on_full: FullDisk::Fail, ..to_directory() };
    network.add_receiver(config, disk, lossy(10));
    network.add_sender("a", slow_sender(), source(&file));
    network.run_until(LONG, |network| !network.receivers[0].failures.is_empty());
    let text = &network.receivers[0].failures[0];
    assert!(text.starts_with("file.bin: ") && text.contains("the disk is full"), "{text}");
    assert_eq!(text.matches("file.bin").count(), 1, "{text}");
    network.run_until(LONG, |network| network.receivers[0].done);
    assert_eq!(network.receivers[0].disk.open_files(), 0);
}

#[test]
fn a_file_that_is_too_large_here_is_refused_by_its_name() {
    let mut network = Network::new(4);
    let limits = Limits { object_bytes: 99_999, ..Limits::default() };
    let config = ReceiverConfig { limits, ..to_directory() };
    network.add_receiver(config, Disk::default(), lossy(10));
    network.add_sender("a", slow_sender(), source(&content(100_000, 4)));
    network.run_until(LONG, |network| !network.receivers[0].failures.is_empty());
    let text = &network.receivers[0].failures[0];
    assert_eq!(text, "file.bin: 100000 bytes are more than the 99999 accepted here");
}

#[test]
fn wrong_content_is_noticed_and_received_again() {
    let file = content(20_000, 5);
    let mut network = Network::new(5);
    network.add_receiver(to_directory(), Disk::default(), lossy(0));
    network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
    network.run_until(LONG, |network| network.senders[0].sender.object().is_some());
    network.run_for(Duration::from_micros(500));
    // Somebody forges a symbol of the last block with the sender's key.
    let wrong = hostile::symbol(network.senders[0].sender.object().unwrap(), 19_200, 800, 0, 64);
    let key = network.senders[0].key;
    network.deliver(0, &wrong, key);
    network.run_until_received(1, LONG);
    network.run_for(Duration::from_millis(1));
    assert_only_file(&network, 0, "/dst/file.bin", &file);
    let lines = &network.receivers[0].lines;
    assert!(lines.iter().any(|line| line.contains("announced SHA-256")), "{lines:?}");
}

#[test]
fn a_symbol_of_a_wrong_size_after_a_new_start_wedges_nothing() {
    let file = content(20_000, 5);
    let mut network = Network::new(5);
    network.add_receiver(to_directory(), Disk::default(), lossy(0));
    network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
    network.run_until(LONG, |network| network.senders[0].sender.object().is_some());
    network.run_for(Duration::from_micros(500));
    let (object, key) = (network.senders[0].sender.object().unwrap(), network.senders[0].key);
    network.deliver(0, &hostile::symbol(object, 19_200, 800, 0, 64), key);
    network.run_until(LONG, |network| {
        network.receivers[0].lines.iter().any(|line| line.contains("received again"))
    });
    // The first symbol after the new start is forged, and not of the announced size.
    let packet = hostile::symbol(object, 0, 3200, 0, 100);
    network.tell_receiver(0, ReceiverInput::Datagram { packet, from: key });
    network.run_until_received(1, LONG);
    network.run_for(Duration::from_millis(1));
    assert_only_file(&network, 0, "/dst/file.bin", &file);
}

#[test]
fn an_object_that_never_verifies_is_given_up() {
    let file = content(2_000, 6);
    let mut network = Network::new(6);
    network.add_receiver(to_directory(), Disk::default(), lossy(0));
    network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
    network.run_until(LONG, |network| network.senders[0].sender.object().is_some());
    let (object, key) = (network.senders[0].sender.object().unwrap(), network.senders[0].key);
    while network.receivers[0].failures.is_empty() {
        let wrong = hostile::symbol(object, 0, 2_000, 3, 64);
        network.deliver(0, &wrong, key);
        network.run_for(Duration::from_micros(200));
    }
    network.run_for(Duration::from_millis(10));
    assert!(network.receivers[0].disk.files.is_empty());
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_noticed() {
    let mut network = Network::new(7);
    network.add_sender("a", small_sender(Limit::UntilStopped), source(&content(50_000, 7)));
    network.run_until(LONG, |network| network.senders[0].sender.object().is_some());
    let path = Path::new("/src/file.bin");
    network.senders[0].disk.files.insert(path.into(), Sparse::new(&content(50_000, 8)));
    network.run_until(LONG, |network| network.senders[0].done.is_some());
    let text = network.senders[0].done.clone().unwrap().unwrap_err();
    assert!(text.contains("changed while"), "{text}");
    network.run_for(Duration::from_millis(1));
    assert_eq!(network.senders[0].disk.open_files(), 0);
}

#[test]
fn a_missing_file_is_a_clear_error() {
    let mut network = Network::new(8);
    network.add_sender("a", small_sender(Limit::UntilStopped), Disk::default());
    network.run_until(LONG, |network| network.senders[0].done.is_some());
    let text = network.senders[0].done.clone().unwrap().unwrap_err();
    assert!(text.contains("/src/file.bin"), "{text}");
}

#[test]
fn a_sender_can_be_stopped_at_any_time() {
    for millis in [0, 1, 10, 100, 1000] {
        let mut network = Network::new(9);
        network.add_sender("a", small_sender(Limit::UntilStopped), source(&content(50_000, 9)));
        network.run_for(Duration::from_millis(millis));
        network.tell_sender(0, HostInput::Stop.into());
        assert!(network.senders[0].done.is_some());
        network.run_for(Duration::from_millis(1));
        assert_eq!(network.senders[0].disk.open_files(), 0);
    }
}

#[test]
fn a_congested_sender_is_silent_until_it_is_drained() {
    let mut network = Network::new(10);
    network.add_sender("a", small_sender(Limit::UntilStopped), source(&content(50_000, 10)));
    network.run_for(Duration::from_millis(20));
    network.tell_sender(0, SenderInput::Congested);
    assert!(network.record_sending(Duration::from_secs(1)).is_empty());
    network.tell_sender(0, SenderInput::Drained);
    assert!(network.record_sending(Duration::from_secs(1)).len() > 1000);
}

#[test]
fn a_silent_object_is_put_aside_and_taken_up_again() {
    let file = content(50_000, 11);
    let mut network = Network::new(11);
    let config = ReceiverConfig { idle: Duration::from_secs(30), ..to_directory() };
    network.add_receiver(config, Disk::default(), lossy(30));
    network.add_sender("a", small_sender(Limit::Rounds(0)), source(&file));
    network.run_for(Duration::from_secs(60));
    assert_eq!(network.receivers[0].disk.open_files(), 0);
    assert_eq!(network.receivers[0].receiver.as_ref().unwrap().memory(), 0);
    network.add_sender("a", small_sender(Limit::UntilStopped), source(&file));
    network.run_until_received(1, LONG);
    network.run_for(Duration::from_millis(1));
    assert!(network.receivers[0].reports[0].symbols_resumed > 300);
    assert_only_file(&network, 0, "/dst/file.bin", &file);
}

/// A sender that takes its time, for tests over many virtual seconds.
fn slow_sender() -> SenderConfig {
    SenderConfig { rate: Some(1_000_000), ..small_sender(Limit::UntilStopped) }
}

/// The file, whatever else may be there.
fn assert_file(network: &Network, path: &str, content: &[u8]) {
    let file = network.receivers[0].disk.files.get(Path::new(path));
    assert!(file.is_some_and(|file| file.bytes() == content), "{path} differs");
}
