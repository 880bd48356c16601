//! Lines of a log on standard error: for a person, for a file, or for the journal of systemd.
//!
//! A process of a node shares its standard error with others, so each line begins with the time and with
//! who says it. Where the journal reads (`JOURNAL_STREAM` names what standard error is) it knows the time, and
//! wants to know how serious a line is: then the priority stands in front.
//!
//! Reference: systemd.exec(5), `$JOURNAL_STREAM`; sd-daemon(3), `SD_ERR` and the others; syslog(3).

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use weft_base::WallTime;

use crate::Level;

/// How lines are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    /// Who says them; nobody is named where only one can be meant.
    name: Option<String>,
    /// Whether the journal reads.
    journal: bool,
}

impl Lines {
    /// Lines of somebody whose standard error others write to as well; `None`: of a command, which nobody
    /// else writes beside.
    #[must_use]
    pub fn new(name: Option<&str>) -> Self {
        let journal = name.is_some() && reaches_journal();
        Self { name: name.map(str::to_owned), journal }
    }

    /// Writes a report. If that fails there is nobody left to tell.
    pub fn write(&self, level: Level, text: &str) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        let lines = self.format(WallTime::from_unix_nanos(nanos), level, text);
        // In one piece, so that those of other processes do not come between.
        let _ = io::stderr().lock().write_all(lines.as_bytes());
    }

    /// The lines of a report, each ended.
    fn format(&self, time: WallTime, level: Level, text: &str) -> String {
        let text = harmless(text);
        let front = match &self.name {
            None => return format!("{}{text}\n", prefix(level)),
            Some(name) if self.journal => format!("<{}>{name}: ", priority(level)),
            Some(name) => format!("{time} {name}: {}", prefix(level)),
        };
        // An empty report is a line, too.
        let lines = text.lines().chain(text.is_empty().then_some(""));
        lines.map(|line| format!("{front}{line}\n")).collect()
    }
}

/// Whether standard error is what the service manager connected to the journal.
fn reaches_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    rustix::fs::fstat(io::stderr())
        .is_ok_and(|found| stream == format!("{}:{}", found.st_dev, found.st_ino))
}

fn prefix(level: Level) -> &'static str {
    match level {
        Level::Error => "error: ",
        Level::Warning => "warning: ",
        Level::Info => "",
        Level::Debug => "debug: ",
    }
}

/// The priority in syslog(3).
fn priority(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warning => 4,
        Level::Info => 6,
        Level::Debug => 7,
    }
}

/// The text without characters that control a terminal.
pub(super) fn harmless(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(name: Option<&str>, journal: bool, level: Level, text: &str) -> String {
        let lines = Lines { name: name.map(str::to_owned), journal };
        lines.format(WallTime::from_unix_nanos(1_795_300_200_118_000_000), level, text)
    }

    #[test]
    fn who_shares_standard_error_says_when_and_who() {
        let text = "no interface `west`\n  12 | interface west;";
        assert_eq!(lines(None, false, Level::Warning, text), format!("warning: {text}\n"));
        assert_eq!(
            lines(Some("xia"), false, Level::Warning, text),
            "2026-11-21T22:30:00.118Z xia: warning: no interface `west`\n\
             2026-11-21T22:30:00.118Z xia: warning:   12 | interface west;\n"
        );
        let ready = lines(Some("fea"), false, Level::Info, "is ready");
        assert_eq!(ready, "2026-11-21T22:30:00.118Z fea: is ready\n");
    }

    #[test]
    fn the_journal_is_told_the_priority_of_each_line_and_no_time() {
        assert_eq!(
            lines(Some("xia"), true, Level::Error, "one\ntwo"),
            "<3>xia: one\n<3>xia: two\n"
        );
        for (level, priority) in Level::ALL.into_iter().zip(["<3>", "<4>", "<6>", "<7>"]) {
            assert_eq!(lines(Some("a"), true, level, ""), format!("{priority}a: \n"));
        }
    }

    #[test]
    fn a_report_cannot_pretend_to_be_of_another_priority() {
        // The prefix counts at the beginning of a line, where the name stands.
        assert_eq!(
            lines(Some("a"), true, Level::Info, "x\n<0>y\r<0>z"),
            "<6>a: x\n<6>a: <0>y\u{fffd}<0>z\n"
        );
    }

    #[test]
    fn text_cannot_control_the_terminal() {
        assert_eq!(lines(None, false, Level::Info, "a\x1b[2Jb\tc"), "a\u{fffd}[2Jb\tc\n");
    }
}
