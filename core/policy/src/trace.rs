//! What would happen to a route, and why.

use std::fmt;

use serde_json::{Value as Json, json};

use crate::program::{Code, Note, Program};
use crate::run::Watch;
use crate::tree::Source;
use crate::value::{Kind, Value, Variable};

/// Something that happened while policies were asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A policy is asked.
    Policy(String),
    /// A term of it; none of what stands in the policy itself.
    Term(Option<String>),
    /// A condition was decided.
    Condition {
        /// As it is written.
        text: String,
        /// Whether it holds.
        holds: bool,
        /// What was asked about, if it has a value.
        value: Option<String>,
    },
    /// A variable was changed.
    Change {
        /// As it is written.
        text: String,
        /// Its name.
        variable: &'static str,
        /// What it had.
        before: Option<String>,
        /// What it has.
        after: Option<String>,
    },
    /// The policy has accepted the route, rejected it, or neither.
    Verdict(Option<bool>),
}

/// All that happened, in order. `Display` prints it for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Each with how deep in policies that are called it happened.
    pub steps: Vec<(usize, Step)>,
    /// Whether the route passes.
    pub accepted: bool,
    /// Which policy has decided that, and in which term; none if none has.
    pub by: Option<(String, Option<String>)>,
}

impl Explanation {
    /// The same for programs.
    #[must_use]
    pub fn json(&self) -> Json {
        let step = |(depth, step): &(usize, Step)| {
            let mut json = match step {
                Step::Policy(name) => json!({ "step": "policy", "name": name }),
                Step::Term(name) => json!({ "step": "term", "name": name }),
                Step::Condition { text, holds, value } => {
                    json!({ "step": "condition", "text": text, "holds": holds, "value": value })
                }
                Step::Change { text, variable, before, after } => json!({
                    "step": "change", "text": text, "variable": variable, "before": before, "after": after,
                }),
                Step::Verdict(accepts) => json!({ "step": "verdict", "accepts": accepts }),
            };
            json["depth"] = (*depth).into();
            json
        };
        let (policy, term) = self.by.clone().unzip();
        json!({
            "accepted": self.accepted, "policy": policy, "term": term.flatten(),
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, step) in &self.steps {
            let indent = depth * 4;
            let or_none =
                |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
            match step {
                Step::Policy(name) => writeln!(f, "{:indent$}policy {name}", "")?,
                Step::Term(Some(name)) => writeln!(f, "{:indent$}  term {name}", "")?,
                Step::Term(None) => writeln!(f, "{:indent$}  its own term", "")?,
                Step::Condition { text, holds, value } => {
                    let holds = if *holds { "yes" } else { "no" };
                    match value {
                        Some(value) => {
                            writeln!(f, "{:indent$}    {text}: {holds}, it is {value}", "")?
                        }
                        None => writeln!(f, "{:indent$}    {text}: {holds}", "")?,
                    }
                }
                Step::Change { text, variable, before, after } => {
                    let (before, after) = (or_none(before), or_none(after));
                    writeln!(f, "{:indent$}    {text}: {variable} was {before}, is {after}", "")?;
                }
                Step::Verdict(Some(true)) => writeln!(f, "{:indent$}    accept", "")?,
                Step::Verdict(Some(false)) => writeln!(f, "{:indent$}    reject", "")?,
                Step::Verdict(None) => writeln!(f, "{:indent$}  neither accepts nor rejects", "")?,
            }
        }
        let verdict = if self.accepted { "accepted" } else { "rejected" };
        match &self.by {
            Some((policy, Some(term))) => writeln!(f, "{verdict} by {policy}, term {term}"),
            Some((policy, None)) => writeln!(f, "{verdict} by {policy}"),
            None => writeln!(f, "{verdict}: no policy accepts it"),
        }
    }
}

/// Writes down what happens.
pub(crate) struct Trace {
    variables: &'static [Variable],
    steps: Vec<(usize, Step)>,
    depth: usize,
    /// Names of the policies under way, with the terms that they have come to.
    policies: Vec<(String, Option<String>)>,
    /// What the variable that is being changed had.
    before: Option<String>,
    by: Option<(String, Option<String>)>,
}

impl Trace {
    pub(crate) fn new(program: &Program) -> Self {
        Self {
            variables: program.variables,
            steps: Vec::new(),
            depth: 0,
            policies: Vec::new(),
            before: None,
            by: None,
        }
    }

    pub(crate) fn finish(self, accepted: bool) -> Explanation {
        Explanation { steps: self.steps, accepted, by: self.by }
    }

    fn push(&mut self, step: Step) {
        self.steps.push((self.depth, step));
    }

    /// A value as it is shown.
    fn shown(&self, source: Source, value: Option<Value<'_>>) -> Option<String> {
        let kind = match source.part {
            Some(_) => Kind::Number { most: u64::MAX },
            None => self.variables[source.variable].kind,
        };
        value.map(|value| value.shown(kind).to_string())
    }
}

impl Watch for Trace {
    fn enter(&mut self, code: &Code) {
        self.depth = self.policies.len();
        self.policies.push((code.name.clone(), None));
        self.push(Step::Policy(code.name.clone()));
    }

    fn at<'r>(
        &mut self,
        code: &Code,
        place: usize,
        holds: bool,
        value: impl Fn(Source) -> Option<Value<'r>>,
    ) {
        let whole = |variable| Source { variable, part: None };
        for note in code.notes_at(place) {
            match note {
                Note::Term(name) => {
                    if let Some(policy) = self.policies.last_mut() {
                        policy.1.clone_from(name);
                    }
                    self.push(Step::Term(name.clone()));
                }
                Note::Condition { text, source } => {
                    let value = source.and_then(|source| self.shown(source, value(source)));
                    self.push(Step::Condition { text: text.clone(), holds, value });
                }
                Note::Changing { variable } => {
                    self.before = self.shown(whole(*variable), value(whole(*variable)));
                }
                Note::Changed { text, variable } => {
                    let after = self.shown(whole(*variable), value(whole(*variable)));
                    let (text, before) = (text.clone(), self.before.take());
                    let variable = self.variables[*variable].name;
                    self.push(Step::Change { text, variable, before, after });
                }
            }
        }
    }

    fn leave(&mut self, verdict: Option<bool>) {
        self.push(Step::Verdict(verdict));
        let done = self.policies.pop();
        if self.policies.is_empty() && verdict.is_some() {
            self.by = done;
        }
        self.depth = self.policies.len().saturating_sub(1);
    }
}
