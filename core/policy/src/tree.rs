//! A policy whose words have got their meaning: what is asked, and what is done.

use std::net::IpAddr;
use std::sync::Arc;

use crate::as_path::AsPathPattern;
use crate::community::CommunitySet;
use crate::number::NumberSet;
use crate::prefixes::PrefixSet;
use crate::value::Value;

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) name: String,
    pub(crate) terms: Vec<Term>,
}

/// A term: if all of it holds, its actions are done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    /// None of what stands in the policy itself.
    pub(crate) name: Option<String>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) actions: Vec<Action>,
    /// What comes then; the next term if nothing is said.
    pub(crate) end: End,
}

/// What comes when a term is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Accept,
    Reject,
    NextTerm,
    NextPolicy,
}

/// What must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    /// Something of a value, as it is written.
    Test {
        text: String,
        source: Source,
        test: Test,
        /// Whether the opposite must hold.
        is_not: bool,
    },
    /// Another policy accepts the route as it is.
    Policy {
        text: String,
        policy: usize,
    },
}

/// A variable, or a number that is made of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) variable: usize,
    pub(crate) part: Option<Part>,
}

/// A number that is made of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Of a prefix or an AS path.
    Length,
    /// The neighbour of an AS path.
    First,
    /// Where an AS path begins.
    Origin,
    /// How many communities there are.
    Count,
}

/// What is asked of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    /// Whether there is one.
    Present,
    Switch(bool),
    Numbers(Arc<NumberSet>),
    Words(Vec<usize>),
    Texts(Vec<String>),
    Addresses(Vec<IpAddr>),
    /// An address lies in one of these.
    Within(Arc<PrefixSet>),
    Prefixes(Arc<PrefixSet>),
    Paths(Arc<Vec<AsPathPattern>>),
    /// An AS path goes through one of these.
    Through(Arc<NumberSet>),
    /// One of the communities is one of these.
    Has(Arc<CommunitySet>),
    /// For each of these there is one.
    HasAll(Arc<CommunitySet>),
    Compare(Order, Operand),
}

/// How values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Constant(Value<'static>),
    Source(Source),
}

/// A change, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) text: String,
    pub(crate) variable: usize,
    pub(crate) change: Change,
}

/// What becomes of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Set(Operand),
    Remove,
    /// A variable without value counts as 0.
    Calculate(Operator, Operand, u64),
    /// A number is put in front of an AS path, so often.
    Prepend(Operand, usize),
    /// The neighbour of an AS path is put in front of it, so often.
    Expand(usize),
    /// Communities that are not there yet come at the end.
    Add(Vec<u128>),
    /// These communities go.
    Strip(Arc<CommunitySet>),
}

/// How a number is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    ShiftLeft,
    ShiftRight,
    And,
    Or,
    Xor,
}

impl Operator {
    pub(crate) const ALL: [(&'static str, Self); 9] = [
        ("add", Self::Add),
        ("sub", Self::Subtract),
        ("mul", Self::Multiply),
        ("div", Self::Divide),
        ("lshift", Self::ShiftLeft),
        ("rshift", Self::ShiftRight),
        ("bit-and", Self::And),
        ("bit-or", Self::Or),
        ("bit-xor", Self::Xor),
    ];

    /// The result, in the bounds of the variable: what would be greater is the greatest, what would be less is 0.
    /// By 0 nothing is divided.
    pub(crate) fn apply(self, left: u64, right: u64, most: u64) -> u64 {
        let shift = u32::try_from(right).unwrap_or(u32::MAX);
        let result = match self {
            Self::Add => left.saturating_add(right),
            Self::Subtract => left.saturating_sub(right),
            Self::Multiply => left.saturating_mul(right),
            Self::Divide => left.checked_div(right).unwrap_or(left),
            Self::ShiftLeft if left == 0 => 0,
            Self::ShiftLeft if shift > left.leading_zeros() => u64::MAX,
            Self::ShiftLeft => left << shift,
            Self::ShiftRight => left.checked_shr(shift).unwrap_or(0),
            Self::And => left & right,
            Self::Or => left | right,
            Self::Xor => left ^ right,
        };
        result.min(most)
    }
}

impl Order {
    pub(crate) const ALL: [(&'static str, Self); 5] = [
        ("eq", Self::Equal),
        ("lt", Self::Less),
        ("le", Self::LessOrEqual),
        ("gt", Self::Greater),
        ("ge", Self::GreaterOrEqual),
    ];

    pub(crate) fn holds<T: Ord>(self, left: &T, right: &T) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}
