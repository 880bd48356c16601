//! What stands in `from` and `to`.
//!
//! ```text
//! VARIABLE VALUE…;             one of these
//! VARIABLE ne VALUE…;          none of these
//! VARIABLE lt|le|gt|ge VALUE;  a number
//! VARIABLE in LIST;            in a list of its kind
//! VARIABLE present|absent;     has a value, or has none
//! policy NAME;                 this policy accepts the route
//! any { … }  all { … }  not { … }
//! ```

use std::net::IpAddr;
use std::sync::Arc;

use weft_config::{Error, Errors, gather};

use super::{Checker, no_block, only, some, unknown_word};
use crate::community::{CommunityKind, CommunitySet};
use crate::number::NumberSet;
use crate::prefixes::PrefixSet;
use crate::read::{
    Line, List, ListKind, Word, bad, community, number_range, pattern, prefix_range,
};
use crate::tree::{Condition, Operand, Order, Part, Source, Test};
use crate::value::{Kind, Side};

/// Parts of values are numbers of this kind.
const PART: Kind = Kind::Number { most: u32::MAX as u64 };

impl Checker<'_> {
    pub(super) fn condition(&mut self, side: Side, line: &Line) -> Result<Condition, Errors> {
        let first = line.first();
        match (first.text.as_str(), &line.block) {
            ("any" | "all" | "not", Some(block)) if line.words.len() == 1 => {
                let inside: Vec<_> = block.iter().map(|line| self.condition(side, line)).collect();
                let inside = gather(inside)?;
                if inside.is_empty() {
                    let sentence = format!("`{}` has no conditions inside", first.text);
                    return Err(first.location.error(sentence).into());
                }
                Ok(match first.text.as_str() {
                    "any" => Condition::Any(inside),
                    "all" => Condition::All(inside),
                    _ => Condition::Not(Box::new(Condition::All(inside))),
                })
            }
            ("any" | "all" | "not", _) => {
                let sentence = format!("write `{} {{ … }}` with conditions inside", first.text);
                Err(first.location.error(sentence).into())
            }
            ("policy", _) => {
                no_block(line)?;
                let name = only(&line.words[1..], first, "the name of a policy")?;
                Ok(Condition::Policy { text: line.to_string(), policy: self.policy(name)? })
            }
            _ => {
                no_block(line)?;
                Ok(self.test(side, line)?)
            }
        }
    }

    /// `VARIABLE …`.
    fn test(&self, side: Side, line: &Line) -> Result<Condition, Error> {
        let name = line.first();
        let variable = self.variable(side, name)?;
        let (part, kind, behind) = part(self.kind(variable), &line.words);
        let (name, rest) = (&line.words[behind - 1], &line.words[behind..]);
        let texts: Vec<_> = rest.iter().map(|word| word.text.as_str()).collect();
        let (is_not, test) = match texts.as_slice() {
            ["present"] => (false, Test::Present),
            ["absent"] => (true, Test::Present),
            ["ne", ..] => (true, self.equals(kind, &rest[0], &rest[1..])?),
            ["eq", ..] => (false, self.equals(kind, &rest[0], &rest[1..])?),
            _ => (false, self.other_test(kind, name, rest)?),
        };
        let source = Source { variable, part };
        Ok(Condition::Test { text: line.to_string(), source, test, is_not })
    }

    fn other_test(&self, kind: Kind, name: &Word, rest: &[Word]) -> Result<Test, Error> {
        let Some(first) = rest.first() else {
            return match kind {
                Kind::Switch => Ok(Test::Switch(true)),
                _ => Err(name.location.error(format!("behind `{}` {}", name.text, usage(kind)))),
            };
        };
        let behind = &rest[1..];
        let order = Order::ALL.iter().find(|(word, _)| *word == first.text);
        match (kind, first.text.as_str()) {
            (Kind::Number { .. }, _) if order.is_some() => {
                let word = only(behind, first, "a number")?;
                let (_, order) = order.expect("it was just asked");
                Ok(Test::Compare(*order, self.number(word)?))
            }
            (Kind::Number { .. }, "in") => self.numbers(behind, first).map(Test::Numbers),
            (Kind::Address, "in") => self.prefixes(behind, first).map(Test::Within),
            (Kind::Address, "within") => {
                let range = prefix_range(some(behind, first, "a prefix")?)?;
                Ok(Test::Within(Arc::new(PrefixSet::new(vec![range]))))
            }
            (Kind::Prefix, "in") => self.prefixes(behind, first).map(Test::Prefixes),
            (Kind::AsPath, "in") => {
                let take = |list: &List| match list {
                    List::Paths(all) => Some(Arc::clone(all)),
                    _ => None,
                };
                self.listed(ListKind::Paths, behind, first, take).map(Test::Paths)
            }
            (Kind::AsPath, "matches") => {
                let all = some(behind, first, "an expression")?.iter().map(pattern);
                all.collect::<Result<_, _>>().map(|all| Test::Paths(Arc::new(all)))
            }
            (Kind::AsPath, "has") => self.through(behind, first).map(Test::Through),
            (Kind::Communities(kind), "in") => self.communities(kind, behind, first).map(Test::Has),
            (Kind::Communities(kind), "has") => patterns(kind, behind, first).map(Test::Has),
            (Kind::Communities(kind), "has-all") => patterns(kind, behind, first).map(Test::HasAll),
            (Kind::AsPath | Kind::Communities(_), _) => Err(bad(first, &usage(kind))),
            _ => self.equals(kind, name, rest),
        }
    }

    /// One of some values.
    fn equals(&self, kind: Kind, behind: &Word, words: &[Word]) -> Result<Test, Error> {
        let words = some(words, behind, kind.what())?;
        Ok(match kind {
            Kind::Switch => match only(words, behind, "`on` or `off`")?.text.as_str() {
                "on" => Test::Switch(true),
                "off" => Test::Switch(false),
                _ => return Err(bad(&words[0], &usage(kind))),
            },
            Kind::Number { .. } => {
                match self.named(words, |kind| matches!(kind, Kind::Number { .. })) {
                    Some(other) => Test::Compare(Order::Equal, other),
                    None => {
                        let all = words.iter().map(number_range).collect::<Result<_, _>>()?;
                        Test::Numbers(Arc::new(NumberSet::new(all)))
                    }
                }
            }
            Kind::Word(known) => {
                let place = |word| word_of(known, word);
                Test::Words(words.iter().map(place).collect::<Result<_, _>>()?)
            }
            Kind::Text => Test::Texts(words.iter().map(|word| word.text.clone()).collect()),
            Kind::Address => match self.named(words, |kind| kind == Kind::Address) {
                Some(other) => Test::Compare(Order::Equal, other),
                None => Test::Addresses(words.iter().map(address).collect::<Result<_, _>>()?),
            },
            Kind::Prefix => Test::Prefixes(Arc::new(PrefixSet::new(vec![prefix_range(words)?]))),
            Kind::AsPath | Kind::Communities(_) => return Err(bad(behind, &usage(kind))),
        })
    }

    /// A variable that is named instead of a value.
    fn named(&self, words: &[Word], fits: impl Fn(Kind) -> bool) -> Option<Operand> {
        let [word] = words else { return None };
        let variable = self.operand(&word.text).filter(|one| fits(self.kind(*one)))?;
        Some(Operand::Source(Source { variable, part: None }))
    }

    /// A number, or a variable that is one.
    pub(super) fn number(&self, word: &Word) -> Result<Operand, Error> {
        if let Some(operand) =
            self.named(std::slice::from_ref(word), |kind| matches!(kind, Kind::Number { .. }))
        {
            return Ok(operand);
        }
        let number = word.text.parse::<u64>().ok();
        let number = number.filter(|_| word.text.bytes().all(|byte| byte.is_ascii_digit()));
        let value = number.map(|number| Operand::Constant(crate::Value::Number(number)));
        value.ok_or_else(|| bad(word, &"write a number, or the name of a variable that is one"))
    }

    fn numbers(&self, words: &[Word], behind: &Word) -> Result<Arc<NumberSet>, Error> {
        let take = |list: &List| match list {
            List::Numbers(set) => Some(Arc::clone(set)),
            _ => None,
        };
        self.listed(ListKind::Numbers, words, behind, take)
    }

    fn prefixes(&self, words: &[Word], behind: &Word) -> Result<Arc<PrefixSet>, Error> {
        let take = |list: &List| match list {
            List::Prefixes(set) => Some(Arc::clone(set)),
            _ => None,
        };
        self.listed(ListKind::Prefixes, words, behind, take)
    }

    pub(super) fn communities(
        &self,
        kind: CommunityKind,
        words: &[Word],
        behind: &Word,
    ) -> Result<Arc<CommunitySet>, Error> {
        let take = |list: &List| match list {
            List::Communities(_, set) => Some(Arc::clone(set)),
            _ => None,
        };
        self.listed(ListKind::Communities(kind), words, behind, take)
    }

    /// Numbers that an AS path must have one of.
    fn through(&self, words: &[Word], behind: &Word) -> Result<Arc<NumberSet>, Error> {
        match some(words, behind, "the number of an autonomous system")? {
            [first, rest @ ..] if first.text == "in" => self.numbers(rest, first),
            words => {
                let all = words.iter().map(number_range).collect::<Result<_, _>>()?;
                Ok(Arc::new(NumberSet::new(all)))
            }
        }
    }
}

/// The part of a value that is asked for, what that is, and how many words say so.
fn part(kind: Kind, words: &[Word]) -> (Option<Part>, Kind, usize) {
    let part = match (kind, words.get(1).map(|word| word.text.as_str())) {
        (Kind::Prefix | Kind::AsPath, Some("length")) => Part::Length,
        (Kind::AsPath, Some("first")) => Part::First,
        (Kind::AsPath, Some("origin")) => Part::Origin,
        (Kind::Communities(_), Some("count")) => Part::Count,
        _ => return (None, kind, 1),
    };
    (Some(part), PART, 2)
}

/// The patterns of a kind that must be there.
pub(super) fn patterns(
    kind: CommunityKind,
    words: &[Word],
    behind: &Word,
) -> Result<Arc<CommunitySet>, Error> {
    let words = some(words, behind, "a community")?;
    let all = words.iter().map(|word| community(kind, word)).collect::<Result<_, _>>()?;
    Ok(Arc::new(CommunitySet::new(all)))
}

pub(super) fn address(word: &Word) -> Result<IpAddr, Error> {
    word.text
        .parse()
        .map_err(|_| bad(word, &"write an address of IP, or the name of a variable that is one"))
}

/// The place of a word among those that there are.
pub(super) fn word_of(known: &'static [&'static str], word: &Word) -> Result<usize, Error> {
    let place = known.iter().position(|one| *one == word.text);
    place.ok_or_else(|| unknown_word("word", word, known.iter().copied()))
}

/// What may be written behind a variable.
fn usage(kind: Kind) -> &'static str {
    match kind {
        Kind::Switch => "write `on` or `off`",
        Kind::Number { .. } => {
            "write numbers, `ne`, `lt`, `le`, `gt` or `ge` and a number, `in` and an as-list, `present` or `absent`"
        }
        Kind::Word(_) => "write one of its words, or `ne` and one",
        Kind::Text => "write a text, or `ne` and one",
        Kind::Address => "write an address, `within` and a prefix, or `in` and a prefix-list",
        Kind::Prefix => {
            "write a prefix, `in` and a prefix-list, or `length` and what holds of that"
        }
        Kind::AsPath => {
            "write `matches` and an expression, `has` and numbers, `in` and an as-path-list, or `length`, `first` or \
             `origin` and what holds of that"
        }
        Kind::Communities(_) => {
            "write `has` or `has-all` and communities, `in` and a list of them, or `count` and what holds of that"
        }
    }
}
