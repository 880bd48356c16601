//! AS paths, and regular expressions for them.
//!
//! An expression is made of whole numbers, not of digits, so that `65001` never means 165001:
//!
//! ```text
//! 65001              this system          65001 65002     one after the other
//! .                  any system           65001 | 65002   one of both
//! [64512-65534 1]    one of these         ( … )           as one
//! [^ 64512-65534]    none of these        * + ? {2} {2,3} {2,}    repeated
//! ^ at the beginning: from the neighbour on; $ at the end: to where the route begins
//! ```
//!
//! Without `^` and `$` it may stand anywhere in the path; `_` means a space. A set of systems (AS_SET) is one step of the
//! path and matches if one of its members does.
//!
//! Chosen is the automaton of Glushkov, simulated: its states are the numbers, dots and classes of the expression, and for
//! each the set of those that may follow is known. A path is read once, from one set of states to the next, so that the time
//! is bounded by the length of the path times that of the expression, whatever both are; there is nothing to go back to.
//! Expressions for characters (such as the crate `regex` has) would need the path as text, and would see digits.
//!
//! Reference: V. M. Glushkov, "The abstract theory of automata", Russian Mathematical Surveys 16 (1961); R. McNaughton and
//! H. Yamada, "Regular expressions and state graphs for automata", IRE Transactions 9 (1960).

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::number::{NumberRange, NumberSet};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hop {
    /// An autonomous system.
    As(u32),
    /// Some of which the order is not known.
    Set(Box<[u32]>),
}

/// A path: what was put in front of it, and what was there before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AsPath<'a> {
    /// What a policy has put in front, the first one first.
    pub prepended: Vec<u32>,
    /// What was there.
    pub hops: Cow<'a, [Hop]>,
}

impl AsPath<'_> {
    /// How many steps it has (RFC 4271 §9.1.2.2: a set counts as one).
    #[must_use]
    pub fn length(&self) -> usize {
        self.prepended.len() + self.hops.len()
    }

    /// The neighbour that it came from.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.prepended.first().copied().or_else(|| single(self.hops.first()?))
    }

    /// Where it begins.
    #[must_use]
    pub fn origin(&self) -> Option<u32> {
        match self.hops.last() {
            Some(last) => single(last),
            None => self.prepended.last().copied(),
        }
    }

    /// All numbers, those in sets included.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        let inside = self.hops.iter().flat_map(|hop| match hop {
            Hop::As(number) => std::slice::from_ref(number),
            Hop::Set(numbers) => numbers,
        });
        self.prepended.iter().chain(inside).copied()
    }

    /// Puts a number in front, so many times.
    pub(crate) fn prepend(&mut self, number: u32, times: usize) {
        self.prepended.splice(0..0, std::iter::repeat_n(number, times));
    }
}

fn single(hop: &Hop) -> Option<u32> {
    match hop {
        Hop::As(number) => Some(*number),
        Hop::Set(_) => None,
    }
}

impl fmt::Display for AsPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gap = "";
        for number in &self.prepended {
            write!(f, "{gap}{number}")?;
            gap = " ";
        }
        for hop in &*self.hops {
            match hop {
                Hop::As(number) => write!(f, "{gap}{number}")?,
                Hop::Set(numbers) => {
                    let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
                    write!(f, "{gap}{{{}}}", numbers.join(","))?;
                }
            }
            gap = " ";
        }
        Ok(())
    }
}

/// Reads a path as it is shown.
impl FromStr for AsPath<'static> {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let hop = |word: &str| match word.strip_prefix('{').and_then(|w| w.strip_suffix('}')) {
            Some(inside) => {
                inside.split(',').map(str::parse).collect::<Result<_, _>>().map(Hop::Set)
            }
            None => word.parse().map(Hop::As),
        };
        let hops: Result<Vec<_>, _> = text.split_whitespace().map(hop).collect();
        let hops = hops.map_err(|_| PathError)?;
        Ok(Self { prepended: Vec::new(), hops: Cow::Owned(hops) })
    }
}

/// Why a text is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "write numbers of autonomous systems, the neighbour's first, sets in braces: `65001 65002 {{65003,65004}}`"
)]
pub struct PathError;

/// Why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// A character that means nothing.
    #[error(
        "`{0}` means nothing in it: write numbers, `.`, `[64512-65534]`, `( | )`, `*`, `+`, `?`, `{{2,3}}`"
    )]
    Character(char),
    /// A number that is none of a system, or of how often.
    #[error("`{0}` is too large")]
    Number(String),
    /// Something to repeat is missing.
    #[error("`{0}` has nothing in front of it that could be repeated")]
    Nothing(char),
    /// Something is missing.
    #[error("`{0}` is missing")]
    Missing(char),
    /// `^` inside, or `$` inside.
    #[error("`{0}` stands only at the {1} of an expression")]
    Anchor(char, &'static str),
    /// A range the wrong way round.
    #[error("`{0}` is empty: the lower number comes first")]
    Empty(String),
    /// It is nested too deeply.
    #[error("it is nested more than {MAX_DEPTH} deep")]
    Deep,
    /// It is too long.
    #[error(
        "it has more than {MAX_STATES} numbers, dots and classes, those that are repeated counted as often"
    )]
    Long,
}

/// How deep parentheses may be nested.
const MAX_DEPTH: usize = 32;
/// How many states an automaton may have.
const MAX_STATES: usize = 512;

/// An expression.
#[derive(Clone, Debug)]
pub struct AsPathPattern {
    text: String,
    automaton: Automaton,
}

/// By the text.
impl PartialEq for AsPathPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for AsPathPattern {}

impl fmt::Display for AsPathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for AsPathPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (tree, from_start, to_end) = Reader::new(text).whole()?;
        Ok(Self { text: text.to_owned(), automaton: Automaton::new(&tree, from_start, to_end)? })
    }
}

impl AsPathPattern {
    /// Whether a path matches.
    #[must_use]
    pub fn matches(&self, path: &AsPath<'_>) -> bool {
        self.automaton.matches(path)
    }
}

/// What one step of a path must be.
#[derive(Clone, Debug)]
enum Step {
    Any,
    In(NumberSet),
    NotIn(NumberSet),
}

impl Step {
    fn accepts(&self, numbers: &[u32]) -> bool {
        match self {
            Self::Any => true,
            Self::In(set) => numbers.iter().any(|number| set.contains((*number).into())),
            Self::NotIn(set) => numbers.iter().any(|number| !set.contains((*number).into())),
        }
    }
}

#[derive(Clone, Debug)]
enum Tree {
    Step(Step),
    Sequence(Vec<Tree>),
    Choice(Vec<Tree>),
    /// At least and at most so often; without an end if none.
    Repeat(Box<Tree>, usize, Option<usize>),
}

/// Reads an expression.
struct Reader<'t> {
    rest: std::iter::Peekable<std::str::Chars<'t>>,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Self {
        Self { rest: text.chars().peekable(), depth: 0 }
    }

    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        while self.rest.next_if(|c| c.is_whitespace() || *c == '_').is_some() {}
        self.rest.peek().copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        self.peek() == Some(wanted) && self.rest.next().is_some()
    }

    fn whole(mut self) -> Result<(Tree, bool, bool), PatternError> {
        let from_start = self.take('^');
        let tree = self.choice()?;
        let to_end = self.take('$');
        match self.peek() {
            None => Ok((tree, from_start, to_end)),
            Some('^') => Err(PatternError::Anchor('^', "beginning")),
            Some(_) if to_end => Err(PatternError::Anchor('$', "end")),
            Some(')') => Err(PatternError::Missing('(')),
            Some(other) => Err(PatternError::Character(other)),
        }
    }

    fn choice(&mut self) -> Result<Tree, PatternError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(PatternError::Deep);
        }
        let mut all = vec![self.sequence()?];
        while self.take('|') {
            all.push(self.sequence()?);
        }
        self.depth -= 1;
        Ok(Tree::Choice(all))
    }

    fn sequence(&mut self) -> Result<Tree, PatternError> {
        let mut all = Vec::new();
        while let Some(next) = self.peek() {
            let tree = match next {
                '0'..='9' => Tree::Step(Step::In(NumberSet::new(vec![self.range()?]))),
                '.' => {
                    self.rest.next();
                    Tree::Step(Step::Any)
                }
                '[' => self.class()?,
                '(' => {
                    self.rest.next();
                    let inside = self.choice()?;
                    if !self.take(')') {
                        return Err(PatternError::Missing(')'));
                    }
                    inside
                }
                '*' | '+' | '?' | '{' => return Err(PatternError::Nothing(next)),
                _ => break,
            };
            all.push(self.repeated(tree)?);
        }
        Ok(Tree::Sequence(all))
    }

    fn repeated(&mut self, tree: Tree) -> Result<Tree, PatternError> {
        let (least, most) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                self.rest.next();
                let least = self.number()? as usize;
                let most = match self.take(',') {
                    false => Some(least),
                    true if self.peek() == Some('}') => None,
                    true => Some(self.number()? as usize),
                };
                if self.peek() != Some('}') {
                    return Err(PatternError::Missing('}'));
                }
                if most.is_some_and(|most| most < least) {
                    return Err(PatternError::Empty(format!("{{{least},{}}}", most.unwrap_or(0))));
                }
                (least, most)
            }
            _ => return Ok(tree),
        };
        self.rest.next();
        if least.max(most.unwrap_or(0)) > MAX_STATES {
            return Err(PatternError::Long);
        }
        Ok(Tree::Repeat(Box::new(tree), least, most))
    }

    fn class(&mut self) -> Result<Tree, PatternError> {
        self.rest.next();
        let is_not = self.take('^');
        let mut ranges = Vec::new();
        while self.peek().is_some_and(|next| next.is_ascii_digit()) {
            ranges.push(self.range()?);
        }
        if !self.take(']') {
            return Err(PatternError::Missing(']'));
        }
        let set = NumberSet::new(ranges);
        Ok(Tree::Step(if is_not { Step::NotIn(set) } else { Step::In(set) }))
    }

    fn range(&mut self) -> Result<NumberRange, PatternError> {
        let least = self.number()?;
        let greatest = if self.take('-') { self.number()? } else { least };
        if least > greatest {
            return Err(PatternError::Empty(format!("{least}-{greatest}")));
        }
        Ok(NumberRange { least, greatest })
    }

    /// A number of 32 bits.
    fn number(&mut self) -> Result<u64, PatternError> {
        let mut digits = String::new();
        self.peek();
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        if digits.is_empty() {
            return Err(match self.rest.peek() {
                Some(other) => PatternError::Character(*other),
                None => PatternError::Missing('0'),
            });
        }
        digits.parse::<u32>().map(u64::from).map_err(|_| PatternError::Number(digits))
    }
}

/// A set of states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct States(Vec<u64>);

impl States {
    fn add(&mut self, state: usize) {
        if state / 64 >= self.0.len() {
            self.0.resize(state / 64 + 1, 0);
        }
        self.0[state / 64] |= 1 << (state % 64);
    }

    fn join(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(all, more)| *all |= more);
    }

    fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(one, other)| one & other != 0)
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(place, bits)| {
            (0..64).filter(move |bit| bits & 1 << bit != 0).map(move |bit| place * 64 + bit)
        })
    }
}

/// What an expression is made of: see the text above.
#[derive(Clone, Debug)]
struct Automaton {
    steps: Vec<Step>,
    /// Which may come after each.
    follow: Vec<States>,
    first: States,
    last: States,
    /// Whether nothing at all matches.
    nullable: bool,
    from_start: bool,
    to_end: bool,
}

/// Where a part of an expression begins and ends.
#[derive(Clone, Default)]
struct Ends {
    first: States,
    last: States,
    nullable: bool,
}

impl Automaton {
    fn new(tree: &Tree, from_start: bool, to_end: bool) -> Result<Self, PatternError> {
        let mut all = Self {
            steps: Vec::new(),
            follow: Vec::new(),
            first: States::default(),
            last: States::default(),
            nullable: false,
            from_start,
            to_end,
        };
        let Ends { first, last, nullable } = all.add(tree)?;
        (all.first, all.last, all.nullable) = (first, last, nullable);
        Ok(all)
    }

    fn add(&mut self, tree: &Tree) -> Result<Ends, PatternError> {
        match tree {
            Tree::Step(step) => {
                let state = self.steps.len();
                if state >= MAX_STATES {
                    return Err(PatternError::Long);
                }
                self.steps.push(step.clone());
                self.follow.push(States::default());
                let mut ends = Ends::default();
                ends.first.add(state);
                ends.last.add(state);
                Ok(ends)
            }
            Tree::Sequence(all) => {
                let mut ends = Ends { nullable: true, ..Ends::default() };
                for tree in all {
                    let next = self.add(tree)?;
                    self.append(&mut ends, &next);
                }
                Ok(ends)
            }
            Tree::Choice(all) => {
                let mut ends = Ends::default();
                for tree in all {
                    let other = self.add(tree)?;
                    ends.first.join(&other.first);
                    ends.last.join(&other.last);
                    ends.nullable |= other.nullable;
                }
                Ok(ends)
            }
            Tree::Repeat(tree, least, most) => self.repeat(tree, *least, *most),
        }
    }

    /// As many copies as it may be repeated, of which those beyond the least may be left out; without a limit the last
    /// one may follow itself.
    fn repeat(
        &mut self,
        tree: &Tree,
        least: usize,
        most: Option<usize>,
    ) -> Result<Ends, PatternError> {
        let mut ends = Ends { nullable: true, ..Ends::default() };
        let copies = most.unwrap_or(least.max(1));
        for copy in 0..copies {
            let before = self.steps.len();
            let mut next = self.add(tree)?;
            if self.steps.len() == before {
                // There is nothing in it, however often.
                return Ok(ends);
            }
            if most.is_none() && copy + 1 == copies {
                self.connect(&next.last, &next.first.clone());
            }
            next.nullable |= copy >= least;
            self.append(&mut ends, &next);
        }
        Ok(ends)
    }

    fn append(&mut self, ends: &mut Ends, next: &Ends) {
        self.connect(&ends.last, &next.first);
        if ends.nullable {
            ends.first.join(&next.first);
        }
        match next.nullable {
            true => ends.last.join(&next.last),
            false => ends.last = next.last.clone(),
        }
        ends.nullable &= next.nullable;
    }

    fn connect(&mut self, from: &States, to: &States) {
        for state in from.iter() {
            self.follow[state].join(to);
        }
    }

    fn matches(&self, path: &AsPath<'_>) -> bool {
        if self.nullable && (!self.from_start || !self.to_end || path.length() == 0) {
            return true;
        }
        let mut may_come = self.first.clone();
        let prepended = path.prepended.iter().map(std::slice::from_ref);
        let rest = path.hops.iter().map(|hop| match hop {
            Hop::As(number) => std::slice::from_ref(number),
            Hop::Set(numbers) => &**numbers,
        });
        let mut ends_here = false;
        for numbers in prepended.chain(rest) {
            let mut here = States::default();
            let mut next = if self.from_start { States::default() } else { self.first.clone() };
            for state in may_come.iter().filter(|state| self.steps[*state].accepts(numbers)) {
                here.add(state);
                next.join(&self.follow[state]);
            }
            ends_here = here.meets(&self.last);
            if ends_here && !self.to_end {
                return true;
            }
            may_come = next;
        }
        ends_here
    }

    /// How many states there are, for the bound on what a run may cost.
    fn len(&self) -> usize {
        self.steps.len()
    }
}

impl AsPathPattern {
    /// How much asking may cost, compared with others.
    pub(crate) fn cost(&self) -> usize {
        self.automaton.len()
    }
}
