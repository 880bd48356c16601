//! Datagrams of measurements: what is read is written as the same value, and counting takes any numbers.
//!
//! Input: datagrams, each after its length in one octet.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_base::Instant;
use weft_xia_tools::perf::arrivals::Arrivals;
use weft_xia_tools::perf::wire::{Datagram, HEADER_LEN, Kind, REPORT_LEN};

fuzz_target!(|bytes: &[u8]| {
    let _ = Datagram::parse(bytes);
    let mut arrivals = Arrivals::default();
    let (mut rest, mut noted) = (bytes, 0);
    while let Some((len, tail)) = rest.split_first() {
        let (payload, tail) = tail.split_at(tail.len().min(usize::from(*len)));
        if let Some(datagram) = Datagram::parse(payload) {
            round_trip(&datagram, payload.len());
            noted += 1;
            arrivals.note(Instant::from_nanos(noted), datagram.sequence, payload.len());
        }
        rest = tail;
    }
    let summary = arrivals.summary();
    assert_eq!(summary.received + summary.duplicates + summary.too_late, noted);
    assert!(summary.reordered <= summary.received);
    assert!(summary.rates().is_none_or(|(datagrams, bits)| datagrams > 0.0 && bits > 0.0));
});

fn round_trip(datagram: &Datagram, len: usize) {
    let least = match datagram.kind {
        Kind::Report(_) | Kind::Question => REPORT_LEN,
        _ => HEADER_LEN,
    };
    assert!(len >= least);
    let again = datagram.emit(len);
    assert_eq!(Datagram::parse(again.bytes()).as_ref(), Some(datagram));
    assert_eq!(again.len(), len);
}
