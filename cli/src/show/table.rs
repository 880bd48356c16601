//! Columns for people.

/// Where the words of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

use Align::{Left, Right};

/// Lines with a title above each column; nothing follows the last word of a line.
pub(crate) fn lines(columns: &[(&str, Align)], rows: &[Vec<String>]) -> Vec<String> {
    let titles: Vec<String> = columns.iter().map(|(title, _)| title.to_uppercase()).collect();
    let all: Vec<&Vec<String>> = std::iter::once(&titles).chain(rows).collect();
    let width = |column: usize| {
        let widths = all.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        widths.max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |row: &&Vec<String>| {
        let cells = row.iter().zip(columns).zip(&widths);
        let padded = cells.map(|((cell, (_, align)), &width)| match align {
            Left => format!("{cell:<width$}"),
            Right => format!("{cell:>width$}"),
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all.iter().map(line).collect()
}

/// A time in seconds as people say it: `7s`, `3m12s`, `5h4m`, `12d3h`.
pub(crate) fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{}s", seconds % 60),
        (0, _, _) => format!("{hours}h{}m", minutes % 60),
        _ => format!("{days}d{}h", hours % 24),
    }
}

/// Bytes as people say them: `512B`, `4.2MiB`.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count}B");
    }
    // Exact enough for one digit behind the point.
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1}{}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_one_another() {
        let rows = [["xia", "7", ""], ["manager", "12345", "x"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(
            lines(&[("name", Left), ("pid", Right), ("why", Left)], &rows),
            ["NAME       PID  WHY", "xia          7", "manager  12345  x"]
        );
    }

    #[test]
    fn times_and_sizes_are_short() {
        let times = [0, 59, 60, 3_599, 3_600, 86_399, 86_400, 900_000].map(duration);
        assert_eq!(times, ["0s", "59s", "1m0s", "59m59s", "1h0m", "23h59m", "1d0h", "10d10h"]);
        let sizes = [0, 1023, 1024, 1536, 5 << 20, u64::MAX].map(bytes);
        assert_eq!(sizes, ["0B", "1023B", "1.0KiB", "1.5KiB", "5.0MiB", "16777216.0TiB"]);
    }
}
