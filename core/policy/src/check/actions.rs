//! What stands in `then`.
//!
//! ```text
//! accept;  reject;  next policy;  next term;
//! VARIABLE VALUE;              VARIABLE remove;
//! NUMBER add|sub|mul|div|lshift|rshift|bit-and|bit-or|bit-xor VALUE;
//! AS-PATH prepend NUMBER TIMES;  AS-PATH expand TIMES;
//! COMMUNITIES add|set VALUE…;  COMMUNITIES remove VALUE…;  COMMUNITIES remove in LIST;  COMMUNITIES clear;
//! ```
//!
//! A value may be the name of a variable of the same kind.

use std::borrow::Cow;

use weft_config::{Error, Errors, gather};

use super::conditions::{address, patterns, word_of};
use super::{Checker, no_block, only, some, unknown_word};
use crate::community::CommunityKind;
use crate::read::{Line, Word, bad};
use crate::tree::{Action, Change, End, Operand, Operator, Source};
use crate::value::{Access, Kind, Value};

/// How often a number may be put in front of a path at once.
const MOST_TIMES: usize = 64;

impl Checker<'_> {
    pub(super) fn actions(&self, lines: &[Line]) -> Result<(Vec<Action>, End), Errors> {
        let (mut actions, mut end) = (Vec::new(), None::<(End, &Word)>);
        for line in lines {
            if let Some((_, last)) = end {
                let sentence =
                    format!("nothing is done behind `{}`: put this before it", last.text);
                return Err(line.first().location.error(sentence).into());
            }
            match self.end(line)? {
                Some(found) => end = Some((found, line.first())),
                None => actions.push(self.action(line).map_err(Errors::from)),
            }
        }
        Ok((gather(actions)?, end.map_or(End::NextTerm, |(end, _)| end)))
    }

    /// What ends a term, if this does.
    fn end(&self, line: &Line) -> Result<Option<End>, Error> {
        no_block(line)?;
        let first = line.first();
        let end = match first.text.as_str() {
            "accept" => End::Accept,
            "reject" => End::Reject,
            "next" => {
                let what = only(&line.words[1..], first, "`policy` or `term`")?;
                return match what.text.as_str() {
                    "policy" => Ok(Some(End::NextPolicy)),
                    "term" => Ok(Some(End::NextTerm)),
                    _ => Err(bad(what, &"write `next policy` or `next term`")),
                };
            }
            _ => return Ok(None),
        };
        match line.words.get(1) {
            None => Ok(Some(end)),
            Some(extra) => {
                let sentence = format!("`{}` takes nothing behind it", first.text);
                Err(extra.location.error(sentence))
            }
        }
    }

    fn action(&self, line: &Line) -> Result<Action, Error> {
        let (name, rest) = (line.first(), &line.words[1..]);
        let variable = self.writable(name)?;
        let about = &self.variables[variable];
        let first = rest.first().map(|word| word.text.as_str());
        let change = match (about.kind, first) {
            (Kind::Communities(kind), _) => self.change_communities(kind, name, rest)?,
            (Kind::AsPath, _) => self.change_path(name, rest)?,
            (_, Some("remove")) if rest.len() == 1 && about.access == Access::Remove => {
                Change::Remove
            }
            (_, Some("remove")) if rest.len() == 1 => {
                return Err(rest[0]
                    .location
                    .error(format!("`{}` always has a value: set another one", name.text)));
            }
            (Kind::Number { most }, Some(word)) => {
                match Operator::ALL.iter().find(|(known, _)| *known == word) {
                    Some((_, operator)) => self.calculate(*operator, &rest[0], &rest[1..], most)?,
                    None => Change::Set(self.value(about.kind, name, rest)?),
                }
            }
            _ => Change::Set(self.value(about.kind, name, rest)?),
        };
        Ok(Action { text: line.to_string(), variable, change })
    }

    /// The variable of this name, which may be set.
    fn writable(&self, name: &Word) -> Result<usize, Error> {
        let all = self.variables.iter();
        let writable = |access| access != Access::Read;
        if let Some(found) =
            all.clone().position(|one| one.name == name.text && writable(one.access))
        {
            return Ok(found);
        }
        let others = all.clone().filter(|one| writable(one.access)).map(|one| one.name);
        if all.clone().any(|one| one.name == name.text) {
            let others: Vec<_> = others.collect();
            let sentence = format!(
                "`{}` can only be read; what can be changed: {}",
                name.text,
                others.join(", ")
            );
            return Err(name.location.error(sentence));
        }
        Err(unknown_word("variable", name, others.chain(["accept", "reject", "next"])))
    }

    fn calculate(
        &self,
        operator: Operator,
        word: &Word,
        rest: &[Word],
        most: u64,
    ) -> Result<Change, Error> {
        let value = only(rest, word, "a number")?;
        let operand = self.number(value)?;
        if operator == Operator::Divide && operand == Operand::Constant(Value::Number(0)) {
            return Err(value.location.error("nothing can be divided by 0"));
        }
        Ok(Change::Calculate(operator, operand, most))
    }

    /// The value that a variable of a kind is set to.
    fn value(&self, kind: Kind, name: &Word, rest: &[Word]) -> Result<Operand, Error> {
        let rest = match rest.first() {
            Some(first) if first.text == "set" && rest.len() > 1 => &rest[1..],
            _ => rest,
        };
        let word = only(rest, name, kind.what())?;
        let fits = |other: Kind| match (kind, other) {
            (Kind::Number { .. }, Kind::Number { .. }) => true,
            (Kind::Text, _) => false,
            (kind, other) => kind == other,
        };
        if let Some(variable) = self.operand(&word.text).filter(|one| fits(self.kind(*one))) {
            return Ok(Operand::Source(Source { variable, part: None }));
        }
        let value = match kind {
            Kind::Switch => match word.text.as_str() {
                "on" => Value::Switch(true),
                "off" => Value::Switch(false),
                _ => return Err(bad(word, &"write `on` or `off`")),
            },
            Kind::Number { most } => match self.number(word)? {
                Operand::Constant(Value::Number(number)) if number > most => {
                    return Err(bad(word, &format!("`{}` is at most {most}", name.text)));
                }
                operand => return Ok(operand),
            },
            Kind::Word(known) => Value::Word(word_of(known, word)?),
            Kind::Text => Value::Text(Cow::Owned(word.text.clone())),
            Kind::Address => Value::Address(address(word)?),
            Kind::Prefix => {
                let prefix =
                    word.text.parse().map_err(|_| bad(word, &"write a prefix: `192.0.2.0/24`"))?;
                Value::Prefix(prefix)
            }
            Kind::AsPath | Kind::Communities(_) => {
                return Err(bad(word, &"it cannot be set as a whole"));
            }
        };
        Ok(Operand::Constant(value))
    }

    fn change_path(&self, name: &Word, rest: &[Word]) -> Result<Change, Error> {
        let usage = "write `prepend` and a number, or `expand`, and how often if more than once: `prepend 65000 2`";
        let Some((verb, rest)) = rest.split_first() else {
            return Err(name.location.error(format!("behind `{}` {usage}", name.text)));
        };
        match verb.text.as_str() {
            "prepend" => {
                let number = &some(rest, verb, "the number of an autonomous system")?[0];
                let operand = self.number(number)?;
                let is_number = |number: u64| (1..u64::from(u32::MAX)).contains(&number);
                if matches!(operand, Operand::Constant(Value::Number(one)) if !is_number(one)) {
                    return Err(bad(
                        number,
                        &"numbers of autonomous systems are from 1 to 4294967294",
                    ));
                }
                Ok(Change::Prepend(operand, times(&rest[1..], number)?))
            }
            "expand" => Ok(Change::Expand(times(rest, verb)?)),
            _ => Err(bad(verb, &usage)),
        }
    }

    fn change_communities(
        &self,
        kind: CommunityKind,
        name: &Word,
        rest: &[Word],
    ) -> Result<Change, Error> {
        let usage = "write `add`, `set` or `remove` and communities, `remove in` and a list of them, or `clear`";
        let Some((verb, rest)) = rest.split_first() else {
            return Err(name.location.error(format!("behind `{}` {usage}", name.text)));
        };
        let all = |words: &[Word]| -> Result<Vec<u128>, Error> {
            let words = some(words, verb, "a community")?.iter();
            words.map(|word| kind.parse(&word.text).map_err(|error| bad(word, &error))).collect()
        };
        match (verb.text.as_str(), rest) {
            ("add", words) => all(words).map(Change::Add),
            ("set", words) => {
                let mut distinct = Vec::new();
                for one in all(words)? {
                    if !distinct.contains(&one) {
                        distinct.push(one);
                    }
                }
                Ok(Change::Set(Operand::Constant(Value::Communities(Cow::Owned(distinct)))))
            }
            ("clear", []) => {
                Ok(Change::Set(Operand::Constant(Value::Communities(Cow::Owned(Vec::new())))))
            }
            ("clear", [extra, ..]) => Err(extra.location.error("`clear` takes nothing behind it")),
            ("remove", [first, rest @ ..]) if first.text == "in" => {
                self.communities(kind, rest, first).map(Change::Strip)
            }
            ("remove", words) => patterns(kind, words, verb).map(Change::Strip),
            _ => Err(bad(verb, &usage)),
        }
    }
}

/// How often, if that is said.
fn times(words: &[Word], behind: &Word) -> Result<usize, Error> {
    if words.is_empty() {
        return Ok(1);
    }
    let word = only(words, behind, "how often")?;
    let times = word.text.parse().ok().filter(|times| (1..=MOST_TIMES).contains(times));
    times.ok_or_else(|| bad(word, &format!("write how often: 1 to {MOST_TIMES}")))
}
