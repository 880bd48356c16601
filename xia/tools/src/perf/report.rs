//! The words and the JSON of measurements.

use std::time::Duration;

use serde_json::{Value, json};
use weft_xip::Address;

use super::arrivals::{Summary, ratio};
use super::latency::Latencies;

/// The percentiles that are told: their names, and how many of a thousand.
const PERCENTILES: [(&str, u16); 4] = [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)];

/// How late a datagram may leave before people are told.
const LATE: Duration = Duration::from_millis(1);

/// All that a client found out.
pub(super) struct Findings<'a> {
    pub(super) to: &'a Address,
    /// Payload bytes of each datagram.
    pub(super) size: usize,
    /// Datagrams that were due; those of an unlimited pace are when they are sent.
    pub(super) due: u64,
    pub(super) sent: u64,
    /// From the first to the last that was sent.
    pub(super) span: Duration,
    /// How late the latest was sent.
    pub(super) behind: Duration,
    /// What the server said, if it did.
    pub(super) server: Option<Summary>,
    /// What came back, if that was wanted.
    pub(super) echoes: Option<(Summary, &'a Latencies)>,
}

/// What a client prints at its end.
pub(super) fn found(findings: &Findings<'_>, as_json: bool) -> Vec<String> {
    match as_json {
        true => vec![found_json(findings).to_string()],
        false => found_lines(findings),
    }
}

fn found_lines(findings: &Findings<'_>) -> Vec<String> {
    let Findings { size, sent, .. } = *findings;
    let sending = Summary {
        received: sent,
        bytes: sent.saturating_mul(size as u64),
        span_nanos: nanos(findings.span),
        ..Summary::default()
    };
    let mut lines = vec![format!("sent: {}", carried(&sending))];
    if findings.behind >= LATE {
        let line = format!("sent: the latest left {} ms after it was due", micros(findings.behind));
        lines.push(line);
    }
    if let Some(server) = &findings.server {
        lines.push(format!("arrived: {}", carried(server)));
        lines.push(format!("arrived: {}", quality(server, sent)));
    }
    if let Some((echoes, latencies)) = &findings.echoes {
        lines.push(format!("came back: {}", carried(echoes)));
        lines.push(format!("came back: {}", quality(echoes, sent)));
        if latencies.count() > 0 {
            lines.push(format!("round trip: {}", times(latencies)));
        }
    }
    lines
}

fn found_json(findings: &Findings<'_>) -> Value {
    let side = |summary: &Summary| summary_json(summary, Some(findings.sent));
    json!({
        "to": findings.to.to_string(),
        "size": findings.size,
        "due": findings.due,
        "sent": findings.sent,
        "seconds": findings.span.as_secs_f64(),
        "behind_ns": nanos(findings.behind),
        "arrived": findings.server.as_ref().map(side),
        "came_back": findings.echoes.as_ref().map(|(echoes, _)| side(echoes)),
        "round_trip_ns": findings.echoes.as_ref().map(|(_, latencies)| times_json(latencies)),
    })
}

/// What a server prints of a measurement.
pub(super) fn served(
    from: Option<&Address>,
    summary: &Summary,
    echoes: u64,
    as_json: bool,
) -> String {
    if as_json {
        let mut value = summary_json(summary, None);
        value["from"] = from.map(ToString::to_string).into();
        value["echoes"] = echoes.into();
        return value.to_string();
    }
    let from = from.map_or_else(|| "nobody".to_owned(), ToString::to_string);
    format!("from {from}: {}; {}; {echoes} sent back", carried(summary), order(summary))
}

/// How much, and how fast.
fn carried(summary: &Summary) -> String {
    let count = format!("{} datagrams, {} bytes", summary.received, summary.bytes);
    match summary.rates() {
        Some((datagrams, bits)) => {
            let seconds = Duration::from_nanos(summary.span_nanos).as_secs_f64();
            format!("{count} in {seconds:.3} s: {datagrams:.1} datagrams/s, {} payload", rate(bits))
        }
        None => count,
    }
}

fn quality(summary: &Summary, sent: u64) -> String {
    let lost = summary.lost(sent);
    format!("{lost} lost ({}), {}", percent(lost, sent), order(summary))
}

fn order(summary: &Summary) -> String {
    let Summary { received, duplicates, reordered, too_late, .. } = *summary;
    let late = match too_late {
        0 => String::new(),
        _ => format!(", {too_late} too late to tell from duplicates"),
    };
    format!(
        "{duplicates} duplicates, {reordered} reordered ({}){late}",
        percent(reordered, received)
    )
}

fn percent(part: u64, of: u64) -> String {
    format!("{:.3} %", ratio(part, of) * 100.0)
}

fn rate(bits: f64) -> String {
    let (divided, prefix) = match bits {
        1e9.. => (bits / 1e9, "G"),
        1e6.. => (bits / 1e6, "M"),
        1e3.. => (bits / 1e3, "k"),
        _ => (bits, ""),
    };
    format!("{divided:.3} {prefix}bit/s")
}

fn times(latencies: &Latencies) -> String {
    let mut text = format!("min {}", micros(latencies.least()));
    for (name, of_thousand) in PERCENTILES {
        text += &format!(", {name} {}", micros(latencies.per_mille(of_thousand)));
    }
    let (most, mean) = (micros(latencies.most()), micros(latencies.mean()));
    text + &format!(", max {most}, mean {mean} ms")
}

fn times_json(latencies: &Latencies) -> Value {
    let mut value = json!({
        "samples": latencies.count(),
        "min": nanos(latencies.least()),
        "max": nanos(latencies.most()),
        "mean": nanos(latencies.mean()),
    });
    for (name, of_thousand) in PERCENTILES {
        value[name] = nanos(latencies.per_mille(of_thousand)).into();
    }
    value
}

fn summary_json(summary: &Summary, sent: Option<u64>) -> Value {
    let rates = summary.rates();
    let mut value = json!({
        "received": summary.received,
        "bytes": summary.bytes,
        "seconds": Duration::from_nanos(summary.span_nanos).as_secs_f64(),
        "datagrams_per_second": rates.map(|(datagrams, _)| datagrams),
        "bits_per_second": rates.map(|(_, bits)| bits),
        "duplicates": summary.duplicates,
        "reordered": summary.reordered,
        "reordered_ratio": summary.reordered_ratio(),
        "too_late": summary.too_late,
    });
    if let Some(sent) = sent {
        value["lost"] = summary.lost(sent).into();
        value["lost_ratio"] = ratio(summary.lost(sent), sent).into();
    }
    value
}

/// Milliseconds with three places.
fn micros(time: Duration) -> String {
    let micros = time.as_micros();
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        Summary {
            received: 90,
            duplicates: 2,
            reordered: 9,
            too_late: 0,
            bytes: 9000,
            span_nanos: 890_000_000,
        }
    }

    #[test]
    fn a_client_tells_people_what_was_lost_and_how_long_it_took() {
        let to = format!("xdp-{}-0", "ab".repeat(20)).parse().unwrap();
        let mut latencies = Latencies::default();
        latencies.note(Duration::from_micros(1500));
        let findings = Findings {
            to: &to,
            size: 100,
            due: 100,
            sent: 100,
            span: Duration::from_millis(990),
            behind: Duration::ZERO,
            server: Some(summary()),
            echoes: Some((summary(), &latencies)),
        };
        let lines = found(&findings, false);
        assert_eq!(
            lines[0],
            "sent: 100 datagrams, 10000 bytes in 0.990 s: 100.0 datagrams/s, 80.000 kbit/s payload"
        );
        assert_eq!(lines[2], "arrived: 10 lost (10.000 %), 2 duplicates, 9 reordered (10.000 %)");
        assert_eq!(
            lines[5],
            "round trip: min 1.500, p50 1.500, p90 1.500, p99 1.500, p99.9 1.500, max 1.500, mean 1.500 ms"
        );
        let json: Value = serde_json::from_str(&found(&findings, true)[0]).unwrap();
        assert_eq!(json["arrived"]["lost"], 10);
        assert_eq!(json["arrived"]["reordered_ratio"], 0.1);
        assert_eq!(json["round_trip_ns"]["p99.9"], 1_500_000);
        let none = Findings { server: None, echoes: None, behind: LATE, ..findings };
        let lines = found(&none, false);
        assert_eq!(lines[1..], ["sent: the latest left 1.000 ms after it was due"]);
        let json: Value = serde_json::from_str(&found(&none, true)[0]).unwrap();
        assert!(json["arrived"].is_null() && json["round_trip_ns"].is_null());
    }

    #[test]
    fn a_server_tells_who_sent_what() {
        let line = served(None, &summary(), 4, false);
        assert!(line.starts_with("from nobody: 90 datagrams, 9000 bytes in 0.890 s"), "{line}");
        assert!(line.ends_with("9 reordered (10.000 %); 4 sent back"), "{line}");
        let json: Value = serde_json::from_str(&served(None, &summary(), 4, true)).unwrap();
        assert_eq!((&json["received"], &json["echoes"]), (&90.into(), &4.into()));
        assert!(json["lost"].is_null(), "a server does not know what was sent");
    }
}
