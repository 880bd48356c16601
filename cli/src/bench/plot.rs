//! The drawing of a report: a box plot for each figure, weft above its peer.
//!
//! Form as in Machado et al., "Linux XIA", Figure 5: a box holds the middle half of all runs, the line
//! in it is the median, the whiskers reach to the least and the greatest value. The figures of one
//! panel share a scale, which begins at zero.

use std::fmt::Write;

use super::report::{Report, Row};
use super::samples::Samples;

const WIDTH: f64 = 900.0;
/// Where the scale begins: the names of the cases stand on the left.
const LEFT: f64 = 330.0;
/// Where the scale ends: the last number of the axis needs room on its right.
const RIGHT: f64 = WIDTH - 40.0;
const ROW_HEIGHT: f64 = 30.0;
const BOX_HEIGHT: f64 = 9.0;
/// Head and axis of a panel.
const PANEL_MARGIN: f64 = 64.0;
const HEAD_HEIGHT: f64 = 56.0;

const WEFT_COLOUR: &str = "#1f6fb4";
const PEER_COLOUR: &str = "#d98a2b";

/// The report as an SVG document.
pub(crate) fn draw(report: &Report) -> String {
    let panels = panels(&report.rows);
    let height: f64 = HEAD_HEIGHT + panels.iter().map(|panel| panel_height(panel)).sum::<f64>();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    text(&mut svg, 16.0, 22.0, "start", &format!("weft bench {}", report.bench));
    text(&mut svg, 16.0, 40.0, "start", &report.machine);
    legend(&mut svg);
    let mut top = HEAD_HEIGHT;
    for panel in &panels {
        draw_panel(&mut svg, panel, top);
        top += panel_height(panel);
    }
    svg.push_str("</svg>\n");
    svg
}

/// The rows of each panel, in the order in which the panels appear.
fn panels(rows: &[Row]) -> Vec<Vec<&Row>> {
    let mut panels: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        match panels.iter_mut().find(|panel| panel[0].figure.panel == row.figure.panel) {
            Some(panel) => panel.push(row),
            None => panels.push(vec![row]),
        }
    }
    panels
}

fn panel_height(panel: &[&Row]) -> f64 {
    PANEL_MARGIN + ROW_HEIGHT * panel.len() as f64
}

fn legend(svg: &mut String) {
    for (x, colour, name) in
        [(RIGHT - 110.0, WEFT_COLOUR, "weft"), (RIGHT - 50.0, PEER_COLOUR, "peer")]
    {
        rectangle(svg, x, 13.0, 10.0, 10.0, colour);
        text(svg, x + 15.0, 22.0, "start", name);
    }
}

fn draw_panel(svg: &mut String, panel: &[&Row], top: f64) {
    let Some(first) = panel.first() else { return };
    let title = format!("{} ({})", first.figure.panel, first.figure.unit);
    text(svg, 16.0, top + 24.0, "start", &title);
    let axis = Axis::over(panel);
    let (begin, end) = (top + 32.0, top + 32.0 + ROW_HEIGHT * panel.len() as f64);
    for mark in axis.marks() {
        let x = axis.x(mark);
        line(svg, (x, begin), (x, end), "#dddddd");
        text(svg, x, end + 16.0, "middle", &format!("{mark}"));
    }
    for (index, row) in panel.iter().enumerate() {
        let y = begin + ROW_HEIGHT * index as f64;
        text(svg, LEFT - 10.0, y + ROW_HEIGHT / 2.0 + 4.0, "end", &row.figure.case);
        draw_box(svg, &axis, &row.weft, y + 4.0, WEFT_COLOUR);
        draw_box(svg, &axis, &row.peer, y + 5.0 + BOX_HEIGHT, PEER_COLOUR);
    }
}

fn draw_box(svg: &mut String, axis: &Axis, samples: &Samples, y: f64, colour: &str) {
    let [least, low, median, high, greatest] =
        [0.0, 0.25, 0.5, 0.75, 1.0].map(|part| axis.x(samples.quantile(part)));
    let middle = y + BOX_HEIGHT / 2.0;
    line(svg, (least, middle), (greatest, middle), colour);
    // Runs that agree make a box too narrow to be seen.
    let width = (high - low).max(2.0);
    rectangle(svg, low, y, width, BOX_HEIGHT, colour);
    line(svg, (median, y), (median, y + BOX_HEIGHT), "white");
}

/// The scale of a panel, from zero to a round number.
struct Axis {
    step: f64,
    steps: u32,
}

impl Axis {
    /// The scale that all values of these rows fit on.
    fn over(panel: &[&Row]) -> Self {
        let ends = panel.iter().flat_map(|row| [row.weft.quantile(1.0), row.peer.quantile(1.0)]);
        let greatest = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
        if greatest <= 0.0 {
            return Self { step: 1.0, steps: 1 };
        }
        let magnitude = 10f64.powf(greatest.log10().floor());
        let fits = |step: &f64| greatest / step <= 8.0;
        let step = [0.2, 0.5, 1.0, 2.0].map(|part| part * magnitude).into_iter().find(fits);
        let step = step.unwrap_or(magnitude);
        Self { step, steps: (greatest / step).ceil() as u32 }
    }

    fn marks(&self) -> impl Iterator<Item = f64> {
        // Rounded, or 3 * 0.2 would be labelled 0.6000000000000001.
        (0..=self.steps).map(|mark| (f64::from(mark) * self.step * 1e6).round() / 1e6)
    }

    /// Where a value lies; values that are none lie at zero.
    fn x(&self, value: f64) -> f64 {
        let share = value / (f64::from(self.steps) * self.step);
        LEFT + (RIGHT - LEFT) * if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    push(
        svg,
        format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"),
    );
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), colour: &str) {
    let ((x1, y1), (x2, y2)) = (from, to);
    push(
        svg,
        format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>"
        ),
    );
}

fn rectangle(svg: &mut String, x: f64, y: f64, width: f64, height: f64, colour: &str) {
    push(
        svg,
        format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             fill=\"{colour}\"/>"
        ),
    );
}

fn push(svg: &mut String, element: std::fmt::Arguments<'_>) {
    writeln!(svg, "{element}").expect("writing to a string cannot fail");
}
