//! Output for people: reports on standard error and one line of progress.
//!
//! On a terminal the progress line is redrawn in place, ten times per second at most, and moves out
//! of the way of other output. Elsewhere it is a line every two seconds, and the last state of each
//! piece of work. Text from elsewhere (labels are often file names that a peer chose) cannot control
//! the terminal: control characters are replaced.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use weft_base::Instant;

use super::lines::{Lines, harmless};
use crate::Level;

/// The shortest time between two drawings of the progress line.
const REDRAW: Duration = Duration::from_millis(100);
/// The same where it cannot be redrawn, and before the first line there.
const REPEAT: Duration = Duration::from_secs(2);
/// Columns of a terminal that does not say.
const USUAL_WIDTH: usize = 80;
/// Columns of the bar.
const BAR: u64 = 20;
/// Back to the start of the line, and clear it (ECMA-48, CR and EL).
const CLEAR: &str = "\r\x1b[K";

/// How far a piece of work has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) label: String,
    pub(super) done: u64,
    pub(super) total: Option<u64>,
    pub(super) note: String,
}

pub(super) struct Terminal {
    level: Level,
    lines: Lines,
    /// Standard error is a terminal.
    redraws: bool,
    /// Standard output is one, too: what is printed there would mix with the progress line.
    shared: bool,
    progress: Option<Progress>,
    /// The progress line is on the screen.
    drawn: bool,
    /// The final state of `progress` was written.
    finished: bool,
    /// `None`: nothing is shown yet.
    next_drawing: Option<Instant>,
}

impl Terminal {
    /// Shows reports down to `level`.
    pub(super) fn new(level: Level, lines: Lines) -> Self {
        let redraws = io::stderr().is_terminal();
        Self {
            level,
            lines,
            redraws,
            shared: redraws && io::stdout().is_terminal(),
            progress: None,
            drawn: false,
            finished: false,
            next_drawing: None,
        }
    }

    /// Shows reports down to `level` from now on.
    pub(super) fn set_level(&mut self, level: Level) {
        self.level = level;
    }

    /// Whether reports of `level` are shown.
    pub(super) fn shows(&self, level: Level) -> bool {
        level <= self.level
    }

    /// Writes a line for the operator.
    pub(super) fn report(&mut self, level: Level, line: &str) {
        if self.shows(level) {
            self.clear();
            self.lines.write(level, line);
        }
    }

    /// Shows how far a piece of work has come.
    pub(super) fn progress(&mut self, now: Instant, progress: Progress) {
        let same = self.progress.as_ref().is_some_and(|old| old.label == progress.label);
        if same && self.finished {
            return;
        }
        let complete = progress.total.is_some_and(|total| progress.done >= total);
        self.progress = Some(progress);
        self.finished = false;
        if complete {
            self.finish();
        } else if self.is_due(now) {
            self.draw();
        }
    }

    /// Whether the progress is shown again now.
    fn is_due(&mut self, now: Instant) -> bool {
        let (pause, first) = if self.redraws { (REDRAW, now) } else { (REPEAT, now + REPEAT) };
        let due = now >= *self.next_drawing.get_or_insert(first);
        if due {
            self.next_drawing = Some(now + pause);
        }
        due
    }

    /// Standard output is about to be written.
    pub(super) fn make_way(&mut self) {
        if self.shared {
            self.clear();
        }
    }

    /// Leaves the last state of the progress on the screen; the cursor is at the start of a line.
    pub(super) fn finish(&mut self) {
        if self.finished {
            return;
        }
        let Some(progress) = &self.progress else { return };
        let clear = if self.redraws { CLEAR } else { "" };
        write(&format!("{clear}{}\n", render(progress, self.width())));
        self.drawn = false;
        self.finished = true;
        self.next_drawing = None;
    }

    fn draw(&mut self) {
        if let Some(progress) = &self.progress {
            let line = render(progress, self.width());
            write(&if self.redraws { format!("{CLEAR}{line}") } else { line + "\n" });
            self.drawn = self.redraws;
        }
    }

    fn clear(&mut self) {
        if self.drawn {
            write(CLEAR);
            self.drawn = false;
            self.next_drawing = None;
        }
    }

    /// Columns that a line may have without wrapping.
    fn width(&self) -> usize {
        if !self.redraws {
            return usize::MAX;
        }
        let size = rustix::termios::tcgetwinsize(io::stderr());
        let columns = size.map_or(0, |size| usize::from(size.ws_col));
        if columns == 0 { USUAL_WIDTH } else { columns.saturating_sub(1) }
    }
}

/// Writes to standard error. If that fails there is nobody left to tell.
fn write(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn render(progress: &Progress, width: usize) -> String {
    let mut line = progress.label.clone();
    match progress.total {
        Some(total) => {
            let part = |of: u64| part(progress.done, total, of);
            let full = part(BAR) as usize;
            let bar = format!("{}{}", "#".repeat(full), "-".repeat(BAR as usize - full));
            let (done, total) = (amount(progress.done), amount(total));
            line += &format!(" [{bar}] {:3} % {done}/{total}", part(100));
        }
        None => line += &format!(" {}", amount(progress.done)),
    }
    if !progress.note.is_empty() {
        line += &format!(" {}", progress.note);
    }
    let line = harmless(&line).replace(['\n', '\t'], " ");
    line.chars().take(width).collect()
}

/// How many of `of` equal parts of `total` are done.
fn part(done: u64, total: u64, of: u64) -> u64 {
    if total == 0 {
        return of;
    }
    let share = u128::from(done.min(total)) * u128::from(of) / u128::from(total);
    u64::try_from(share).unwrap_or(of)
}

/// A number with a decimal prefix: `999`, `1.5k`, `20.0M`.
fn amount(number: u64) -> String {
    let mut scaled = number;
    let mut tenths = 0;
    let mut prefix = "";
    for next in ["k", "M", "G", "T", "P", "E"] {
        if scaled < 1000 {
            break;
        }
        tenths = scaled % 1000 / 100;
        scaled /= 1000;
        prefix = next;
    }
    if prefix.is_empty() { scaled.to_string() } else { format!("{scaled}.{tenths}{prefix}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(label: &str, done: u64, total: Option<u64>, note: &str) -> Progress {
        Progress { label: label.to_owned(), done, total, note: note.to_owned() }
    }

    #[test]
    fn a_progress_line_shows_share_amount_and_note_within_the_width() {
        let half = progress("weft", 1_500_000, Some(3_000_000), "80 Mbit/s");
        let line = "weft [##########----------]  50 % 1.5M/3.0M 80 Mbit/s";
        assert_eq!(render(&half, 80), line);
        assert_eq!(render(&half, 10), line[..10]);
        assert_eq!(render(&progress("in", 999, None, ""), 80), "in 999");
        assert_eq!(part(0, 0, 20), 20);
        assert_eq!(part(u64::MAX, u64::MAX, 100), 100);
        assert_eq!(part(u64::MAX - 1, u64::MAX, 100), 99);
        assert_eq!(amount(u64::MAX), "18.4E");
    }

    #[test]
    fn without_a_terminal_a_line_is_written_every_two_seconds_and_none_at_once() {
        let mut terminal = Terminal::new(Level::Info, Lines::new(None));
        for (redraws, expected) in [(false, [20, 40]), (true, [0, 1])] {
            terminal.redraws = redraws;
            terminal.next_drawing = None;
            let tenths = (0..60_u32).filter(|tenth| {
                terminal.is_due(Instant::ZERO + *tenth * Duration::from_millis(100))
            });
            assert_eq!(tenths.take(2).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn text_cannot_control_the_terminal() {
        let evil = progress("\x1b]0;owned\x07name\r\n", 1, None, "\u{9b}2J");
        assert!(!render(&evil, 80).contains(char::is_control));
        assert_eq!(harmless("a\x1b[2Jb\n\tc"), "a\u{fffd}[2Jb\n\tc");
    }
}
