//! Changing a running node from one configuration to another.
//!
//! Reference: Machado et al., "Linux XIA", §4.1: principals come and go while packets flow. What both
//! configurations say is left alone, so that a commit that changes one route changes one route.

use std::collections::BTreeSet;
use std::fmt;

use weft_base::Instant;
use weft_config::{Block, Document, Errors, Statement, Word};
use weft_runtime::{Action, Level, SCHEDULING, read_scheduling};

use super::config::{WHOLE, read_whole};
use super::{Node, engine, report};
use crate::words::WordError;

/// What an `xia` block says, as far as a running node can be told it: the statements in their order.
///
/// Whether they make sense is for [`read_node`](super::config::read_node) to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    interfaces: Vec<String>,
    parts: Vec<PartPlan>,
    /// Which engines forward, in its word; `None` if nothing is said of it.
    engine: Option<String>,
    /// How the processors are shared.
    scheduling: Vec<Statement>,
    /// What holds for all of the node.
    whole: Vec<Statement>,
    /// Statements that a running node knows nothing of. There are none; one that somebody adds and forgets here is refused
    /// by commits, not left out.
    fixed: Vec<Statement>,
}

/// What is said of a principal or a protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PartPlan {
    name: String,
    is_protocol: bool,
    statements: Vec<Vec<Word>>,
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
    AddProtocol(String),
    RemoveProtocol(String),
    Engine { from: Option<String>, to: Option<String> },
    Scheduling { from: Vec<Statement>, to: Vec<Statement> },
    Whole { from: Vec<Statement>, to: Vec<Statement> },
    Set { part: String, words: Vec<String> },
    Delete { part: String, words: Vec<String> },
}

impl Step {
    /// The step that takes this one back.
    fn back(&self) -> Self {
        match self.clone() {
            Self::AddInterface(name) => Self::RemoveInterface(name),
            Self::RemoveInterface(name) => Self::AddInterface(name),
            Self::AddPrincipal(name) => Self::RemovePrincipal(name),
            Self::RemovePrincipal(name) => Self::AddPrincipal(name),
            Self::AddProtocol(name) => Self::RemoveProtocol(name),
            Self::RemoveProtocol(name) => Self::AddProtocol(name),
            Self::Engine { from, to } => Self::Engine { from: to, to: from },
            Self::Scheduling { from, to } => Self::Scheduling { from: to, to: from },
            Self::Whole { from, to } => Self::Whole { from: to, to: from },
            Self::Set { part, words } => Self::Delete { part, words },
            Self::Delete { part, words } => Self::Set { part, words },
        }
    }
}

impl fmt::Display for Step {
    /// As a command says it, where there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddInterface(name) => write!(f, "interface add {name}"),
            Self::RemoveInterface(name) => write!(f, "interface remove {name}"),
            Self::AddPrincipal(name) => write!(f, "principal add {name}"),
            Self::RemovePrincipal(name) => write!(f, "principal remove {name}"),
            Self::AddProtocol(name) => write!(f, "protocol add {name}"),
            Self::RemoveProtocol(name) => write!(f, "protocol remove {name}"),
            Self::Engine { .. } => f.write_str("engine"),
            Self::Scheduling { .. } => f.write_str("scheduling"),
            Self::Whole { .. } => f.write_str("limits, echo, address and packet-io"),
            Self::Set { part, words } => write!(f, "set {part} {}", words.join(" ")),
            Self::Delete { part, words } => write!(f, "delete {part} {}", words.join(" ")),
        }
    }
}

/// Who has taken a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Now,
    /// Somebody did it before by a command.
    Before,
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
                    plan.parts.push(PartPlan::of(words.swap_remove(1), false, statement));
                }
                word if SCHEDULING.contains(&word) => {
                    plan.scheduling.push(statement.clone());
                }
                word if WHOLE.contains(&word) => plan.whole.push(statement.clone()),
                "engine" if words.len() == 2 => plan.engine = words.pop(),
                // Nothing else has a block and no name.
                protocol if words.len() == 1 && statement.block().is_some() => {
                    plan.parts.push(PartPlan::of(protocol.to_owned(), true, statement));
                }
                _ => plan.fixed.push(statement.clone()),
            }
        }
        plan
    }

    fn part(&self, name: &str) -> Option<&PartPlan> {
        self.parts.iter().find(|part| part.name == name)
    }

    fn statements(&self, part: &str) -> &[Vec<Word>] {
        self.part(part).map_or(&[], |part| &part.statements)
    }

    /// The steps that lead to `new`: first what goes, then what comes.
    fn steps_to(&self, new: &Self) -> Vec<Step> {
        let mut steps = Vec::new();
        for name in self.interfaces.iter().filter(|name| !new.interfaces.contains(name)) {
            steps.push(Step::RemoveInterface(name.clone()));
        }
        for part in &self.parts {
            let gone = missing(&part.statements, new.statements(&part.name));
            steps.extend(
                gone.into_iter()
                    .rev()
                    .map(|words| Step::Delete { part: part.name.clone(), words: texts(words) }),
            );
            if new.part(&part.name).is_none() {
                steps.push(part.add().back());
            }
        }
        steps.extend(
            new.parts.iter().filter(|part| self.part(&part.name).is_none()).map(PartPlan::add),
        );
        for part in &new.parts {
            let come = missing(&part.statements, self.statements(&part.name));
            steps.extend(
                come.into_iter()
                    .map(|words| Step::Set { part: part.name.clone(), words: texts(words) }),
            );
        }
        for name in new.interfaces.iter().filter(|name| !self.interfaces.contains(name)) {
            steps.push(Step::AddInterface(name.clone()));
        }
        if self.engine != new.engine {
            steps.push(Step::Engine { from: self.engine.clone(), to: new.engine.clone() });
        }
        if self.scheduling != new.scheduling {
            let (from, to) = (self.scheduling.clone(), new.scheduling.clone());
            steps.push(Step::Scheduling { from, to });
        }
        if self.whole != new.whole {
            let (from, to) = (self.whole.clone(), new.whole.clone());
            steps.push(Step::Whole { from, to });
        }
        steps
    }
}

impl PartPlan {
    fn of(name: String, is_protocol: bool, statement: &Statement) -> Self {
        let inner = statement.block().unwrap_or_default().iter();
        let statements = inner.map(|statement| statement.words().to_vec()).collect();
        Self { name, is_protocol, statements }
    }

    /// The step that adds it, without its statements.
    fn add(&self) -> Step {
        let name = self.name.clone();
        if self.is_protocol { Step::AddProtocol(name) } else { Step::AddPrincipal(name) }
    }
}

impl Node {
    /// Goes from one plan to another. Either everything is done, or nothing has changed. What commands have
    /// done before is not done again: it is told the operator, and is not taken back with the rest.
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
        let (mut done, mut before) = (Vec::new(), Vec::new());
        for step in old.steps_to(new) {
            match self.take_step(now, &step, out) {
                Ok(Taken::Now) => done.push(step),
                Ok(Taken::Before) => before.push(step),
                Err(error) => {
                    for step in done.iter().rev() {
                        // What was there before can be there again.
                        let _ = self.take_step(now, &step.back(), out);
                    }
                    return Err(error);
                }
            }
        }
        report_done_before(&before, out);
        self.tick(now, out);
        self.tell_engine(out);
        Ok(())
    }

    fn take_step(
        &mut self,
        now: Instant,
        step: &Step,
        out: &mut Vec<Action>,
    ) -> Result<Taken, String> {
        if self.is_taken(step) {
            return Ok(Taken::Before);
        }
        match step {
            Step::Set { part, words } => {
                self.step(now, part, words, false, out).map_err(in_part(part, words))?;
            }
            Step::Delete { part, words } => match self.step(now, part, words, true, out) {
                Err(error) if error.is_absent => return Ok(Taken::Before),
                deleted => deleted.map_err(in_part(part, words))?,
            },
            step => self.take_other_step(now, step, out)?,
        }
        Ok(Taken::Now)
    }

    /// Whether what a step would add is there, or what it would take away is not.
    fn is_taken(&self, step: &Step) -> bool {
        let has_interface = |name: &String| self.interfaces().any(|own| own == name);
        let has_principal = |name: &String| self.principal_instance(name).is_some();
        match step {
            Step::AddInterface(name) => has_interface(name),
            Step::RemoveInterface(name) => !has_interface(name),
            Step::AddPrincipal(name) => has_principal(name),
            Step::RemovePrincipal(name) => !has_principal(name),
            Step::AddProtocol(name) => self.protocols.has(name),
            Step::RemoveProtocol(name) => !self.protocols.has(name),
            Step::Delete { part, .. } => !has_principal(part) && !self.protocols.has(part),
            Step::Set { .. }
            | Step::Engine { .. }
            | Step::Scheduling { .. }
            | Step::Whole { .. } => false,
        }
    }

    /// Takes a step that is no statement of a part.
    fn take_other_step(
        &mut self,
        now: Instant,
        step: &Step,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        match step {
            Step::AddInterface(name) => self.add_interface(name),
            Step::RemoveInterface(name) => self.remove_interface(now, name, out),
            Step::AddPrincipal(name) => self.add_principal(now, name, out).map(drop),
            Step::RemovePrincipal(name) => self.remove_principal(now, name, out),
            Step::AddProtocol(name) => self.add_protocol(now, name, out),
            Step::RemoveProtocol(name) => self.remove_protocol(now, name, out),
            Step::Engine { to, .. } => {
                let mode = to.as_deref().map_or(Ok(None), engine::mode)?;
                self.set_engine(mode, out);
                Ok(())
            }
            Step::Scheduling { to, .. } => {
                let wanted = read_statements(to, read_scheduling)?;
                self.set_scheduling(wanted, out);
                Ok(())
            }
            Step::Whole { to, .. } => {
                let whole = read_statements(to, |block| read_whole(block, &self.unsaid))?;
                self.set_whole(now, whole, out);
                Ok(())
            }
            Step::Set { .. } | Step::Delete { .. } => Ok(()),
        }
    }

    fn step(
        &mut self,
        now: Instant,
        part: &str,
        words: &[String],
        delete: bool,
        out: &mut Vec<Action>,
    ) -> Result<(), WordError> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.change_principal(now, part, &words, delete, out)
    }
}

/// Reads these statements alone.
fn read_statements<T>(
    statements: &[Statement],
    read: impl FnOnce(&mut Block<'_>) -> Result<T, Errors>,
) -> Result<T, String> {
    let text: String = statements.iter().map(ToString::to_string).collect();
    let document = Document::parse("commit", &text).map_err(|error| error.to_string())?;
    document.block().read(read).map_err(|error| error.to_string())
}

/// What is wrong with a statement of a part.
fn in_part(part: &str, words: &[String]) -> impl Fn(WordError) -> String {
    move |error| format!("{part} {}: {error}", words.join(" "))
}

/// Tells the operator in one line what commands have done before; there may be very much of it.
fn report_done_before(steps: &[Step], out: &mut Vec<Action>) {
    let Some((first, others)) = steps.split_first() else { return };
    let more = match others.len() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    report(out, Level::Warning, format!("`{first}`{more}: done before by a command"));
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
    use super::*;
    use crate::node::sockets::ECHO;
    use crate::node::testing::{self, Domains, NOW, Silent, Sinks};
    use crate::node::{ECHO_SINK, Registry};
    use crate::principal::Answer;
    use crate::{Xid, XidType};

    fn plan(text: &str) -> Plan {
        Plan::of(Document::parse("t", text).unwrap().statements())
    }

    #[test]
    fn only_what_differs_is_done_and_what_goes_goes_first() {
        let old = plan(
            "engine auto; priority nice 1; interface a b; principal hid { x 1; x 2; } principal zf; forgotten 1;",
        );
        let new = plan(
            "interface b c; principal hid { x 2; x 3; } principal ad { y; } ls { z; } forgotten 1; echo off;",
        );
        let words = |word: &str| vec!["x".to_owned(), word.to_owned()];
        let part = || "hid".to_owned();
        assert_eq!(
            old.steps_to(&new),
            [
                Step::RemoveInterface("a".to_owned()),
                Step::Delete { part: part(), words: words("1") },
                Step::RemovePrincipal("zf".to_owned()),
                Step::AddPrincipal("ad".to_owned()),
                Step::AddProtocol("ls".to_owned()),
                Step::Set { part: part(), words: words("3") },
                Step::Set { part: "ad".to_owned(), words: vec!["y".to_owned()] },
                Step::Set { part: "ls".to_owned(), words: vec!["z".to_owned()] },
                Step::AddInterface("c".to_owned()),
                Step::Engine { from: Some("auto".to_owned()), to: None },
                Step::Scheduling { from: old.scheduling.clone(), to: Vec::new() },
                Step::Whole { from: Vec::new(), to: new.whole.clone() },
            ]
        );
        assert_eq!(old.steps_to(&old), []);
        assert!(old.fixed == new.fixed && old.fixed.len() == 1);
    }

    /// A node with the plan `text`.
    fn node(text: &str) -> (Node, Plan) {
        let registry = Registry::new()
            .with("ad", |_| Box::new(Domains::new()))
            .with_protocol("ls", |_, _| Box::new(Silent));
        let (mut node, plan) = (testing::node(registry), plan(text));
        node.change_plan(NOW, &Plan::default(), &plan, &mut Vec::new()).unwrap();
        (node, plan)
    }

    /// Changes a running node by hand, and then its plan; what is said of that.
    fn change_by_hand(old: &str, command: &str, new: &str) -> Result<Vec<String>, String> {
        let (mut node, old) = node(old);
        node.operate(NOW, command, &mut Vec::new()).unwrap();
        let mut out = Vec::new();
        node.change_plan(NOW, &old, &plan(new), &mut out)?;
        let warnings = out.into_iter().filter_map(|action| match action {
            Action::Report { level: Level::Warning, line } => Some(line),
            _ => None,
        });
        Ok(warnings.collect())
    }

    #[test]
    fn what_is_done_already_is_said_and_fails_nothing() {
        let route = format!(
            "route {} via {}",
            Xid::new(XidType::AD, [1; 20]),
            Xid::new(XidType::HID, [2; 20])
        );
        let with_route = format!("principal ad {{ {route}; }}");
        let delete = format!("delete ad {route}");
        let delete = delete.as_str();
        for (old, command, new, said) in [
            (with_route.as_str(), delete, "principal ad;", delete),
            (&with_route, delete, "", delete),
            (&with_route, "principal remove ad", "", "and 1 more"),
            ("interface a b;", "interface remove a", "interface b;", "interface remove a"),
            ("ls { x; }", "protocol remove ls", "", "and 1 more"),
            ("", "interface add a", "interface a;", "interface add a"),
            ("", "principal add ad", &with_route, "principal add ad"),
            ("", "protocol add ls", "ls { }", "protocol add ls"),
        ] {
            let [warning] = &change_by_hand(old, command, new).unwrap()[..] else {
                panic!("{command} is not said once")
            };
            assert!(warning.contains(said), "{warning}");
        }
        assert!(change_by_hand("", "interface add a", "interface b;").unwrap().is_empty());
    }

    #[test]
    fn limits_echo_and_address_change_and_change_back() {
        let (mut node, old) = node("interface a; ls { x; }");
        let unsaid = node.settings.whole();
        let host = Xid::new(XidType::HID, [2; 20]);
        let said = format!(
            "cache 1MiB; slow-path 10; errors 5; redirects 3; copies 7; echo off; address {host};"
        );
        let new = plan(&format!("interface a; ls {{ x; }} {said}"));
        node.change_plan(NOW, &old, &new, &mut Vec::new()).unwrap();
        let whole = node.settings.whole();
        assert_eq!((whole.limits.redirects, whole.limits.copies, whole.echo), (3, 7, false));
        assert_eq!(whole.limits.slow_path.map(|limit| limit.per_second), Some(10));
        assert_eq!(whole.scope.path, Some(vec![host]));
        assert_eq!(node.forwarder.cache_size().limit, 1 << 20);
        // `ls { x; }` cannot be deleted, and so nothing of this is done.
        let refused = plan("interface a; ls { } cache 2MiB;");
        node.change_plan(NOW, &new, &refused, &mut Vec::new()).unwrap_err();
        assert_eq!(node.settings.whole(), whole);
        node.change_plan(NOW, &new, &old, &mut Vec::new()).unwrap();
        assert_eq!(node.settings.whole().limits.redirects, unsaid.limits.redirects);
        assert_eq!(node.forwarder.cache_size().limit, unsaid.limits.cache);
        assert_eq!(node.settings.whole().scope, unsaid.scope);
    }

    #[test]
    fn an_echo_that_is_switched_off_answers_no_more() {
        let registry = Registry::new().with("xdp", |_| Box::new(Sinks::default()));
        let mut node = testing::node(registry);
        let (on, off) = (plan("principal xdp; echo on;"), plan("principal xdp; echo off;"));
        node.change_plan(NOW, &Plan::default(), &on, &mut Vec::new()).unwrap();
        let bound = |node: &Node| {
            let xdp = node.forwarder.principal(XidType::XDP).unwrap();
            xdp.lookup(&ECHO_SINK, &mut Vec::new())
        };
        assert_eq!(bound(&node), Answer::Deliver(ECHO));
        node.change_plan(NOW, &on, &off, &mut Vec::new()).unwrap();
        assert_eq!(bound(&node), Answer::Unknown);
        node.change_plan(NOW, &off, &on, &mut Vec::new()).unwrap();
        assert_eq!(bound(&node), Answer::Deliver(ECHO));
    }

    #[test]
    fn what_a_running_node_knows_nothing_of_is_refused() {
        let mut node = testing::node(Registry::new());
        let (old, new) = (plan("forgotten 1;"), plan("forgotten 2;"));
        let error = node.change_plan(NOW, &old, &new, &mut Vec::new());
        assert!(error.unwrap_err().contains("`forgotten 1;` cannot change"));
    }

    #[test]
    fn what_was_done_by_hand_is_not_taken_back_with_a_change_that_fails() {
        let (mut node, old) = node("interface a; ls { x; }");
        node.operate(NOW, "interface remove a", &mut Vec::new()).unwrap();
        let changed = node.change_plan(NOW, &old, &plan("ls { }"), &mut Vec::new());
        assert_eq!(changed, Err("ls x: that cannot be".to_owned()));
        assert_eq!(node.interfaces().count(), 0);
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
