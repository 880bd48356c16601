//! What an operator can say.

use std::time::Duration;

use weft_config::FromWord;

/// A command of the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Nothing,
    Help,
    /// The candidate, or what stands below a path of it.
    Show(String),
    /// What runs, or what stands below a path of it.
    Running(String),
    Compare,
    History,
    Check,
    Commit {
        comment: String,
        /// Seconds after which it is taken back unless it is confirmed.
        within: Option<u32>,
    },
    /// Back to what runs, or to what was some commits ago.
    Rollback(usize),
    Load {
        mode: String,
        file: String,
    },
    /// What runs into a file.
    Save(String),
    Exit,
    /// One for the manager: `set`, `delete` and so on.
    Edit(String),
}

/// What there is, for `help`, `?` and errors: how it is written, and what it does.
pub(super) const COMMANDS: &[(&str, &str)] = &[
    ("set PATH", "adds a statement, or gives a leaf another value"),
    ("delete PATH", "takes a statement away"),
    ("rename PATH to KEY", "gives a list entry another key"),
    ("copy PATH to KEY", "makes a list entry like another one"),
    ("insert PATH before|after KEY", "moves a statement among its siblings"),
    ("annotate PATH \"TEXT\"", "puts a comment above a statement; \"\" removes it"),
    ("show [PATH]", "the candidate, or the statements that the path leads to"),
    ("show | compare", "what it changes; `compare` does, too"),
    ("run [PATH]", "what runs"),
    ("load merge|replace|override FILE", "a file into the candidate"),
    ("save FILE", "what runs, with its secrets, into a file: to start the node from it"),
    ("rollback [N]", "the candidate becomes what runs, or what ran N commits ago"),
    ("commit check", "asks every component whether it would take the candidate"),
    (
        "commit [comment TEXT] [confirmed TIME]",
        "lets it run; with `confirmed`, until it is committed once more: 5 or 5min, 90s, 2h",
    ),
    ("history", "the revisions that are kept"),
    ("help", "what there is"),
    ("exit", "ends; what is not committed is lost"),
];

/// The first words of the commands that the manager carries out.
const EDITS: &[&str] = &["set", "delete", "rename", "copy", "insert", "annotate"];

/// The width of the column that says how commands are written.
const WRITTEN: usize = 40;

/// The first word of a command as it is written.
fn verb(written: &str) -> &str {
    written.split(' ').next().unwrap_or(written)
}

/// The text of `help`.
pub(super) fn help() -> String {
    let lines = COMMANDS.iter().map(|(written, help)| format!("{written:<WRITTEN$} {help}"));
    let end = "A `?` at the end of a line shows what may stand there.".to_owned();
    lines.chain([end]).collect::<Vec<_>>().join("\n")
}

/// The commands that begin with a part of a word, each once, and what the first of that name does.
pub(super) fn beginning_with(part: &str) -> Vec<(&'static str, &'static str)> {
    let mut all: Vec<(&str, &str)> = Vec::new();
    for (written, help) in COMMANDS {
        let word = verb(written);
        if word.starts_with(part) && all.iter().all(|(known, _)| *known != word) {
            all.push((word, help));
        }
    }
    all
}

/// Why a first word is no command.
fn unknown(word: &str) -> String {
    let words: Vec<_> = beginning_with("").into_iter().map(|(word, _)| word).collect();
    match weft_config::suggest(word, words.iter().copied()) {
        Some(meant) => format!("unknown command `{word}`: did you mean `{meant}`?"),
        None => format!("unknown command `{word}`: there are {}", words.join(", ")),
    }
}

impl Command {
    /// Reads a line.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        let line = line.trim();
        let filter = line.strip_prefix("show").and_then(|rest| rest.trim_start().strip_prefix('|'));
        if let Some(filter) = filter {
            return match filter.trim() {
                "compare" => Ok(Self::Compare),
                _ => Err("behind `show |` stands `compare`".to_owned()),
            };
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        Ok(match words.as_slice() {
            [] => Self::Nothing,
            [first, ..] if first.starts_with('#') => Self::Nothing,
            ["help"] => Self::Help,
            ["compare"] => Self::Compare,
            ["show", ..] => Self::Show(line["show".len()..].trim_start().to_owned()),
            ["run", ..] => Self::Running(line["run".len()..].trim_start().to_owned()),
            ["history"] => Self::History,
            ["exit" | "quit"] => Self::Exit,
            ["rollback"] => Self::Rollback(0),
            ["rollback", number] => {
                let wrong = |_| format!("`{number}` is no number of commits");
                Self::Rollback(number.parse().map_err(wrong)?)
            }
            ["load", mode @ ("merge" | "replace" | "override"), file] => {
                Self::Load { mode: (*mode).to_owned(), file: (*file).to_owned() }
            }
            ["save", file] => Self::Save((*file).to_owned()),
            ["commit", "check"] => Self::Check,
            ["commit", ..] => Self::commit(line)?,
            [first, ..] if EDITS.contains(first) => Self::Edit(line.to_owned()),
            [first, ..] => return Err(how_to_write(first)),
        })
    }

    /// `commit [comment TEXT] [confirmed TIME]`, in any order; the text may be in quotes.
    fn commit(line: &str) -> Result<Self, String> {
        let (mut comment, mut within) = (String::new(), None);
        let mut rest = line["commit".len()..].trim_start();
        while !rest.is_empty() {
            let (word, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let behind = behind.trim_start();
            match word {
                "comment" => {
                    let (text, behind) = text(behind)?;
                    comment = text.to_owned();
                    rest = behind.trim_start();
                }
                "confirmed" => {
                    let (time, behind) =
                        behind.split_once(char::is_whitespace).unwrap_or((behind, ""));
                    within = Some(seconds(time)?);
                    rest = behind.trim_start();
                }
                other => {
                    return Err(format!(
                        "`{other}` does not belong behind `commit`: comment TEXT, confirmed TIME \
                         or check do"
                    ));
                }
            }
        }
        Ok(Self::Commit { comment, within })
    }
}

/// How a command is written whose first word is right, or why that is none.
fn how_to_write(first: &str) -> String {
    let ways: Vec<_> = COMMANDS
        .iter()
        .filter(|(written, _)| verb(written) == first)
        .map(|(written, _)| format!("`{written}`"))
        .collect();
    match ways.is_empty() {
        true => unknown(first),
        false => format!("say {}", ways.join(" or ")),
    }
}

/// A number of minutes, or a duration, in whole seconds.
fn seconds(time: &str) -> Result<u32, String> {
    let minutes = || time.parse::<u32>().ok().map(|minutes| minutes.saturating_mul(60));
    let duration = || {
        let duration = Duration::from_word(time).ok()?;
        let is_whole = duration.subsec_nanos() == 0;
        is_whole.then(|| u32::try_from(duration.as_secs()).unwrap_or(u32::MAX))
    };
    minutes().or_else(duration).ok_or_else(|| {
        format!("`{time}` is no number of minutes, nor a duration in whole seconds such as 90s")
    })
}

/// A word, or what stands in quotes, and what follows.
fn text(line: &str) -> Result<(&str, &str), String> {
    match line.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').ok_or_else(|| "a quote is not closed".to_owned()),
        None if line.is_empty() => Err("the comment is missing".to_owned()),
        None => Ok(line.split_once(char::is_whitespace).unwrap_or((line, ""))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_commands_of_the_shell_or_for_the_manager() {
        let parse = |line: &str| Command::parse(line).unwrap();
        assert_eq!(parse("  # remark"), Command::Nothing);
        assert_eq!(parse("show | compare"), Command::Compare);
        assert_eq!(parse("show"), Command::Show(String::new()));
        assert_eq!(parse("show xia \"a b\""), Command::Show("xia \"a b\"".to_owned()));
        assert_eq!(parse("run xia"), Command::Running("xia".to_owned()));
        assert_eq!(parse("rollback 2"), Command::Rollback(2));
        assert_eq!(parse(" set xia echo off "), Command::Edit("set xia echo off".to_owned()));
        let commit =
            |comment: &str, within| Command::Commit { comment: comment.to_owned(), within };
        assert_eq!(parse("commit"), commit("", None));
        assert_eq!(parse("commit confirmed 5 comment \"a b\""), commit("a b", Some(300)));
        assert_eq!(parse("commit comment x"), commit("x", None));
        assert_eq!(parse("commit confirmed 10s"), commit("", Some(10)));
        assert_eq!(parse("commit confirmed 2h comment x"), commit("x", Some(7200)));
        for line in ["show |compare", "show|compare", "show| compare", "compare"] {
            assert_eq!(parse(line), Command::Compare, "{line}");
        }
        assert_eq!(parse("save r1.conf"), Command::Save("r1.conf".to_owned()));
        for (line, part) in [
            ("commit now", "does not belong"),
            ("commit comment", "comment is missing"),
            ("commit comment \"x", "not closed"),
            ("commit confirmed soon", "no number of minutes, nor a duration"),
            ("commit confirmed 1.5s", "whole seconds"),
            ("show | match x", "`compare`"),
            ("load x y", "say `load merge|replace|override FILE`"),
            ("save", "say `save FILE`"),
            ("history all", "say `history`"),
            ("comit check", "did you mean `commit`?"),
            (
                "nonsense",
                "there are set, delete, rename, copy, insert, annotate, show, run, load, save",
            ),
            ("rollback x", "no number of commits"),
        ] {
            assert!(Command::parse(line).unwrap_err().contains(part), "{line}");
        }
    }

    #[test]
    fn help_completion_and_the_commands_that_are_read_are_the_same() {
        for (written, _) in COMMANDS {
            assert!(help().contains(&format!("{written} ")), "{written}");
            let word = verb(written);
            assert!(beginning_with(word).iter().any(|(known, _)| *known == word), "{word}");
            // What lacks its words is told how it is written, and not that there is no such command.
            let wrong = Command::parse(word).err().unwrap_or_default();
            assert!(!wrong.contains("unknown command"), "{word}: {wrong}");
        }
        assert_eq!(beginning_with("co").len(), 2, "copy and commit, each once");
        assert!(EDITS.iter().all(|word| !beginning_with(word).is_empty()));
    }
}
