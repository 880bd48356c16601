//! One operator's session: it holds the lock from its beginning to its end.

use std::thread;
use std::time::{Duration, Instant};

use weft_config::{ToWord, Tree};
use weft_manager::interface;
use weft_xrl::{ErrorCode, Request, XrlError};

use super::command::{Command, beginning_with, help};
use super::save::save;
use crate::call::{Client, Reach};

/// How long a commit may take: components are asked, told and perhaps told again.
const PATIENCE: Duration = Duration::from_secs(120);
const MANAGER: &str = "manager";
/// The command whose path is completed as one that is shown.
const DELETE: &str = "delete ";
/// How long the manager may be away, and how often it is looked for.
const AWAY: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(50);

/// A session; see the module's text.
pub(super) struct Session {
    client: Client,
    reach: Reach,
}

/// Whether a call failed because nobody was there to take it.
fn is_away(error: &XrlError) -> bool {
    matches!(error.code, ErrorCode::ResolveFailed | ErrorCode::SendFailedTransient)
}

/// What follows a command.
#[derive(Debug)]
pub(super) enum Next {
    /// The operator is told this.
    Said(String),
    /// The session ends.
    End,
}

impl Session {
    /// Takes the lock.
    ///
    /// # Errors
    /// Somebody else has it, or the node does not answer.
    pub(super) fn begin(reach: &Reach, steal: bool) -> Result<Self, String> {
        let session = Self { client: Client::new(reach)?, reach: reach.clone() };
        let lock = interface::Lock { steal: steal.then_some(true) };
        // Whoever only begins need not wait for a node that does not run.
        let locked = session.client.call(MANAGER, lock, PATIENCE);
        locked.map_err(|XrlError { note, .. }| note)?;
        Ok(session)
    }

    /// Asks the manager. While there is none it is being started again: what was not sent to the one
    /// before waits for the next, which knows the lock and the candidate.
    fn ask<R: Request + Clone>(&self, request: R) -> Result<R::Reply, String> {
        let begun = Instant::now();
        loop {
            match self.client.call(MANAGER, request.clone(), PATIENCE) {
                Err(error) if is_away(&error) && begun.elapsed() < AWAY => thread::sleep(PAUSE),
                done => return done.map_err(|XrlError { note, .. }| note),
            }
        }
    }

    /// Gives the lock back.
    pub(super) fn end(&self) -> Result<(), String> {
        self.ask(interface::Unlock)
    }

    /// Carries out a line.
    ///
    /// # Errors
    /// Why it was not.
    pub(super) fn command(&self, line: &str) -> Result<Next, String> {
        if let Some(line) = line.trim_end().strip_suffix('?') {
            return self.what_may_follow(line).map(Next::Said);
        }
        let said = match Command::parse(line)? {
            Command::Nothing => String::new(),
            Command::Help => help(),
            Command::Show(path) => below(self.ask(interface::Candidate)?.text, &path)?,
            Command::Running(path) => below(self.ask(interface::Configuration)?.text, &path)?,
            Command::Compare => self.ask(interface::Compare)?.text,
            Command::History => self.history()?,
            Command::Check => {
                self.ask(interface::Check)?;
                let text = self.ask(interface::Candidate)?.text;
                with_warnings("nothing speaks against it".to_owned(), &text)
            }
            Command::Commit { comment, within } => self.commit(comment, within)?,
            Command::Save(file) => {
                let revision = self.ask(interface::Configuration)?.revision;
                save(&self.reach, revision, file.as_ref())?
            }
            Command::Rollback(back) => self.rollback(back)?,
            Command::Load { mode, file } => self.load(&file, mode)?,
            Command::Edit(command) => {
                self.ask(interface::Edit { command })?;
                String::new()
            }
            Command::Exit => return Ok(Next::End),
        };
        Ok(Next::Said(said))
    }

    fn commit(&self, comment: String, confirm_within: Option<u32>) -> Result<String, String> {
        let reply = self.ask(interface::Commit { comment, confirm_within })?;
        let number = reply.revision;
        let done = match (reply.confirmed, confirm_within) {
            (true, _) => format!("revision {number} is confirmed"),
            (false, None) => format!("revision {number} runs"),
            (false, Some(seconds)) => format!(
                "revision {number} runs; without another `commit` within {} everything is as before",
                Duration::from_secs(seconds.into()).to_word()
            ),
        };
        // It is done, whether or not this operator may see what runs.
        Ok(match self.ask(interface::Configuration) {
            Ok(runs) => with_warnings(done, &runs.text),
            Err(_) => done,
        })
    }

    fn rollback(&self, back: usize) -> Result<String, String> {
        let revision = match back {
            0 => None,
            _ => {
                let revisions = self.ask(interface::History)?.revisions;
                let kept = revisions.len().saturating_sub(1);
                let found = revisions
                    .get(back)
                    .ok_or_else(|| format!("only {kept} commits before what runs are kept"))?;
                Some(found.number)
            }
        };
        self.ask(interface::Revert { revision })?;
        Ok(String::new())
    }

    fn load(&self, file: &str, mode: String) -> Result<String, String> {
        let text = crate::node::include::read(file.as_ref())?.text;
        self.ask(interface::Load { source: file.to_owned(), text, mode })?;
        Ok(String::new())
    }

    fn history(&self) -> Result<String, String> {
        let revisions = self.ask(interface::History)?.revisions;
        let line = |(back, one): (usize, interface::Revision)| {
            let unconfirmed = if one.unconfirmed { " (unconfirmed)" } else { "" };
            format!(
                "rollback {back}: revision {}{unconfirmed}, {}, by {}: {}",
                one.number,
                crate::output::utc(one.time),
                one.user,
                one.comment
            )
        };
        Ok(revisions.into_iter().enumerate().map(line).collect::<Vec<_>>().join("\n"))
    }

    /// What may stand next, with its meaning.
    fn what_may_follow(&self, line: &str) -> Result<String, String> {
        if line.trim().is_empty() {
            return Ok(help());
        }
        let reply = self.complete(line)?;
        if reply.words.is_empty() {
            return Ok("nothing may follow".to_owned());
        }
        let line = |one: &interface::CandidateWord| format!("  {:<20} {}", one.text, one.help);
        Ok(reply.words.iter().map(line).collect::<Vec<_>>().join("\n"))
    }

    pub(super) fn complete(&self, line: &str) -> Result<interface::CompleteReply, String> {
        // The first word is a command, of which the manager knows only some.
        let begun = line.trim_start();
        if !begun.contains(char::is_whitespace) {
            let from = u32::try_from(line.len() - begun.len()).unwrap_or(u32::MAX);
            let word = |(text, help): (&str, &str)| interface::CandidateWord {
                text: text.to_owned(),
                help: help.to_owned(),
                hint: false,
            };
            let words = beginning_with(begun).into_iter().map(word).collect();
            return Ok(interface::CompleteReply { from, common: begun.to_owned(), words });
        }
        // A path to be shown is completed as the manager completes one to be deleted.
        let shown = ["show ", "run "].into_iter().find(|command| line.starts_with(command));
        let command = shown.unwrap_or(DELETE);
        let path = line.strip_prefix(command);
        let asked = path.map_or_else(|| line.to_owned(), |path| format!("{DELETE}{path}"));
        let mut reply = self.ask(interface::Complete { line: asked })?;
        let moved = |from: usize| from.saturating_sub(DELETE.len()) + command.len();
        if shown.is_some() {
            reply.from = u32::try_from(moved(reply.from as usize)).unwrap_or(reply.from);
        }
        Ok(reply)
    }
}

/// What was done, and below it what the configuration lacks so that all of it has an effect.
fn with_warnings(done: String, configuration: &str) -> String {
    let tree = Tree::parse("configuration", configuration).unwrap_or_else(|_| Tree::empty());
    let lacks = weft_manager::lacks(&tree, &crate::registry::classes());
    let lines = lacks.into_iter().map(|sentence| format!("warning: {sentence}"));
    std::iter::once(done).chain(lines).collect::<Vec<_>>().join("\n")
}

/// The statements of a configuration that a path leads to; all of it without a path.
fn below(text: String, path: &str) -> Result<String, String> {
    if path.is_empty() {
        return Ok(text);
    }
    let tree = Tree::parse("configuration", &text).map_err(|errors| errors.to_string())?;
    let found = tree.find(path).map_err(|errors| errors.to_string())?;
    if found.is_empty() {
        return Err(format!("there is no statement `{path}`"));
    }
    Ok(found.into_iter().map(ToString::to_string).collect())
}
