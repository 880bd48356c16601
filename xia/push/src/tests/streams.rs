//! Live streams.

use std::time::Duration;

use weft_base::{FileId, Instant};
use weft_runtime::{Component, DiskReply, DiskRequest};

use super::*;
use crate::host::{HostInput, HostOutput};
use crate::object::{Extent, ObjectId, ObjectKind, SenderKey};
use crate::receiver::{DropReason, Limits, Receiver, ReceiverInput, ReceiverOutput};
use crate::wire::Symbol;

const LONG: Duration = Duration::from_secs(600);

fn to_stdout() -> ReceiverConfig {
    ReceiverConfig::new(Destination::Stdout)
}

#[test]
fn a_stream_arrives_in_order_on_standard_output() {
    for seed in 0..20 {
        let mut network = Network::new(seed);
        let bytes = content(1 + network.random.below(100_000) as usize, seed);
        let link = Link { loss: 15, duplicates: 10, jitter: Duration::from_millis(20) };
        network.add_receiver(to_stdout(), Disk::default(), link);
        network.add_sender("a", stream_sender(), stdin(&[&bytes], false));
        network.run_until(LONG, |network| network.receivers[0].done);
        let host = &network.receivers[0];
        assert_eq!(host.failures, [""; 0], "seed {seed}");
        assert!(host.disk.stdout == bytes, "seed {seed}");
        assert_eq!(host.reports[0].bytes, bytes.len() as u64);
    }
}

#[test]
fn a_stream_becomes_a_file_in_a_directory() {
    let bytes = content(70_000, 1);
    let mut network = Network::new(1);
    network.add_receiver(to_directory(), Disk::default(), lossy(15));
    network.add_sender("a", stream_sender(), stdin(&[&bytes], false));
    network.run_until_received(1, LONG);
    network.run_for(Duration::from_millis(1));
    assert_only_file(&network, 0, "/dst/stream", &bytes);
}

#[test]
fn an_empty_stream_has_an_end() {
    let mut network = Network::new(2);
    network.add_receiver(to_stdout(), Disk::default(), lossy(30));
    network.add_sender("a", stream_sender(), stdin(&[], false));
    network.run_until(LONG, |network| network.receivers[0].done);
    assert_eq!(network.receivers[0].reports[0].bytes, 0);
    network.run_until(LONG, |network| network.senders[0].done.is_some());
}

#[test]
fn what_trickles_in_is_sent_without_waiting_for_a_full_block() {
    let mut network = Network::new(3);
    network.add_receiver(to_stdout(), Disk::default(), lossy(10));
    network.add_sender("a", stream_sender(), stdin(&[], true));
    let mut expected = Vec::new();
    for line in 0..20 {
        let line = format!("line {line}\n").into_bytes();
        expected.extend_from_slice(&line);
        network.write_stdin(0, &line);
        network.run_for(Duration::from_millis(400));
        assert!(network.receivers[0].disk.stdout == expected);
    }
    // Silence between the lines is no reason to give up.
    network.run_for(Duration::from_secs(100));
    network.write_stdin(0, b"the end");
    network.tell_sender(0, HostInput::Stop.into());
    network.run_until(LONG, |network| network.senders[0].done.is_some());
    let host = &network.receivers[0];
    assert!(host.done && host.disk.stdout.starts_with(&expected), "{:?}", host.failures);
}

#[test]
fn a_stream_that_lost_too_much_is_an_error_not_a_hole() {
    let bytes = content(100_000, 4);
    for config in [to_stdout(), to_directory()] {
        let mut network = Network::new(4);
        network.add_receiver(config, Disk::default(), lossy(60));
        network.add_sender("a", stream_sender(), stdin(&[&bytes], false));
        network.run_until(LONG, |network| !network.receivers[0].failures.is_empty());
        network.run_for(Duration::from_secs(1));
        let host = &network.receivers[0];
        assert!(host.failures[0].contains("redundancy") || host.failures[0].contains("missed"));
        assert!(bytes.starts_with(&host.disk.stdout) && host.disk.stdout.len() < bytes.len());
        assert!(host.disk.files.is_empty(), "{:?}", host.disk.files.keys());
    }
}

#[test]
fn who_misses_the_start_of_a_stream_is_told_so() {
    let bytes = content(400_000, 5);
    let mut network = Network::new(5);
    network.add_sender("a", stream_sender(), stdin(&[&bytes], false));
    network.run_for(Duration::from_millis(100));
    network.add_receiver(to_stdout(), Disk::default(), lossy(0));
    network.run_until(LONG, |network| network.receivers[0].done);
    let host = &network.receivers[0];
    assert!(host.failures[0].contains("start of the stream was missed"), "{:?}", host.failures);
    assert!(host.disk.stdout.is_empty());
}

#[test]
fn only_one_stream_and_no_file_goes_to_standard_output() {
    let streams = [content(50_000, 6), content(50_000, 7)];
    let mut network = Network::new(6);
    network.add_receiver(to_stdout(), Disk::default(), lossy(0));
    network.add_sender("f", small_sender(Limit::UntilStopped), source(&streams[0]));
    for (key, bytes) in ["a", "b"].iter().zip(&streams) {
        network.add_sender(key, stream_sender(), stdin(&[bytes], false));
    }
    network.run_until(LONG, |network| network.receivers[0].done);
    let host = &network.receivers[0];
    assert!(streams.contains(&host.disk.stdout));
    assert!(host.receiver.as_ref().unwrap().drops().get(DropReason::NotWanted) > 100);
    assert_eq!(host.lines.iter().filter(|line| line.contains("directory")).count(), 1);
}

#[test]
fn the_window_before_standard_output_is_bounded() {
    let bytes = content(400_000, 8);
    let mut network = Network::new(8);
    let limits = Limits { window_bytes: 20_000, ..Limits::default() };
    network.add_receiver(ReceiverConfig { limits, ..to_stdout() }, Disk::default(), lossy(60));
    network.add_sender("a", stream_sender(), stdin(&[&bytes], false));
    network.run_until(LONG, |network| network.receivers[0].done);
    let host = &network.receivers[0];
    assert!(host.receiver.as_ref().unwrap().drops().get(DropReason::Window) > 0);
    assert!(host.peak <= 20_000 + 3 * 64 * 50 * 3, "{} bytes", host.peak);
}

#[test]
fn a_reader_that_stands_still_is_waited_for_without_a_deadline_in_the_past() {
    let config = to_stdout();
    let idle = config.idle;
    let mut receiver = Receiver::new(config);
    let mut now = Instant::ZERO;
    let mut out = Vec::new();
    receiver.handle(now, ReceiverInput::Start, &mut out);
    let Some(ReceiverOutput::Host(HostOutput::Disk { token, .. })) = out.pop() else {
        panic!("standard output is opened first");
    };
    let result = Ok(DiskReply::Opened { file: FileId(1), len: None });
    receiver.handle(now, HostInput::Disk { token, result }.into(), &mut out);
    let block = Extent { offset: 0, len: 64 };
    let (object, kind, payload) = (ObjectId([1; 16]), ObjectKind::Stream, &[0; 64]);
    let packet = Symbol { object, kind, block, esi: 0, payload }.emit(64);
    let from = SenderKey::new(b"a");
    receiver.handle(now, ReceiverInput::Datagram { packet, from }, &mut out);
    let is_write = |output: &ReceiverOutput| match output {
        ReceiverOutput::Host(HostOutput::Disk { request, .. }) => {
            matches!(request, DiskRequest::Write { .. })
        }
        _ => false,
    };
    assert!(out.iter().any(is_write), "{out:?}");
    // Nobody takes it: the write is never answered. Each tick moves the deadline on.
    for _ in 0..5 {
        now = receiver.deadline().expect("silence is not waited out for ever");
        receiver.handle(now, HostInput::Tick.into(), &mut out);
        assert!(receiver.deadline().is_some_and(|due| due > now), "due at {now:?} again");
    }
    assert!(now >= Instant::ZERO + idle);
    assert!(!out.iter().any(|output| matches!(output, ReceiverOutput::Failed { .. })), "{out:?}");
}

#[test]
fn a_stopped_stream_ends_within_the_time_that_is_said() {
    for rate in [20_000, 200_000, 10_000_000] {
        let config = SenderConfig { rate: Some(rate), ..stream_sender() };
        let most = config.stop_time();
        let bytes = content(200_000, 9);
        let mut network = Network::new(9);
        network.add_sender("a", config, stdin(&[&bytes], true));
        // All that a sender holds back is full.
        network.run_for(Duration::from_millis(500));
        let stopped = network.now;
        network.tell_sender(0, HostInput::Stop.into());
        network.run_until(LONG, |network| network.senders[0].done.is_some());
        let took = network.now.since(stopped);
        assert!(took <= most, "{took:?} at {rate} bit/s, {most:?} were said");
        assert!(most < 2 * took + Duration::from_secs(1), "{took:?}, and not {most:?}");
    }
}
