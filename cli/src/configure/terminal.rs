//! The shell for a person at a terminal: a prompt, the lines of before, and completion.

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use super::session::{Next, Session};
use crate::output::{print_lines, say};

const PROMPT: &str = "weft# ";

/// Completes commands by asking the node.
struct Shell(Session);

impl Helper for Shell {}
impl Highlighter for Shell {}
impl Validator for Shell {}

impl Hinter for Shell {
    type Hint = String;
}

impl Completer for Shell {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let line = line.get(..position).unwrap_or(line);
        // A node that does not answer completes nothing; the command itself will tell.
        let Ok(reply) = self.0.complete(line) else { return Ok((position, Vec::new())) };
        let words = reply.words.into_iter().filter(|word| !word.hint);
        let pair = |text: String| Pair { display: text.clone(), replacement: text + " " };
        Ok((reply.from as usize, words.map(|word| pair(word.text)).collect()))
    }
}

/// Talks to a person until they have enough.
pub(super) fn run(session: Session) -> Result<(), String> {
    let config = Config::builder().completion_type(CompletionType::List).build();
    let mut editor: Editor<Shell, DefaultHistory> =
        Editor::with_config(config).map_err(|error| format!("the terminal: {error}"))?;
    editor.set_helper(Some(Shell(session)));
    say("`help` says what there is; what is not committed is lost at the end");
    loop {
        match editor.readline(PROMPT) {
            Ok(line) => {
                let _ = editor.add_history_entry(&line);
                let Some(Shell(session)) = editor.helper() else { break };
                match session.command(&line) {
                    Ok(Next::Said(text)) => print_lines(text.lines())?,
                    Ok(Next::End) => break,
                    Err(error) => say(&format!("error: {error}")),
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(format!("the terminal: {error}")),
        }
    }
    editor.helper().map_or(Ok(()), |Shell(session)| session.end())
}
