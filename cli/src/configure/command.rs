//! What an operator can say besides the commands that change the candidate.

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
        minutes: Option<u32>,
    },
    /// Back to what runs, or to what was some commits ago.
    Rollback(usize),
    Load {
        mode: String,
        file: String,
    },
    Exit,
    /// One for the manager: `set`, `delete` and so on.
    Edit(String),
}

/// What there is, for `help`.
pub(super) const HELP: &str = "\
set PATH                       adds a statement, or gives a leaf another value
delete PATH                    takes a statement away
rename, copy, insert           change the place or the key of a statement
show [PATH]                    the candidate, or the statements that the path leads to
show | compare                 what it changes
run [PATH]                     what runs
load merge|replace|override FILE
rollback [N]                   the candidate becomes what runs, or what ran N commits ago
commit check                   asks every component whether it would take the candidate
commit [comment TEXT] [confirmed MINUTES]
                               lets it run; with `confirmed`, until it is committed once more
history                        the revisions that are kept
exit                           ends; what is not committed is lost
A `?` at the end of a line shows what may stand there.";

impl Command {
    /// Reads a line.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        let line = line.trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        Ok(match words.as_slice() {
            [] => Self::Nothing,
            [first, ..] if first.starts_with('#') => Self::Nothing,
            ["help"] => Self::Help,
            ["show", "|", "compare"] | ["compare"] => Self::Compare,
            ["show", "|", ..] => return Err("behind `show |` stands `compare`".to_owned()),
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
            ["load", ..] => return Err("say `load merge|replace|override FILE`".to_owned()),
            ["commit", "check"] => Self::Check,
            ["commit", ..] => Self::commit(line)?,
            _ => Self::Edit(line.to_owned()),
        })
    }

    /// `commit [comment TEXT] [confirmed MINUTES]`, in any order; the text may be in quotes.
    fn commit(line: &str) -> Result<Self, String> {
        let (mut comment, mut minutes) = (String::new(), None);
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
                    let (number, behind) =
                        behind.split_once(char::is_whitespace).unwrap_or((behind, ""));
                    let number: u32 = number
                        .parse()
                        .map_err(|_| format!("`{number}` is no number of minutes"))?;
                    minutes = Some(number);
                    rest = behind.trim_start();
                }
                other => {
                    return Err(format!(
                        "`{other}` does not belong behind `commit`: comment TEXT, confirmed MINUTES \
                         or check do"
                    ));
                }
            }
        }
        Ok(Self::Commit { comment, minutes })
    }
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
            |comment: &str, minutes| Command::Commit { comment: comment.to_owned(), minutes };
        assert_eq!(parse("commit"), commit("", None));
        assert_eq!(parse("commit confirmed 5 comment \"a b\""), commit("a b", Some(5)));
        assert_eq!(parse("commit comment x"), commit("x", None));
        for (line, part) in [
            ("commit now", "does not belong"),
            ("commit comment", "comment is missing"),
            ("commit comment \"x", "not closed"),
            ("commit confirmed soon", "no number of minutes"),
            ("show | match x", "`compare`"),
            ("load x y", "merge|replace|override"),
            ("rollback x", "no number of commits"),
        ] {
            assert!(Command::parse(line).unwrap_err().contains(part), "{line}");
        }
    }
}
