//! What came out: as a table for people, as JSON for programs.

use serde_json::{Value, json};

use super::measure::Figure;
use super::samples::Samples;

/// The result of a benchmark.
pub(crate) struct Report {
    /// The benchmark's name.
    pub(crate) bench: &'static str,
    /// What it ran on.
    pub(crate) machine: String,
    /// What was measured.
    pub(crate) rows: Vec<Row>,
    /// What was hoped for.
    pub(crate) goals: Vec<Goal>,
    /// What else was seen.
    pub(crate) details: Vec<Detail>,
}

/// Something that no single figure says.
pub(crate) struct Detail {
    /// What it is, and of which case.
    pub(crate) title: String,
    /// For people.
    pub(crate) lines: Vec<String>,
    /// For programs.
    pub(crate) json: Value,
}

/// One figure, of weft and of its peer.
pub(crate) struct Row {
    /// What and in which unit.
    pub(crate) figure: Figure,
    /// What weft is compared with.
    pub(crate) peer_name: String,
    /// Weft's values, one per run.
    pub(crate) weft: Samples,
    /// The peer's values.
    pub(crate) peer: Samples,
}

impl Row {
    /// Weft's median over the peer's.
    pub(crate) fn ratio(&self) -> f64 {
        self.weft.median() / self.peer.median()
    }

    fn json(&self) -> Value {
        json!({
            "case": self.figure.case,
            "weft": rounded(self.weft.median()),
            "peer": rounded(self.peer.median()),
            "peer_name": self.peer_name,
            "unit": self.figure.unit,
            "ratio": rounded(self.ratio()),
            "runs": self.weft.len(),
            "spread": rounded(self.weft.spread()),
        })
    }

    fn cells(&self) -> [String; 8] {
        [
            self.figure.case.clone(),
            text(self.weft.median()),
            text(self.peer.median()),
            self.figure.unit.to_owned(),
            text(self.ratio()),
            format!("{:.0} %", self.weft.spread() * 100.0),
            self.weft.len().to_string(),
            self.peer_name.clone(),
        ]
    }
}

/// On which side of its goal a value has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
}

/// Something to be reached.
pub(crate) struct Goal {
    /// What, with its unit.
    pub(crate) name: String,
    /// How much.
    pub(crate) bound: Bound,
    /// What came out.
    pub(crate) measured: f64,
}

impl Goal {
    fn is_met(&self) -> bool {
        match self.bound {
            Bound::AtMost(most) => self.measured <= most,
            Bound::AtLeast(least) => self.measured >= least,
        }
    }

    fn json(&self) -> Value {
        let (Bound::AtMost(goal) | Bound::AtLeast(goal)) = self.bound;
        json!({
            "name": self.name,
            "goal": rounded(goal),
            "measured": rounded(self.measured),
            "met": self.is_met(),
        })
    }

    fn line(&self) -> String {
        let bound = match self.bound {
            Bound::AtMost(most) => format!("at most {}", text(most)),
            Bound::AtLeast(least) => format!("at least {}", text(least)),
        };
        let outcome = if self.is_met() { "met" } else { "MISSED" };
        format!("goal {outcome}: {}: {bound}, measured {}", self.name, text(self.measured))
    }
}

impl Detail {
    fn json(&self) -> Value {
        json!({ "title": self.title, "detail": self.json })
    }
}

impl Report {
    /// The JSON that `--json` writes; its form is a stable interface.
    pub(crate) fn json(&self) -> Value {
        let mut json = json!({
            "bench": self.bench,
            "machine": self.machine,
            "rows": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
            "goals": self.goals.iter().map(Goal::json).collect::<Vec<_>>(),
        });
        if !self.details.is_empty() {
            json["details"] = self.details.iter().map(Detail::json).collect();
        }
        json
    }

    /// The lines for people.
    pub(crate) fn table(&self) -> Vec<String> {
        let heads = ["case", "weft", "peer", "unit", "ratio", "spread", "runs", "the peer is"];
        let mut cells = vec![heads.map(str::to_owned)];
        cells.extend(self.rows.iter().map(Row::cells));
        let widths: [usize; 8] = std::array::from_fn(|column| {
            cells.iter().map(|line| line[column].chars().count()).max().unwrap_or(0)
        });
        let mut lines = vec![format!("{} on {}", self.bench, self.machine)];
        lines.extend(cells.iter().map(|line| aligned(line, &widths)));
        lines.push(
            "medians of all runs; spread: distance of the quartiles of weft's runs over their median"
                .to_owned(),
        );
        for detail in &self.details {
            lines.push(format!("\n{}", detail.title));
            lines.extend(detail.lines.iter().cloned());
        }
        lines.extend(self.goals.iter().map(Goal::line));
        lines
    }
}

/// One line of the table: words to the left, numbers to the right.
fn aligned(cells: &[String; 8], widths: &[usize; 8]) -> String {
    let column = |index: usize| {
        let (cell, width) = (&cells[index], widths[index]);
        match index {
            0 | 3 | 7 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        }
    };
    (0..cells.len()).map(column).collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

/// A number with as many digits as one can believe, if there is one.
fn text(value: f64) -> String {
    match value.abs() {
        size if size.is_nan() => "-".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Three decimals are more than any of the figures is good for.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
