//! Policies as a program for a machine with a stack.
//!
//! Reference: Handley et al. (XORP), §8.1 and its policy back end: constants and variables are pushed, operators take what
//! they need from the stack, a term is left when a condition does not hold.
//!
//! A program ends, and soon: it only jumps forward, policies call one another in no circle, and how many instructions a
//! run may take at most is known when it is made.

use std::sync::Arc;

use weft_config::{Errors, Located, Name};

use crate::check::check;
use crate::community::CommunitySet;
use crate::read::Policies;
use crate::tree::{
    Action, Change, Condition, End, Operand, Operator, Order, Policy, Source, Term, Test,
};
use crate::value::{Value, Variable};

/// How many instructions a run may take.
const MOST_INSTRUCTIONS: usize = 1 << 16;

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Puts the value of a variable on the stack, or that there is none.
    Load(Source),
    Push(Value<'static>),
    /// Takes a value, puts whether this holds of it.
    Test(Test),
    /// Takes two values, puts whether the lower one is so to the upper one.
    Compare(Order),
    Not,
    /// Puts whether a policy accepts the route as it is.
    Call(usize),
    /// Goes on there if the uppermost is this, which stays; otherwise takes it.
    SkipIf(bool, usize),
    /// Takes whether something holds; goes on there if not.
    Unless(usize),
    /// Takes a value, which a variable has from now on; if there is none, it keeps its own.
    Store(usize),
    Remove(usize),
    /// Takes two numbers, puts the result, which is at most this.
    Calculate(Operator, u64),
    /// Takes a number and a path, puts the path with the number in front, so often.
    Prepend(usize),
    Expand(usize),
    Add(Vec<u128>),
    Strip(Arc<CommunitySet>),
    End(End),
}

/// What stands at a place of the program, for explanations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    Term(Option<String>),
    /// A condition has just been decided, by this value if it has one.
    Condition {
        text: String,
        source: Option<Source>,
    },
    /// A variable is about to be changed.
    Changing {
        variable: usize,
    },
    /// It has been.
    Changed {
        text: String,
        variable: usize,
    },
}

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    pub(crate) name: String,
    pub(crate) ops: Vec<Op>,
    /// In the order of the places, which are those of the next instruction.
    pub(crate) notes: Vec<(usize, Note)>,
    /// Whether it changes anything.
    pub(crate) changes: bool,
}

/// Policies, one after the other, ready to run.
///
/// Two programs that do the same may be different, but two that are equal do the same.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) variables: &'static [Variable],
    pub(crate) codes: Vec<Code>,
    /// Which are asked, in order.
    pub(crate) chain: Vec<usize>,
    /// By variable.
    reads: Vec<bool>,
}

impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.variables, other.variables)
            && (&self.chain, &self.codes) == (&other.chain, &other.codes)
    }
}

impl Eq for Program {}

impl Program {
    /// Compiles the policies with these names, which are asked in this order, for a protocol with these variables.
    ///
    /// # Errors
    /// Every mistake with its place, in these policies and in those that they call; names that no policy has.
    pub fn new(
        policies: &Policies,
        variables: &'static [Variable],
        names: &[Located<Name>],
    ) -> Result<Self, Errors> {
        let names: Vec<_> = names
            .iter()
            .map(|name| (name.value.as_str().to_owned(), name.location.clone()))
            .collect();
        let (trees, chain) = check(policies, variables, &names)?;
        let codes: Vec<_> = trees.iter().map(Code::new).collect();
        let mut costs: Vec<usize> = Vec::new();
        for code in &codes {
            let cost = |op: &Op| match op {
                Op::Call(callee) => 1 + costs[*callee],
                Op::Test(Test::Paths(all)) => all.iter().map(|one| 1 + one.cost()).sum(),
                _ => 1,
            };
            let whole = code.ops.iter().map(cost).fold(0, usize::saturating_add);
            if whole > MOST_INSTRUCTIONS {
                let name = &policies.policies[&code.name].name;
                let sentence = format!(
                    "this policy and those that it calls may take {whole} steps, but at most {MOST_INSTRUCTIONS} are \
                     taken for a route: call fewer, or put what is long into lists"
                );
                return Err(name.location.error(sentence).into());
            }
            costs.push(whole);
        }
        let mut reads = vec![false; variables.len()];
        codes.iter().for_each(|code| code.reads(&mut reads));
        Ok(Self { variables, codes, chain, reads })
    }

    /// Whether what comes of a run may depend on a variable, by its place in the table.
    #[must_use]
    pub fn reads(&self, variable: usize) -> bool {
        self.reads.get(variable).copied().unwrap_or(false)
    }

    /// The names of the policies that are asked, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.chain.iter().map(|code| self.codes[*code].name.as_str())
    }
}

impl Code {
    fn new(policy: &Policy) -> Self {
        let mut code =
            Self { name: policy.name.clone(), ops: Vec::new(), notes: Vec::new(), changes: false };
        policy.terms.iter().for_each(|term| code.term(term));
        code.ops.push(Op::End(End::NextPolicy));
        code
    }

    fn note(&mut self, note: Note) {
        self.notes.push((self.ops.len(), note));
    }

    /// An instruction whose target is not known yet.
    fn hole(&mut self, op: Op) -> usize {
        self.ops.push(op);
        self.ops.len() - 1
    }

    /// What leads from this place goes on here.
    fn fill(&mut self, place: usize) {
        let here = self.ops.len();
        match &mut self.ops[place] {
            Op::Unless(target) | Op::SkipIf(_, target) => *target = here,
            _ => {}
        }
    }

    fn term(&mut self, term: &Term) {
        self.note(Note::Term(term.name.clone()));
        let mut leaves = Vec::new();
        for condition in &term.conditions {
            self.condition(condition);
            leaves.push(self.hole(Op::Unless(0)));
        }
        term.actions.iter().for_each(|action| self.action(action));
        if term.end != End::NextTerm {
            self.ops.push(Op::End(term.end));
        }
        leaves.into_iter().for_each(|place| self.fill(place));
    }

    fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::All(all) => self.several(all, false),
            Condition::Any(all) => self.several(all, true),
            Condition::Not(inside) => {
                self.condition(inside);
                self.ops.push(Op::Not);
            }
            Condition::Test { text, source, test, is_not } => {
                self.ops.push(Op::Load(*source));
                match test {
                    Test::Compare(order, operand) => {
                        self.operand(operand);
                        self.ops.push(Op::Compare(*order));
                    }
                    test => self.ops.push(Op::Test(test.clone())),
                }
                if *is_not {
                    self.ops.push(Op::Not);
                }
                self.note(Note::Condition { text: text.clone(), source: Some(*source) });
            }
            Condition::Policy { text, policy } => {
                self.ops.push(Op::Call(*policy));
                self.note(Note::Condition { text: text.clone(), source: None });
            }
        }
    }

    /// Until one is such, or all are asked.
    fn several(&mut self, all: &[Condition], until: bool) {
        let mut leaves = Vec::new();
        for (place, condition) in all.iter().enumerate() {
            self.condition(condition);
            if place + 1 < all.len() {
                leaves.push(self.hole(Op::SkipIf(until, 0)));
            }
        }
        leaves.into_iter().for_each(|place| self.fill(place));
    }

    fn operand(&mut self, operand: &Operand) {
        self.ops.push(match operand {
            Operand::Constant(value) => Op::Push(value.clone()),
            Operand::Source(source) => Op::Load(*source),
        });
    }

    fn action(&mut self, action: &Action) {
        let variable = action.variable;
        self.changes = true;
        self.note(Note::Changing { variable });
        let own = Op::Load(Source { variable, part: None });
        match &action.change {
            Change::Set(operand) => self.operand(operand),
            Change::Remove => {}
            Change::Calculate(operator, operand, most) => {
                self.ops.push(own);
                self.operand(operand);
                self.ops.push(Op::Calculate(*operator, *most));
            }
            Change::Prepend(operand, times) => {
                self.ops.push(own);
                self.operand(operand);
                self.ops.push(Op::Prepend(*times));
            }
            Change::Expand(times) => self.ops.extend([own, Op::Expand(*times)]),
            Change::Add(all) => self.ops.extend([own, Op::Add(all.clone())]),
            Change::Strip(set) => self.ops.extend([own, Op::Strip(Arc::clone(set))]),
        }
        self.ops.push(match action.change {
            Change::Remove => Op::Remove(variable),
            _ => Op::Store(variable),
        });
        self.note(Note::Changed { text: action.text.clone(), variable });
    }

    fn reads(&self, reads: &mut [bool]) {
        for op in &self.ops {
            if let Op::Load(source) = op {
                reads[source.variable] = true;
            }
        }
    }
}
