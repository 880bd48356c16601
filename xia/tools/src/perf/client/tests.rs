use std::path::Path;

use super::*;
use crate::testing::Harness;

const SIZE: usize = 100;

fn options() -> PerfOptions {
    PerfOptions {
        to: format!("hid-{}-0", "01".repeat(20)).parse().unwrap(),
        pace: Pace::Datagrams(1000),
        count: Some(10),
        duration: None,
        size: SIZE,
        echo: true,
        hop_limit: 128,
        timeout: Duration::from_secs(1),
        json: true,
    }
}

fn client(options: PerfOptions) -> Harness<PerfClient> {
    Harness::attached(PerfClient::new(Path::new("x"), options, Random::from_seed(1)))
}

/// What the client has sent since it was asked last.
fn sent(harness: &mut Harness<PerfClient>) -> Vec<Datagram> {
    let sent = harness.datagrams();
    sent.iter().map(|(_, bytes)| Datagram::parse(bytes).unwrap()).collect()
}

/// Answers the last of these, a question.
fn report(harness: &mut Harness<PerfClient>, asked: &[Datagram], received: u64) {
    let question = asked.last().unwrap();
    assert_eq!(question.kind, Kind::Question);
    let bytes = received * SIZE as u64;
    let summary = Summary { received, bytes, span_nanos: 1_000_000, ..Summary::default() };
    let report = Datagram { kind: Kind::Report(summary), ..*question };
    harness.deliver(report.emit(0).bytes());
}

fn echo(harness: &mut Harness<PerfClient>, probe: &Datagram) {
    harness.deliver(Datagram { kind: Kind::Echo, ..*probe }.emit(SIZE).bytes());
}

/// Answers the greeting.
fn greeted(options: PerfOptions) -> Harness<PerfClient> {
    let mut harness = client(options);
    let asked = sent(&mut harness);
    report(&mut harness, &asked, 0);
    harness
}

fn found(harness: &Harness<PerfClient>) -> serde_json::Value {
    serde_json::from_str(harness.printed().last().unwrap()).unwrap()
}

#[test]
fn a_server_is_asked_until_it_answers_and_then_sent_to_at_the_rate() {
    let mut harness = client(options());
    let (to, _) = &harness.datagrams()[0];
    assert_eq!(to.final_xid(), PERF_SINK);
    harness.advance(Duration::from_millis(450));
    let asked = sent(&mut harness);
    assert_eq!(asked.len(), 2, "every 200 ms");
    report(&mut harness, &asked, 0);
    assert_eq!(sent(&mut harness).len(), 1);
    harness.advance(Duration::from_millis(4));
    let probes = sent(&mut harness);
    let numbers: Vec<_> = probes.iter().map(|probe| probe.sequence).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert!(probes.iter().all(|probe| probe.kind == Kind::Probe { echo: true }));
}

#[test]
fn where_nobody_measures_it_is_said() {
    let mut harness = client(options());
    harness.advance(PATIENCE);
    assert_eq!(harness.exit_status(), Some(1));
    assert!(harness.reported()[0].contains("weft xia perf server"), "{:?}", harness.reported());
}

#[test]
fn it_ends_at_once_when_nothing_is_missing() {
    let mut harness = greeted(options());
    let mut all = Vec::new();
    for _ in 0..10 {
        for datagram in sent(&mut harness) {
            // Each comes back after a millisecond.
            harness.advance(Duration::from_millis(1));
            match datagram.kind {
                Kind::Question => report(&mut harness, &[datagram], 10),
                _ => echo(&mut harness, &datagram),
            }
            all.push(datagram.kind);
        }
    }
    assert_eq!(all.iter().filter(|kind| **kind != Kind::Question).count(), 10);
    assert_eq!(harness.exit_status(), Some(0));
    let found = found(&harness);
    assert_eq!((&found["sent"], &found["arrived"]["lost"]), (&10.into(), &0.into()));
    assert_eq!(found["came_back"]["received"], 10);
    assert!(found["round_trip_ns"]["min"].as_u64().unwrap() >= 1_000_000, "{found}");
}

#[test]
fn what_is_missing_is_waited_for_and_then_lost() {
    let mut harness = greeted(PerfOptions { echo: false, ..options() });
    harness.advance(Duration::from_millis(9));
    let asked = sent(&mut harness);
    assert_eq!(asked.len(), 11, "all probes, and then a question");
    report(&mut harness, &asked, 7);
    assert_eq!(harness.exit_status(), None);
    harness.advance(Duration::from_millis(999));
    let asked = sent(&mut harness);
    assert_eq!(asked.len(), 4);
    report(&mut harness, &asked, 8);
    harness.advance(Duration::from_millis(1));
    assert_eq!(harness.exit_status(), Some(0));
    let found = found(&harness);
    assert_eq!((&found["arrived"]["received"], &found["arrived"]["lost"]), (&8.into(), &2.into()));
    assert!(found["came_back"].is_null());
}

#[test]
fn a_server_that_falls_silent_is_given_up_and_that_is_said() {
    let mut harness = greeted(PerfOptions { echo: false, ..options() });
    harness.advance(Duration::from_secs(7));
    assert_eq!(harness.exit_status(), Some(1));
    assert!(harness.reported()[0].contains("does not answer any more"));
    assert!(found(&harness)["arrived"].is_null());
}

/// A node that takes nothing for 5 ms: what was due then leaves late, and its latency says so.
#[test]
fn latencies_begin_when_a_datagram_should_have_left() {
    let mut harness = greeted(options());
    let first = sent(&mut harness);
    echo(&mut harness, &first[0]);
    harness.give(Event::Congested { channel: Harness::<PerfClient>::CHANNEL });
    harness.advance(Duration::from_millis(5));
    assert_eq!(sent(&mut harness), []);
    harness.give(Event::Drained { channel: Harness::<PerfClient>::CHANNEL });
    let late = sent(&mut harness);
    assert_eq!(late.len(), 5, "numbers 1 to 5 were due after 1 to 5 ms");
    // All come back at once, so their round trips took no time but that of waiting.
    late.iter().for_each(|probe| echo(&mut harness, probe));
    harness.give(Event::Stop);
    let asked = sent(&mut harness);
    report(&mut harness, &asked, 6);
    let found = found(&harness);
    assert_eq!(found["behind_ns"], 4_000_000);
    assert_eq!(found["round_trip_ns"]["max"], 4_000_000);
    assert_eq!(found["round_trip_ns"]["mean"], (4 + 3 + 2 + 1) * 1_000_000 / 6);
    assert!(harness.reported()[0].starts_with("4 of 10 datagrams were not sent"));
}

#[test]
fn an_unlimited_pace_sends_in_slices_while_the_node_takes_it() {
    let duration = Some(Duration::from_millis(10));
    let mut harness = greeted(PerfOptions {
        pace: Pace::Unlimited,
        count: None,
        duration,
        echo: false,
        ..options()
    });
    let before = sent(&mut harness).len();
    harness.give(Event::Slice);
    assert_eq!(sent(&mut harness).len() as u64, BATCH);
    harness.give(Event::Congested { channel: Harness::<PerfClient>::CHANNEL });
    harness.give(Event::Slice);
    assert_eq!(sent(&mut harness), []);
    harness.advance(Duration::from_millis(10));
    let asked = sent(&mut harness);
    assert_eq!(asked.len(), 1);
    report(&mut harness, &asked, BATCH + before as u64);
    assert_eq!(harness.exit_status(), Some(0));
    assert_eq!(found(&harness)["sent"], BATCH + before as u64);
}

#[test]
fn strangers_and_copies_change_nothing() {
    let mut harness = greeted(options());
    let probes = sent(&mut harness);
    let other = Datagram { session: probes[0].session ^ 1, ..probes[0] };
    echo(&mut harness, &other);
    echo(&mut harness, &Datagram { sequence: 99, ..probes[0] });
    harness.deliver(b"nonsense");
    echo(&mut harness, &probes[0]);
    echo(&mut harness, &probes[0]);
    harness.give(Event::Stop);
    let asked = sent(&mut harness);
    report(&mut harness, &asked, 0);
    let found = found(&harness);
    assert_eq!(
        (&found["came_back"]["received"], &found["came_back"]["duplicates"]),
        (&1.into(), &1.into())
    );
    assert_eq!(found["round_trip_ns"]["samples"], 1);
    assert_eq!(harness.exit_status(), Some(1), "nothing arrived");
}

#[test]
fn a_node_that_goes_away_ends_it() {
    let mut harness = greeted(options());
    harness.restart_node();
    assert_eq!(harness.exit_status(), Some(1));
    assert!(harness.reported()[0].contains("went away"));
}
