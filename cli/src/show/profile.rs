//! `weft show profile`: what the profile points of all components have recorded.

use serde_json::{Value, json};
use weft_xrl::IpNet;

use super::table::{Align, lines};
use super::{Asker, ProfileArgs, Shown};
use crate::profile::{Gathered, Passed, gather, rows};

/// The columns of the table.
pub(crate) const COLUMNS: [(&str, Align); 8] = [
    ("change", Align::Left),
    ("point", Align::Left),
    ("what happens there", Align::Left),
    ("routes", Align::Right),
    ("avg ms", Align::Right),
    ("sd", Align::Right),
    ("min", Align::Right),
    ("max", Align::Right),
];

pub(super) fn show(asker: &Asker, args: &ProfileArgs) -> Result<Shown, String> {
    let mut gathered = gather(asker)?;
    if let Some(prefix) = &args.prefix {
        let net: IpNet = prefix.parse().map_err(|_| {
            format!("`{}` is no prefix, such as 192.0.2.0/24", prefix.escape_debug())
        })?;
        gathered.marks.retain(|mark| mark.net == net);
    }
    Ok(if args.marks { marks(&gathered) } else { table(&gathered) })
}

fn table(gathered: &Gathered) -> Shown {
    let rows = rows(gathered);
    let json: Vec<_> = rows.iter().map(|row| row.json(&gathered.places[row.place])).collect();
    let on: Vec<_> =
        gathered.places.iter().filter(|one| one.enabled).map(|one| one.name()).collect();
    let cells: Vec<_> = rows.iter().map(|row| row.cells(&gathered.places[row.place])).collect();
    let mut lines = if cells.is_empty() { Vec::new() } else { lines(&COLUMNS, &cells) };
    if cells.is_empty() {
        lines.push("nothing was recorded".to_owned());
    }
    if on.is_empty() {
        lines.push("all points are off: `weft profile on` switches them on".to_owned());
    }
    if gathered.lost > 0 {
        let lost = gathered.lost;
        lines.push(format!("{lost} marks were forgotten: `weft profile on --at-most` keeps more"));
    }
    Shown { json: json!({ "on": on, "lost": gathered.lost, "points": json }), lines }
}

/// Each mark, as the paper's profiler writes it.
fn marks(gathered: &Gathered) -> Shown {
    let json = |mark: &Passed| -> Value {
        let place = &gathered.places[mark.place];
        json!({
            "component": place.component, "point": place.point, "time": mark.time,
            "prefix": mark.net.to_string(), "gone": mark.gone,
        })
    };
    let line = |mark: &Passed| {
        let (seconds, nanos) = (mark.time / 1_000_000_000, mark.time % 1_000_000_000);
        let change = if mark.gone { "delete" } else { "add" };
        let name = gathered.places[mark.place].name();
        format!("{name} {seconds}.{nanos:09} {change} {}", mark.net)
    };
    let all: Vec<_> = gathered.marks.iter().map(json).collect();
    let json = json!({ "lost": gathered.lost, "marks": all });
    Shown { json, lines: gathered.marks.iter().map(line).collect() }
}
