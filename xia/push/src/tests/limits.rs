//! Limits of a receiver: what is refused is said, and what was given up does not stay for ever.

use std::time::Duration;

use super::disk::Sparse;
use super::*;
use crate::host::HostInput;
use crate::object::{ObjectId, SenderKey};
use crate::receiver::Limits;

const LONG: Duration = Duration::from_secs(600);

fn limited(limits: Limits) -> ReceiverConfig {
    ReceiverConfig { limits, ..to_directory() }
}

#[test]
fn a_limit_that_is_reached_is_said_once_and_counted_at_the_end() {
    let mut network = Network::new(1);
    let limits = Limits { objects: 5, objects_per_sender: 3, ..Limits::default() };
    network.add_receiver(limited(limits), Disk::default(), lossy(0));
    network.run_for(Duration::from_millis(1));
    for sender in [b"a", b"b"] {
        for id in 0..10 {
            let packet = hostile::symbol(ObjectId([id; 16]), 0, 1000, 0, 64);
            network.deliver(0, &packet, SenderKey::new(sender));
        }
    }
    network.run_for(Duration::from_millis(100));
    let said = |network: &Network, text: &str| {
        network.receivers[0].lines.iter().filter(|line| line.contains(text)).count()
    };
    assert_eq!(said(&network, "its sender has too many objects here"), 1);
    assert_eq!(said(&network, "too many objects are being received"), 1);
    network.tell_receiver(0, HostInput::Stop.into());
    network.run_until(LONG, |network| network.receivers[0].done);
    assert_eq!(
        said(&network, "objects 8, sender-objects 7"),
        1,
        "{:?}",
        network.receivers[0].lines
    );
}

#[test]
fn the_oldest_unfinished_objects_make_room_for_new_ones() {
    let mut network = Network::new(2);
    let mut disk = Disk::default();
    for object in 1..=5 {
        for extension in ["part", "repair", "state"] {
            let path = format!("/dst/.weft-push-{object}.{extension}");
            disk.files.insert(path.into(), Sparse::new(b"x"));
        }
    }
    let limits = Limits { unfinished: 3, ..Limits::default() };
    let config = ReceiverConfig { idle: Duration::from_secs(30), ..limited(limits) };
    network.add_receiver(config, disk, lossy(0));
    network.run_for(Duration::from_millis(1));
    let unfinished = |network: &Network| -> Vec<String> {
        let names = network.receivers[0].disk.files.keys().filter_map(|path| path.to_str());
        names.filter(|name| name.contains(".weft-push-")).map(str::to_owned).collect()
    };
    // Objects that begin and are put aside, one after the other.
    let files: Vec<Vec<u8>> = (0..4).map(|seed| content(50_000, seed)).collect();
    for (name, file) in ["a", "b", "c"].iter().zip(&files) {
        network.receivers[0].link = lossy(30);
        network.add_sender(name, small_sender(Limit::Rounds(0)), source(file));
        network.run_for(Duration::from_secs(60));
    }
    let left = unfinished(&network);
    assert_eq!(left.iter().filter(|name| name.ends_with(".part")).count(), 3, "{left:?}");
    assert!(!left.iter().any(|name| name.contains("push-1.") || name.contains("push-5.")));
    // A fourth one arrives at the expense of the first, and the second one goes on.
    network.add_sender("d", small_sender(Limit::UntilStopped), source(&files[3]));
    network.run_until_received(1, LONG);
    network.add_sender("b", small_sender(Limit::UntilStopped), source(&files[1]));
    network.run_until_received(2, LONG);
    network.add_sender("a", small_sender(Limit::UntilStopped), source(&files[0]));
    network.run_until_received(3, LONG);
    let reports = &network.receivers[0].reports;
    let resumed: Vec<bool> = reports.iter().map(|report| report.symbols_resumed > 0).collect();
    assert_eq!(resumed, [false, true, false]);
    let lines = &network.receivers[0].lines;
    let removed = lines.iter().filter(|line| line.contains("removed")).count();
    assert_eq!(removed, 6, "five of an earlier run, one of this one: {lines:?}");
}
