//! Changing a running node from one configuration to another.
//!
//! Reference: Machado et al., "Linux XIA", §4.1: principals come and go while packets flow. What both
//! configurations say is left alone, so that a commit that changes one route changes one route.

use std::collections::BTreeSet;

use weft_base::Instant;
use weft_config::{Statement, Word};
use weft_runtime::Action;

use super::Node;

/// What an `xia` block says, as far as a running node can be told it: the statements in their order.
///
/// Whether they make sense is for [`read_node`](super::config::read_node) to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    interfaces: Vec<String>,
    principals: Vec<(String, Vec<Vec<Word>>)>,
    /// Statements that only a new node takes: all others.
    fixed: Vec<Statement>,
}

/// So many statements are looked for one by one.
const FEW: usize = 8;

/// One step from one plan to another.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    AddInterface(String),
    RemoveInterface(String),
    AddPrincipal(String),
    RemovePrincipal(String),
    Set { principal: String, words: Vec<String> },
    Delete { principal: String, words: Vec<String> },
}

impl Step {
    /// The step that takes this one back.
    fn back(&self) -> Self {
        match self.clone() {
            Self::AddInterface(name) => Self::RemoveInterface(name),
            Self::RemoveInterface(name) => Self::AddInterface(name),
            Self::AddPrincipal(name) => Self::RemovePrincipal(name),
            Self::RemovePrincipal(name) => Self::AddPrincipal(name),
            Self::Set { principal, words } => Self::Delete { principal, words },
            Self::Delete { principal, words } => Self::Set { principal, words },
        }
    }
}

impl Plan {
    /// The plan of a block's statements.
    #[must_use]
    pub fn of(block: &[Statement]) -> Self {
        let mut plan = Self::default();
        for statement in block {
            let mut words = texts(statement.words());
            match statement.keyword() {
                "interface" => plan.interfaces.extend(words.drain(1..)),
                "principal" if words.len() == 2 => {
                    let inner = statement.block().unwrap_or_default().iter();
                    let inner = inner.map(|statement| statement.words().to_vec()).collect();
                    plan.principals.push((words.swap_remove(1), inner));
                }
                _ => plan.fixed.push(statement.clone()),
            }
        }
        plan
    }

    fn statements(&self, principal: &str) -> &[Vec<Word>] {
        let found = self.principals.iter().find(|(name, _)| name == principal);
        found.map_or(&[], |(_, statements)| statements)
    }

    fn has_principal(&self, name: &str) -> bool {
        self.principals.iter().any(|(one, _)| one == name)
    }

    /// The steps that lead to `new`: first what goes, then what comes.
    fn steps_to(&self, new: &Self) -> Vec<Step> {
        let mut steps = Vec::new();
        for name in self.interfaces.iter().filter(|name| !new.interfaces.contains(name)) {
            steps.push(Step::RemoveInterface(name.clone()));
        }
        for (name, statements) in &self.principals {
            let gone = missing(statements, new.statements(name));
            steps.extend(
                gone.into_iter()
                    .rev()
                    .map(|words| Step::Delete { principal: name.clone(), words: texts(words) }),
            );
            if !new.has_principal(name) {
                steps.push(Step::RemovePrincipal(name.clone()));
            }
        }
        for (name, _) in new.principals.iter().filter(|(name, _)| !self.has_principal(name)) {
            steps.push(Step::AddPrincipal(name.clone()));
        }
        for (name, statements) in &new.principals {
            let come = missing(statements, self.statements(name));
            steps.extend(
                come.into_iter()
                    .map(|words| Step::Set { principal: name.clone(), words: texts(words) }),
            );
        }
        for name in new.interfaces.iter().filter(|name| !self.interfaces.contains(name)) {
            steps.push(Step::AddInterface(name.clone()));
        }
        steps
    }
}

impl Node {
    /// Goes from one plan to another. Either everything is done, or nothing has changed.
    ///
    /// # Errors
    /// A sentence that says what could not be done.
    pub fn change_plan(
        &mut self,
        now: Instant,
        old: &Plan,
        new: &Plan,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let fixed =
            |plan: &Plan| plan.fixed.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        if let Some(changed) = fixed(new).symmetric_difference(&fixed(old)).next() {
            return Err(format!(
                "the statement `{}` cannot change while the stack runs: commit a configuration without \
                 the stack, and then the new one",
                changed.trim()
            ));
        }
        let mut done: Vec<Step> = Vec::new();
        for step in old.steps_to(new) {
            if let Err(error) = self.take_step(now, &step, out) {
                for step in done.iter().rev() {
                    // What was there before can be there again.
                    let _ = self.take_step(now, &step.back(), out);
                }
                return Err(error);
            }
            done.push(step);
        }
        self.tick(now, out);
        Ok(())
    }

    fn take_step(
        &mut self,
        now: Instant,
        step: &Step,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        match step {
            Step::AddInterface(name) => self.add_interface(name),
            Step::RemoveInterface(name) => self.remove_interface(now, name, out),
            Step::AddPrincipal(name) => self.add_principal(now, name, out).map(drop),
            Step::RemovePrincipal(name) => self.remove_principal(name, out),
            Step::Set { principal, words } => self.step(now, principal, words, false, out),
            Step::Delete { principal, words } => self.step(now, principal, words, true, out),
        }
    }

    fn step(
        &mut self,
        now: Instant,
        principal: &str,
        words: &[String],
        delete: bool,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let change = self.change_principal(now, principal, &words, delete, out);
        change.map_err(|error| format!("{principal} {}: {error}", words.join(" ")))
    }
}

/// The statements of `from` that are not among `others`, in order. There may be very many, most of them
/// in both.
fn missing<'a, T: Ord>(from: &'a [Vec<T>], others: &[Vec<T>]) -> Vec<&'a Vec<T>> {
    let same = |(one, other): &(&Vec<T>, &Vec<T>)| one == other;
    let front = from.iter().zip(others).take_while(same).count();
    let (from, rest) = (&from[front..], &others[front..]);
    let back = from.iter().rev().zip(rest.iter().rev()).take_while(same).count();
    let from = &from[..from.len() - back];
    if from.len() <= FEW {
        return from.iter().filter(|words| !others.contains(words)).collect();
    }
    let others: BTreeSet<_> = others.iter().collect();
    from.iter().filter(|words| !others.contains(words)).collect()
}

fn texts(words: &[Word]) -> Vec<String> {
    words.iter().map(|word| word.text().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use weft_config::Document;

    use super::*;

    fn plan(text: &str) -> Plan {
        Plan::of(Document::parse("t", text).unwrap().statements())
    }

    #[test]
    fn only_what_differs_is_done_and_what_goes_goes_first() {
        let old = plan("interface a b; principal hid { x 1; x 2; } principal zf;");
        let new = plan("interface b c; principal hid { x 2; x 3; } principal ad { y; }");
        let words = |word: &str| vec!["x".to_owned(), word.to_owned()];
        let principal = || "hid".to_owned();
        assert_eq!(
            old.steps_to(&new),
            [
                Step::RemoveInterface("a".to_owned()),
                Step::Delete { principal: principal(), words: words("1") },
                Step::RemovePrincipal("zf".to_owned()),
                Step::AddPrincipal("ad".to_owned()),
                Step::Set { principal: principal(), words: words("3") },
                Step::Set { principal: "ad".to_owned(), words: vec!["y".to_owned()] },
                Step::AddInterface("c".to_owned()),
            ]
        );
        assert_eq!(old.steps_to(&old), []);
    }

    #[test]
    fn what_is_missing_is_found_wherever_it_stands() {
        let all = |numbers: &[u32]| numbers.iter().map(|n| vec![n.to_string()]).collect::<Vec<_>>();
        let found = |from: &[u32], others: &[u32]| {
            let (from, others) = (all(from), all(others));
            missing(&from, &others).into_iter().cloned().collect::<Vec<_>>()
        };
        assert_eq!(found(&[1, 2, 3], &[1, 3]), all(&[2]));
        assert_eq!(found(&[1, 2], &[2, 1]), all(&[]));
        assert_eq!(found(&[3, 2, 3], &[3]), all(&[2]), "one of two equal ones is enough");
        let many: Vec<u32> = (0..40).collect();
        let (even, odd): (Vec<u32>, Vec<u32>) =
            many.clone().into_iter().partition(|n| n.is_multiple_of(2));
        assert_eq!(found(&many, &even), all(&odd));
        let mut turned = many.clone();
        turned.reverse();
        assert_eq!(found(&many, &turned), all(&[]));
    }
}
