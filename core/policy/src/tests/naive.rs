//! Policies by walking through their trees: slow, and easily seen to be right.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::VARIABLES;
use crate::as_path::AsPath;
use crate::run::part_of;
use crate::tree::{Change, Condition, End, Operand, Policy, Source, Term, Test};
use crate::value::{Kind, Route, Value};

/// What variables have.
type Values = BTreeMap<usize, Option<Value<'static>>>;

/// Whether a route passes, and what it is like then.
pub(super) fn run(policies: &[Policy], chain: &[usize], mut values: Values) -> (bool, Values) {
    for policy in chain {
        if let Some(verdict) = ask(policies, &policies[*policy], &mut values) {
            return (verdict, values);
        }
    }
    (false, values)
}

pub(super) fn values(route: &dyn Route, count: usize) -> Values {
    (0..count).map(|variable| (variable, route.read(variable).map(own))).collect()
}

/// The value with everything in it its own.
pub(super) fn own(value: Value<'_>) -> Value<'static> {
    match value {
        Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
        Value::Communities(all) => Value::Communities(Cow::Owned(all.into_owned())),
        Value::AsPath(AsPath { prepended, hops }) => {
            Value::AsPath(AsPath { prepended, hops: Cow::Owned(hops.into_owned()) })
        }
        Value::Switch(one) => Value::Switch(one),
        Value::Number(one) => Value::Number(one),
        Value::Word(one) => Value::Word(one),
        Value::Address(one) => Value::Address(one),
        Value::Prefix(one) => Value::Prefix(one),
    }
}

fn ask(policies: &[Policy], policy: &Policy, values: &mut Values) -> Option<bool> {
    for Term { conditions, actions, end, .. } in &policy.terms {
        if !conditions.iter().all(|condition| holds(policies, condition, values)) {
            continue;
        }
        for action in actions {
            change(&action.change, action.variable, values);
        }
        match end {
            End::Accept => return Some(true),
            End::Reject => return Some(false),
            End::NextPolicy => return None,
            End::NextTerm => {}
        }
    }
    None
}

fn get(values: &Values, source: Source) -> Option<Value<'static>> {
    let whole = values[&source.variable].clone()?;
    match source.part {
        None => Some(whole),
        Some(part) => part_of(part, &whole).map(Value::Number),
    }
}

fn operand(values: &Values, operand: &Operand) -> Option<Value<'static>> {
    match operand {
        Operand::Constant(value) => Some(value.clone()),
        Operand::Source(source) => get(values, *source),
    }
}

fn holds(policies: &[Policy], condition: &Condition, values: &Values) -> bool {
    match condition {
        Condition::All(all) => all.iter().all(|one| holds(policies, one, values)),
        Condition::Any(all) => all.iter().any(|one| holds(policies, one, values)),
        Condition::Not(one) => !holds(policies, one, values),
        Condition::Policy { policy, .. } => {
            ask(policies, &policies[*policy], &mut values.clone()) == Some(true)
        }
        Condition::Test { source, test, is_not, .. } => {
            let value = get(values, *source);
            value.is_some_and(|value| fits(test, &value, values)) != *is_not
        }
    }
}

fn fits(test: &Test, value: &Value<'_>, values: &Values) -> bool {
    let in_ranges = |set: &crate::number::NumberSet, number: u64| {
        set.entries.iter().any(|range| (range.least..=range.greatest).contains(&number))
    };
    match (test, value) {
        (Test::Present, _) => true,
        (Test::Switch(wanted), Value::Switch(one)) => wanted == one,
        (Test::Numbers(set), Value::Number(one)) => in_ranges(set, *one),
        (Test::Words(all), Value::Word(one)) => all.contains(one),
        (Test::Texts(all), Value::Text(one)) => all.iter().any(|text| text == one),
        (Test::Addresses(all), Value::Address(one)) => all.contains(one),
        (Test::Within(set), Value::Address(one)) => {
            set.entries.iter().any(|entry| entry.prefix.contains(one))
        }
        (Test::Prefixes(set), Value::Prefix(one)) => {
            set.entries.iter().any(|entry| entry.matches(one))
        }
        (Test::Paths(all), Value::AsPath(path)) => all.iter().any(|one| one.matches(path)),
        (Test::Through(set), Value::AsPath(path)) => {
            path.numbers().any(|number| in_ranges(set, number.into()))
        }
        (Test::Has(set), Value::Communities(all)) => {
            all.iter().any(|one| set.entries.iter().any(|entry| entry.matches(*one)))
        }
        (Test::HasAll(set), Value::Communities(all)) => {
            set.entries.iter().all(|entry| all.iter().any(|one| entry.matches(*one)))
        }
        (Test::Compare(order, other), value) => match (value, operand(values, other)) {
            (Value::Number(one), Some(Value::Number(other))) => order.holds(one, &other),
            (one, Some(other)) => *one == other,
            (_, None) => false,
        },
        _ => panic!("{test:?} is not for {value:?}"),
    }
}

fn change(change: &Change, variable: usize, values: &mut Values) {
    let own = values[&variable].clone();
    let communities = match &own {
        Some(Value::Communities(all)) => all.to_vec(),
        _ => Vec::new(),
    };
    let number = match own {
        Some(Value::Number(number)) => number,
        _ => 0,
    };
    let path = match own {
        Some(Value::AsPath(path)) => Some(path),
        _ => None,
    };
    let prepend = |number: Option<u64>, times: usize| {
        let mut path = path.clone()?;
        let number = number.and_then(|one| u32::try_from(one).ok());
        if let Some(number) = number.filter(|one| *one > 0 && *one < u32::MAX) {
            (0..times).for_each(|_| path.prepended.insert(0, number));
        }
        Some(Value::AsPath(path))
    };
    let new = match change {
        Change::Remove => {
            values.insert(variable, None);
            return;
        }
        Change::Set(other) => match (operand(values, other), VARIABLES[variable].kind) {
            (Some(Value::Number(number)), Kind::Number { most }) => {
                Some(Value::Number(number.min(most)))
            }
            (value, _) => value,
        },
        Change::Calculate(operator, other, most) => match operand(values, other) {
            Some(Value::Number(other)) => Some(Value::Number(operator.apply(number, other, *most))),
            _ => None,
        },
        Change::Prepend(other, times) => match operand(values, other) {
            Some(Value::Number(other)) => prepend(Some(other), *times),
            _ => None,
        },
        Change::Expand(times) => {
            prepend(path.as_ref().and_then(|path| path.first()).map(u64::from), *times)
        }
        Change::Add(more) => {
            let mut all = communities;
            for one in more {
                if !all.contains(one) {
                    all.push(*one);
                }
            }
            Some(Value::Communities(Cow::Owned(all)))
        }
        Change::Strip(set) => Some(Value::Communities(Cow::Owned(
            communities
                .into_iter()
                .filter(|one| !set.entries.iter().any(|entry| entry.matches(*one)))
                .collect(),
        ))),
    };
    if let Some(new) = new {
        values.insert(variable, Some(new));
    }
}
