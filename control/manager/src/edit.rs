//! What operators ask of the configuration, by XRL.

use std::time::Duration;

use weft_base::Instant;
use weft_commit::{Action, Done, Refusal, Revision};
use weft_config::{LoadMode, Tree};
use weft_xrl::{Called, Output, XrlError};

use crate::Manager;
use crate::commit::refused;
use crate::interface::{self, Call};

impl Manager {
    /// Takes a call that is about the configuration.
    pub(crate) fn edit(&mut self, now: Instant, called: Called, call: Call, out: &mut Vec<Output>) {
        if let Some(answer) = self.show(&called, &call) {
            out.push(answer);
            return;
        }
        match action(call) {
            Ok(action) => self.operator_asks(now, called, action, out),
            Err(error) => out.push(called.fail(error)),
        }
    }

    /// The answer to a call that changes nothing.
    fn show(&self, called: &Called, call: &Call) -> Option<Output> {
        let machine = self.commits.machine();
        let transaction = machine.transaction();
        let schema = transaction.schema();
        let answer = match call {
            Call::Configuration(_) => called.answer(Ok(interface::ConfigurationReply {
                revision: transaction.revision().map_or(0, |revision| revision.number),
                text: schema.mask(transaction.running()).to_string(),
            })),
            Call::Candidate(_) => called.answer(Ok(interface::CandidateReply {
                text: schema.mask(transaction.candidate()).to_string(),
            })),
            Call::Compare(_) => called.answer(Ok(interface::CompareReply {
                text: schema.mask_diff(&transaction.compare()).to_string(),
            })),
            Call::History(_) => {
                let revisions = machine.revisions().map(revision).collect();
                called.answer(Ok(interface::HistoryReply { revisions }))
            }
            Call::Complete(interface::Complete { line }) => {
                let completion = schema.complete(transaction.candidate(), line);
                called.answer(Ok(interface::CompleteReply {
                    from: u32::try_from(completion.from).unwrap_or(u32::MAX),
                    common: completion.common().to_owned(),
                    words: completion
                        .candidates
                        .iter()
                        .map(|one| interface::CandidateWord {
                            text: one.text.clone(),
                            help: one.help.clone(),
                            hint: one.is_hint,
                        })
                        .collect(),
                }))
            }
            _ => return None,
        };
        Some(answer)
    }

    /// The answer to a request that has been carried out, or not.
    pub(crate) fn answer_operator(&self, called: &Called, result: Result<Done, Refusal>) -> Output {
        match result {
            Ok(Done::Committed(revision)) => called
                .answer(Ok(interface::CommitReply { revision: revision.number, confirmed: false })),
            Ok(Done::Confirmed(revision)) => called
                .answer(Ok(interface::CommitReply { revision: revision.number, confirmed: true })),
            Ok(_) => called.answer(Ok(())),
            Err(refusal) => called.fail(refused(&refusal)),
        }
    }
}

fn action(call: Call) -> Result<Action, XrlError> {
    Ok(match call {
        Call::Lock(interface::Lock { steal: Some(true) }) => Action::Break,
        Call::Lock(_) => Action::Lock,
        Call::Unlock(_) => Action::Unlock,
        Call::Edit(interface::Edit { command }) => Action::Edit(command),
        Call::Load(interface::Load { source, text, mode }) => {
            let mode = match mode.as_str() {
                "merge" => LoadMode::Merge,
                "replace" => LoadMode::Replace,
                "override" => LoadMode::Override,
                other => {
                    let note =
                        format!("a text is loaded by merge, replace or override, not {other}");
                    return Err(XrlError::bad_args(note));
                }
            };
            let tree = Tree::parse_part(&source, &text)
                .map_err(|errors| XrlError::bad_args(errors.to_string()))?;
            Action::Load(tree, mode)
        }
        Call::Revert(interface::Revert { revision: Some(number) }) => Action::Restore(number),
        Call::Revert(_) => Action::Revert,
        Call::Check(_) => Action::Check,
        Call::Commit(interface::Commit { comment, confirm_within }) => Action::Commit {
            comment,
            confirm_within: confirm_within.map(|seconds| Duration::from_secs(seconds.into())),
        },
        _ => return Err(XrlError::failed("this is not about the configuration")),
    })
}

fn revision(revision: &Revision) -> interface::Revision {
    interface::Revision {
        number: revision.number,
        time: revision.time.as_unix_nanos() / 1_000_000_000,
        user: revision.user.clone(),
        comment: revision.comment.clone(),
        unconfirmed: revision.unconfirmed.is_some(),
    }
}
