//! Programs of others that are components of a node, as its configuration names them.
//!
//! ```text
//! program census {
//!     execute /usr/lib/census/census.py --quiet;
//!     access manager/manager/1.0/processes "fea/fea/1.0/open_port?spec=udp:*";
//!     config { log 100; }             # given to the program; only it knows what may stand here
//! }
//! program chat {
//!     execute /usr/lib/chat/chat.py;
//!     flows;                          # it may attach to stacks, such as XIA, and is handed no ports
//! }
//! ```
//!
//! The name is that of the instance and of the class that the program may register.

use weft_config::{Block, Entry, Error, Errors, Name, gather};
use weft_xrl::{Access, FINDER};

use crate::{Class, MANAGER, ProgramKind};

/// The word that begins their statements, which is also what all of them are to the launcher.
pub(crate) const PROGRAM: &str = "program";
/// The statement by which they may attach to stacks by flows.
const FLOWS: &str = "flows";
/// What hands out sockets of the network, and how.
const FEA: &str = "fea";
const OPENING: [&str; 4] = [
    "fea/1.0/open_port",
    "fea/1.0/open_listener",
    "fea/1.0/open_stream",
    "fea/1.0/open_stream_listener",
];
/// The statement in theirs that they are given.
pub(crate) const CONFIG: &str = "config";

/// A program.
#[derive(Debug)]
pub struct Program {
    pub(crate) class: Class,
}

impl Program {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.class.name
    }
}

/// Reads all statements `program NAME { … }` of a block. `classes` are those of the binary, whose
/// names are taken.
///
/// # Errors
/// Every mistake with its place, but for those in the programs' own statements.
pub fn read_programs<'d>(block: &mut Block<'d>, classes: &[Class]) -> Result<Vec<Program>, Errors> {
    let entries = block.many(PROGRAM);
    let mut first: Vec<(Entry<'d>, String)> = Vec::new();
    let read = |mut entry: Entry<'d>| {
        let name: Name = entry.argument("the program's name")?;
        let name = name.as_str().to_owned();
        let twice = first.iter().find(|(_, other)| *other == name);
        if let Some((other, _)) = twice {
            return Err(entry.duplicate_of(other).into());
        }
        check_name(&name, classes).map_err(|sentence| entry.error_at(1, sentence))?;
        first.push((entry.clone(), name.clone()));
        read_program(&entry, name)
    };
    gather(entries.into_iter().map(read))
}

fn check_name(name: &str, classes: &[Class]) -> Result<(), String> {
    let taken = [MANAGER, FINDER].contains(&name) || classes.iter().any(|class| class.name == name);
    match taken {
        true => Err(format!("`{name}` is a component of every node; choose another name")),
        false => name.parse::<weft_launcher::Name>().map(drop),
    }
}

fn read_program(entry: &Entry<'_>, name: String) -> Result<Program, Errors> {
    let missing = |what: &str| -> Error { entry.error(format!("the program `{name}` {what}")) };
    entry.read_block(|block| {
        let command: Vec<String> = block.list("execute")?;
        let Some(path) = command.first() else {
            return Err(missing("has no `execute PATH;`").into());
        };
        if !path.starts_with('/') {
            let what = "is executed from `/`: `execute` needs the whole path";
            return Err(missing(what).into());
        }
        let access = block.list::<String>("access")?.join(" ");
        let rights = Access::parse(&access)
            .map_err(|note| missing(&format!("cannot have its access: {note}")))?;
        let kind = match block.one(FLOWS)? {
            None => ProgramKind::Plain,
            Some(flows) => {
                flows.end()?;
                if OPENING.iter().any(|method| rights.limits([FEA; 2], method).is_some()) {
                    let sentence = "a program with `flows` is never handed packet ports or other \
                                    sockets, but this one's `access` lets it open them: remove one of \
                                    the two, or let it use `fea/fea/1.0/open_relay`";
                    return Err(flows.error(sentence).into());
                }
                ProgramKind::Application
            }
        };
        // Only the program itself knows what may stand there.
        block.one(CONFIG)?;
        // What stands behind `--` is never an option of ours.
        let arguments = std::iter::once("--".to_owned()).chain(command.iter().cloned()).collect();
        let class = Class {
            name: name.clone().into(),
            access: access.into(),
            arguments,
            program: Some(kind),
            ..Class::new(PROGRAM)
        };
        Ok(Program { class })
    })
}

#[cfg(test)]
mod tests {
    use weft_config::Document;

    use super::*;

    fn read(text: &str) -> Result<Vec<Program>, Errors> {
        let text = format!("version 1; {text}");
        let classes = [Class::new("fea")];
        Document::parse("t", &text)?.read(1, |block| read_programs(block, &classes))
    }

    #[test]
    fn a_program_is_what_it_executes_and_may_call() {
        let programs = read(
            "program a { execute /x -q; access b/c/1.0 \"d?e=f*\"; config { any thing; } }
             program b { execute /y; flows; access fea/fea/1.0/open_relay a; }",
        )
        .unwrap();
        let [first, second] = &programs[..] else { panic!("{programs:?}") };
        assert_eq!(first.class.name, "a");
        assert_eq!(first.class.arguments, ["--", "/x", "-q"]);
        assert_eq!(first.class.access, "b/c/1.0 d?e=f*");
        assert_eq!(first.class.program, Some(ProgramKind::Plain));
        assert_eq!(second.class.access.as_ref(), "fea/fea/1.0/open_relay a");
        assert_eq!(second.class.program, Some(ProgramKind::Application));
        assert!(!first.class.runs_as(&second.class));
    }

    #[test]
    fn what_a_program_cannot_be_is_an_error_with_a_place() {
        for (text, part) in [
            ("program fea { execute /x; }", "every node"),
            ("program finder { execute /x; }", "every node"),
            ("program manager { execute /x; }", "every node"),
            ("program A { execute /x; }", "is no name"),
            ("program a { execute /x; } program a { execute /y; }", "first given here"),
            ("program a { }", "has no `execute PATH;`"),
            ("program a { execute x; }", "whole path"),
            ("program a { execute /x; access a//b; }", "not of the form"),
            ("program a { execute /x; exceed /y; }", "unknown statement"),
            ("program a { execute /x; flows on; }", "takes nothing more"),
            ("program a { execute /x; flows; access fea; }", "never handed packet ports"),
            ("program a { execute /x; flows; access *; }", "never handed packet ports"),
            (
                "program a { execute /x; flows; access fea/fea/1.0/open_listener; }",
                "never handed packet ports",
            ),
            (
                "program a { execute /x; flows; access \"fea/fea/1.0/open_stream?port=179\"; }",
                "never handed packet ports",
            ),
            (
                "program a { execute /x; flows; access \"*/fea/*/open_port?spec=udp:*\"; }",
                "never handed packet ports",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("t:1:"), "{text}: {error}");
        }
    }
}
