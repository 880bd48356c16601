//! A program runs on a route.

use std::borrow::Cow;

use crate::program::{Code, Note, Op, Program};
use crate::trace::{Explanation, Trace};
use crate::tree::{End, Order, Part, Source, Test};
use crate::value::{Route, Value};

/// What becomes of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome<'r> {
    /// Whether it passes. What no policy accepts does not.
    pub accepted: bool,
    /// What was set, by variable, in order, even if to what it was before; none of what was removed.
    pub changes: Vec<(usize, Option<Value<'r>>)>,
}

impl Program {
    /// Asks the policies, one after the other, until one accepts or rejects the route.
    pub fn run<'r>(&self, route: &'r dyn Route) -> Outcome<'r> {
        self.watched(route, &mut ())
    }

    /// The same, with what happened on the way.
    pub fn explain<'r>(&self, route: &'r dyn Route) -> (Outcome<'r>, Explanation) {
        let mut trace = Trace::new(self);
        let outcome = self.watched(route, &mut trace);
        let explanation = trace.finish(outcome.accepted);
        (outcome, explanation)
    }

    fn watched<'r, W: Watch>(&self, route: &'r dyn Route, watch: &mut W) -> Outcome<'r> {
        let mut machine = Machine { program: self, route, values: Vec::new(), watch };
        let mut accepted = None;
        for code in &self.chain {
            accepted = machine.policy(&self.codes[*code]);
            if accepted.is_some() {
                break;
            }
        }
        let mut changes = machine.values;
        changes.sort_by_key(|(variable, _)| *variable);
        Outcome { accepted: accepted.unwrap_or(false), changes }
    }
}

/// Who watches a run.
pub(crate) trait Watch {
    /// A policy is asked.
    fn enter(&mut self, code: &Code);
    /// The machine has come to a place. `value` is what variables have; `holds` what was decided last.
    fn at<'r>(
        &mut self,
        code: &Code,
        place: usize,
        holds: bool,
        value: impl Fn(Source) -> Option<Value<'r>>,
    );
    /// A policy has accepted or rejected the route, or neither.
    fn leave(&mut self, verdict: Option<bool>);
}

/// Nobody does.
impl Watch for () {
    fn enter(&mut self, _: &Code) {}
    fn at<'r>(&mut self, _: &Code, _: usize, _: bool, _: impl Fn(Source) -> Option<Value<'r>>) {}
    fn leave(&mut self, _: Option<bool>) {}
}

struct Machine<'p, 'r, W> {
    program: &'p Program,
    route: &'r dyn Route,
    /// What variables have now that were changed.
    values: Vec<(usize, Option<Value<'r>>)>,
    watch: &'p mut W,
}

/// What is on the stack: a value, that there is none, or whether something holds (as a switch).
type Stack<'r> = Vec<Option<Value<'r>>>;

impl<'r, W: Watch> Machine<'_, 'r, W> {
    /// Runs a policy; none if it neither accepts nor rejects the route.
    fn policy(&mut self, code: &Code) -> Option<bool> {
        self.watch.enter(code);
        let verdict = match self.run(code) {
            End::Accept => Some(true),
            End::Reject => Some(false),
            End::NextPolicy | End::NextTerm => None,
        };
        self.watch.leave(verdict);
        verdict
    }

    fn run(&mut self, code: &Code) -> End {
        let mut stack: Stack<'r> = Vec::new();
        let mut place = 0;
        loop {
            self.look(code, place, &stack);
            let Some(op) = code.ops.get(place) else { return End::NextPolicy };
            place += 1;
            match op {
                Op::Call(callee) => {
                    // What it changes stays with it.
                    let callee = &self.program.codes[*callee];
                    let before = callee.changes.then(|| self.values.clone());
                    let accepts = self.policy(callee) == Some(true);
                    self.values = before.unwrap_or_else(|| std::mem::take(&mut self.values));
                    stack.push(Some(Value::Switch(accepts)));
                }
                Op::SkipIf(wanted, target) => match holds(&stack) == *wanted {
                    true => place = *target,
                    false => drop(stack.pop()),
                },
                Op::Unless(target) => {
                    if !holds(&stack) {
                        place = *target;
                    }
                    stack.pop();
                }
                Op::Store(variable) => {
                    if let Some(Some(value)) = stack.pop() {
                        let kind = self.program.variables[*variable].kind;
                        self.set(*variable, Some(value.within(kind)));
                    }
                }
                Op::Remove(variable) => self.set(*variable, None),
                Op::End(end) => return *end,
                Op::Load(source) => stack.push(self.value(*source)),
                op => calculate(op, &mut stack),
            }
        }
    }

    fn look(&mut self, code: &Code, place: usize, stack: &Stack<'r>) {
        let Self { route, values, watch, .. } = self;
        watch.at(code, place, holds(stack), |source| value(*route, values, source));
    }

    fn value(&self, source: Source) -> Option<Value<'r>> {
        value(self.route, &self.values, source)
    }

    fn set(&mut self, variable: usize, value: Option<Value<'r>>) {
        match self.values.iter_mut().find(|(one, _)| *one == variable) {
            Some(known) => known.1 = value,
            None => self.values.push((variable, value)),
        }
    }
}

/// Whether what was decided last holds.
fn holds(stack: &Stack<'_>) -> bool {
    matches!(stack.last(), Some(Some(Value::Switch(true))))
}

/// What a variable has now, or a part of it.
fn value<'r>(
    route: &'r dyn Route,
    values: &[(usize, Option<Value<'r>>)],
    source: Source,
) -> Option<Value<'r>> {
    let whole = match values.iter().find(|(variable, _)| *variable == source.variable) {
        Some((_, value)) => value.clone(),
        None => route.read(source.variable),
    };
    match source.part {
        None => whole,
        Some(part) => part_of(part, &whole?).map(Value::Number),
    }
}

/// A number that is made of a value.
pub(crate) fn part_of(part: Part, value: &Value<'_>) -> Option<u64> {
    match (part, value) {
        (Part::Length, Value::Prefix(prefix)) => Some(prefix.prefix_len().into()),
        (Part::Length, Value::AsPath(path)) => Some(path.length() as u64),
        (Part::First, Value::AsPath(path)) => path.first().map(u64::from),
        (Part::Origin, Value::AsPath(path)) => path.origin().map(u64::from),
        (Part::Count, Value::Communities(all)) => Some(all.len() as u64),
        _ => None,
    }
}

/// Instructions that need only the stack.
fn calculate(op: &Op, stack: &mut Stack<'_>) {
    let upper = match op {
        Op::Push(value) => {
            stack.push(Some(value.clone()));
            return;
        }
        _ => stack.pop().flatten(),
    };
    let result = match op {
        Op::Test(test) => Some(Value::Switch(upper.is_some_and(|value| test_holds(test, &value)))),
        Op::Not => Some(Value::Switch(upper != Some(Value::Switch(true)))),
        Op::Compare(order) => {
            let lower = stack.pop().flatten();
            let holds =
                lower.zip(upper).is_some_and(|(lower, upper)| compare(*order, &lower, &upper));
            Some(Value::Switch(holds))
        }
        Op::Calculate(operator, most) => {
            let lower = stack.pop().flatten().or(Some(Value::Number(0)));
            match (lower, upper) {
                (Some(Value::Number(left)), Some(Value::Number(right))) => {
                    Some(Value::Number(operator.apply(left, right, *most)))
                }
                _ => None,
            }
        }
        Op::Prepend(times) => match (stack.pop().flatten(), upper) {
            (Some(Value::AsPath(mut path)), Some(Value::Number(number))) => {
                // A number that is none of a system, which only a variable may have, is not put there.
                let number = u32::try_from(number).ok().filter(|one| (1..u32::MAX).contains(one));
                if let Some(number) = number {
                    path.prepend(number, *times);
                }
                Some(Value::AsPath(path))
            }
            _ => None,
        },
        Op::Expand(times) => match upper {
            Some(Value::AsPath(mut path)) => {
                if let Some(first) = path.first() {
                    path.prepend(first, *times);
                }
                Some(Value::AsPath(path))
            }
            _ => None,
        },
        Op::Add(more) => {
            let mut all = communities(upper);
            for one in more {
                if !all.contains(one) {
                    all.push(*one);
                }
            }
            Some(Value::Communities(Cow::Owned(all)))
        }
        Op::Strip(set) => {
            let mut all = communities(upper);
            all.retain(|one| !set.contains(*one));
            Some(Value::Communities(Cow::Owned(all)))
        }
        // The others are carried out where values are.
        _ => None,
    };
    stack.push(result);
}

fn communities(value: Option<Value<'_>>) -> Vec<u128> {
    match value {
        Some(Value::Communities(all)) => all.into_owned(),
        _ => Vec::new(),
    }
}

fn compare(order: Order, left: &Value<'_>, right: &Value<'_>) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => order.holds(left, right),
        (left, right) => order == Order::Equal && left == right,
    }
}

/// Whether something holds of a value.
fn test_holds(test: &Test, value: &Value<'_>) -> bool {
    match (test, value) {
        (Test::Present, _) => true,
        (Test::Switch(wanted), Value::Switch(value)) => wanted == value,
        (Test::Numbers(set), Value::Number(number)) => set.contains(*number),
        (Test::Words(all), Value::Word(word)) => all.contains(word),
        (Test::Texts(all), Value::Text(text)) => all.iter().any(|one| one == text),
        (Test::Addresses(all), Value::Address(address)) => all.contains(address),
        (Test::Within(set), Value::Address(address)) => set.covers(*address),
        (Test::Prefixes(set), Value::Prefix(prefix)) => set.contains(prefix),
        (Test::Paths(all), Value::AsPath(path)) => all.iter().any(|one| one.matches(path)),
        (Test::Through(set), Value::AsPath(path)) => {
            path.numbers().any(|number| set.contains(number.into()))
        }
        (Test::Has(set), Value::Communities(all)) => all.iter().any(|one| set.contains(*one)),
        (Test::HasAll(set), Value::Communities(all)) => {
            set.entries.iter().all(|pattern| all.iter().any(|one| pattern.matches(*one)))
        }
        _ => false,
    }
}

impl Code {
    /// What is noted at a place.
    pub(crate) fn notes_at(&self, place: usize) -> impl Iterator<Item = &Note> {
        let from = self.notes.partition_point(|(at, _)| *at < place);
        self.notes[from..].iter().take_while(move |(at, _)| *at == place).map(|(_, note)| note)
    }
}
