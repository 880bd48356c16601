use proptest::prelude::*;

use super::*;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn rate(bits_per_second: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(bits_per_second)
}

fn link(config: LinkConfig) -> LinkModel {
    LinkModel::new(config, &Random::from_seed(1))
}

/// Offers a packet of `bytes` bytes and returns the delivery times.
fn offer(link: &mut LinkModel, now: u64, bytes: usize) -> Vec<u64> {
    let mut out = Vec::new();
    link.offer(at(now), Packet::from_slice(&vec![0; bytes]), &mut out);
    out.iter().map(|(at, _)| at.as_nanos()).collect()
}

#[test]
fn a_perfect_wire_delivers_at_once() {
    let mut link = link(LinkConfig::default());
    assert_eq!(offer(&mut link, 7, 1500), [7]);
    assert_eq!(offer(&mut link, 7, 1500), [7]);
}

#[test]
fn serialisation_takes_bits_over_rate_and_then_the_delay() {
    let delay = Duration::from_micros(50);
    let mut link = link(LinkConfig { rate: rate(1_000_000_000), delay, ..Default::default() });
    assert_eq!(offer(&mut link, 0, 1500), [12_000 + 50_000]);
    assert_eq!(offer(&mut link, 0, 1500), [24_000 + 50_000], "waits for the first");
    assert_eq!(offer(&mut link, 100_000, 1500), [112_000 + 50_000], "finds an idle link");
}

#[test]
fn overhead_counts_for_the_rate() {
    let config =
        LinkConfig { rate: rate(8_000_000_000), overhead: ETHERNET_OVERHEAD, ..Default::default() };
    assert_eq!(offer(&mut link(config), 0, 1514), [1538]);
}

#[test]
fn fractions_of_a_nanosecond_are_carried() {
    // 1 byte at 3 bit/s: 2,666,666,666.67 ns each, exactly 8 s for three.
    let mut link = link(LinkConfig { rate: rate(3), ..Default::default() });
    assert_eq!(offer(&mut link, 0, 1), [2_666_666_667]);
    assert_eq!(offer(&mut link, 0, 1), [5_333_333_334]);
    assert_eq!(offer(&mut link, 0, 1), [8_000_000_000]);
}

#[test]
fn the_tail_is_dropped_when_the_queue_has_no_room() {
    let config = LinkConfig { rate: rate(8_000), queue_packets: 2, ..Default::default() };
    let mut by_packets = link(config);
    assert_eq!(offer(&mut by_packets, 0, 1).len(), 1);
    assert_eq!(offer(&mut by_packets, 0, 1).len(), 1);
    assert_eq!(offer(&mut by_packets, 999_999, 1).len(), 0, "two are still there");
    assert_eq!(offer(&mut by_packets, 1_000_000, 1), [3_000_000], "one has left");
    assert_eq!(by_packets.counters().get(LinkCount::QueueFull), 1);

    let config = LinkConfig { rate: rate(8_000), queue_bytes: 100, ..Default::default() };
    let mut by_bytes = link(config);
    assert_eq!(offer(&mut by_bytes, 0, 60).len(), 1);
    assert_eq!(offer(&mut by_bytes, 0, 41).len(), 0);
    assert_eq!(offer(&mut by_bytes, 0, 40).len(), 1);
    assert_eq!(by_bytes.backlog(at(0)), (2, 100));
    assert_eq!(by_bytes.backlog(at(60_000_000)), (1, 40));
    assert_eq!(offer(&mut by_bytes, 1_000_000_000, 101).len(), 1, "an empty queue takes any");
}

#[test]
fn a_lost_packet_has_used_its_share_of_the_rate() {
    let mut link = link(LinkConfig { rate: rate(8_000), loss: BILLION, ..Default::default() });
    assert_eq!(offer(&mut link, 0, 10).len(), 0);
    link.set_config(LinkConfig { rate: rate(8_000), ..Default::default() });
    assert_eq!(offer(&mut link, 0, 10), [20_000_000]);
}

#[test]
fn a_duplicate_arrives_with_its_original() {
    let mut link = link(LinkConfig { duplicate: BILLION, ..Default::default() });
    let mut out = Vec::new();
    link.offer(at(5), Packet::from_slice(b"twin"), &mut out);
    let bytes: Vec<_> = out.iter().map(|(at, packet)| (at.as_nanos(), packet.bytes())).collect();
    assert_eq!(bytes, [(5, &b"twin"[..]), (5, &b"twin"[..])]);
}

#[test]
fn a_reordered_packet_skips_the_delay() {
    let delay = Duration::from_millis(10);
    let mut link = link(LinkConfig { rate: rate(8_000_000), delay, ..Default::default() });
    assert_eq!(offer(&mut link, 0, 1), [10_001_000]);
    link.set_config(LinkConfig { reorder: BILLION, ..link.config().clone() });
    assert_eq!(offer(&mut link, 0, 1), [2_000]);
    link.set_config(LinkConfig { reorder: 0, ..link.config().clone() });
    assert_eq!(offer(&mut link, 0, 1), [10_003_000], "the others keep their order");
}

#[test]
fn a_shorter_delay_does_not_overtake_what_is_on_the_wire() {
    let mut link = link(LinkConfig { delay: Duration::from_millis(10), ..Default::default() });
    assert_eq!(offer(&mut link, 0, 1), [10_000_000]);
    link.set_config(LinkConfig { delay: Duration::from_millis(1), ..Default::default() });
    assert_eq!(offer(&mut link, 0, 1), [10_000_000]);
    assert_eq!(offer(&mut link, 20_000_000, 1), [21_000_000]);
}

#[test]
fn changing_one_fault_leaves_the_draws_of_the_others_alone() {
    let mut lossless = link(LinkConfig { duplicate: BILLION / 2, ..Default::default() });
    let mut jittery = link(LinkConfig {
        duplicate: BILLION / 2,
        jitter: Duration::from_millis(1),
        ..Default::default()
    });
    for now in 0..1000 {
        assert_eq!(offer(&mut lossless, now, 1).len(), offer(&mut jittery, now, 1).len());
    }
}

/// Six standard deviations of a binomial distribution of `trials` at `per_billion`.
fn six_sigma(trials: u64, per_billion: u32) -> (u64, u64) {
    let p = f64::from(per_billion) / 1e9;
    let (mean, sigma) = (trials as f64 * p, (trials as f64 * p * (1.0 - p)).sqrt());
    ((mean - 6.0 * sigma) as u64, (mean + 6.0 * sigma) as u64)
}

#[test]
fn faults_occur_as_often_as_configured() {
    const TRIALS: u64 = 200_000;
    for seed in 0..3 {
        let config = LinkConfig {
            loss: 10_000_000,
            duplicate: 50_000_000,
            reorder: 250_000_000,
            ..Default::default()
        };
        let mut link = LinkModel::new(config, &Random::from_seed(seed));
        for now in 0..TRIALS {
            offer(&mut link, now, 1);
        }
        let within = |reason, trials, per_billion| {
            let (low, high) = six_sigma(trials, per_billion);
            let count = link.counters().get(reason);
            assert!((low..=high).contains(&count), "{reason}: {count} not in {low}..={high}");
        };
        within(LinkCount::Lost, TRIALS, 10_000_000);
        let survivors = TRIALS - link.counters().get(LinkCount::Lost);
        within(LinkCount::Duplicated, survivors, 50_000_000);
        within(LinkCount::Reordered, survivors, 250_000_000);
    }
}

#[test]
fn jitter_fills_its_range_and_keeps_the_order() {
    let jitter = Duration::from_nanos(1000);
    let mut link = link(LinkConfig { jitter, ..Default::default() });
    let mut last = 0;
    let (mut early, mut late) = (0, 0);
    for step in 0..10_000 {
        let now = step * 2_000; // Far enough apart for the order not to clamp.
        let got = offer(&mut link, now, 1)[0];
        assert!(got >= now && got <= now + 1000 && got >= last);
        early += u32::from(got - now < 100);
        late += u32::from(got - now > 900);
        last = got;
    }
    assert!(early > 800 && late > 800, "{early} early and {late} late of 10,000");
}

prop_compose! {
    fn configs()(
        rate in prop::option::of(1u64..10_000_000_000),
        overhead in 0u32..40,
        delay in 0u64..1_000_000,
        jitter in 0u64..1_000_000,
        loss in 0..BILLION,
        duplicate in 0..BILLION,
        reorder in 0..BILLION,
        queue_packets in 0usize..20,
        queue_bytes in 0usize..10_000,
    ) -> LinkConfig {
        LinkConfig {
            rate: rate.and_then(NonZeroU64::new),
            overhead,
            delay: Duration::from_nanos(delay),
            jitter: Duration::from_nanos(jitter),
            loss,
            duplicate,
            reorder,
            queue_packets,
            queue_bytes,
        }
    }
}

proptest! {
    #[test]
    fn no_packet_is_lost_or_made_without_a_count(
        config in configs(),
        seed: u64,
        offers in prop::collection::vec((0u64..100_000, 0usize..2000), 0..100),
    ) {
        let mut link = LinkModel::new(config, &Random::from_seed(seed));
        let (mut now, mut out) = (0, Vec::new());
        for &(pause, bytes) in &offers {
            now += pause;
            link.offer(at(now), Packet::from_slice(&vec![0; bytes]), &mut out);
        }
        let count = |reason| link.counters().get(reason) as usize;
        prop_assert_eq!(count(LinkCount::Offered), offers.len());
        prop_assert_eq!(count(LinkCount::Delivered), out.len());
        prop_assert_eq!(
            out.len() + count(LinkCount::QueueFull) + count(LinkCount::Lost),
            offers.len() + count(LinkCount::Duplicated)
        );
    }

    #[test]
    fn a_busy_link_carries_exactly_its_rate(
        bits_per_second in 1u64..100_000_000_000,
        sizes in prop::collection::vec(1usize..2000, 1..50),
    ) {
        let config = LinkConfig { rate: rate(bits_per_second), ..Default::default() };
        let mut link = link(config);
        let last = sizes.iter().map(|bytes| offer(&mut link, 0, *bytes)[0]).last();
        let bits = sizes.iter().sum::<usize>() as u128 * 8;
        let exact = (bits * NANOS_PER_SECOND).div_ceil(bits_per_second.into());
        prop_assert_eq!(last.map(u128::from), Some(exact));
    }

    #[test]
    fn order_is_kept_unless_reordered(
        config in configs(),
        seed: u64,
        pauses in prop::collection::vec(0u64..10_000, 0..100),
    ) {
        let config = LinkConfig { reorder: 0, ..config };
        let mut link = LinkModel::new(config, &Random::from_seed(seed));
        let (mut now, mut out) = (0, Vec::new());
        for pause in pauses {
            now += pause;
            link.offer(at(now), Packet::from_slice(&[0; 100]), &mut out);
        }
        prop_assert!(out.is_sorted_by_key(|(at, _)| *at));
    }
}
