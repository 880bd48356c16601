//! Words get their meaning by a protocol's variables, or are told what is wrong with them.

mod actions;
mod conditions;

use std::collections::BTreeMap;
use std::sync::Arc;

use weft_config::{Error, Errors, Location, gather, suggest};

use crate::read::{Line, List, ListKind, Policies, TermText, Word};
use crate::tree::{End, Policy, Term};
use crate::value::{Kind, Side, Variable};

/// How deep policies may call one another.
const MAX_DEPTH: usize = 16;

/// The policies that some names lead to, callees before callers, and where in them those names are.
pub(crate) fn check(
    policies: &Policies,
    variables: &'static [Variable],
    names: &[(String, Location)],
) -> Result<(Vec<Policy>, Vec<usize>), Errors> {
    let mut checker = Checker {
        policies,
        variables,
        done: Vec::new(),
        numbers: BTreeMap::new(),
        path: Vec::new(),
    };
    let words = names
        .iter()
        .map(|(name, location)| Word { text: name.clone(), location: location.clone() });
    let chain = gather(words.map(|word| checker.policy(&word)).collect::<Vec<_>>())?;
    Ok((checker.done, chain))
}

struct Checker<'a> {
    policies: &'a Policies,
    variables: &'static [Variable],
    done: Vec<Policy>,
    /// The places of those that are done.
    numbers: BTreeMap<String, usize>,
    /// Those under way: each calls the next one.
    path: Vec<String>,
}

impl Checker<'_> {
    /// The place of the policy with this name.
    fn policy(&mut self, name: &Word) -> Result<usize, Errors> {
        if let Some(number) = self.numbers.get(&name.text) {
            return Ok(*number);
        }
        if let Some(place) = self.path.iter().position(|one| *one == name.text) {
            let circle = [&self.path[place..], std::slice::from_ref(&name.text)].concat();
            let sentence = format!(
                "policies must not call one another in a circle, but these do: {}",
                circle.join(" → ")
            );
            return Err(name.location.error(sentence).into());
        }
        if self.path.len() == MAX_DEPTH {
            let sentence = format!("policies call one another more than {MAX_DEPTH} deep here");
            return Err(name.location.error(sentence).into());
        }
        let Some(text) = self.policies.policies.get(&name.text) else {
            return Err(unknown("policy", name, self.policies.names(), "policy-statement").into());
        };
        self.path.push(name.text.clone());
        let terms = self.terms(&text.terms);
        self.path.pop();
        let number = self.done.len();
        // Callees were pushed before.
        self.done.push(Policy { name: name.text.clone(), terms: terms? });
        self.numbers.insert(name.text.clone(), number);
        Ok(number)
    }

    fn terms(&mut self, texts: &[TermText]) -> Result<Vec<Term>, Errors> {
        let terms = gather(texts.iter().map(|text| self.term(text)).collect::<Vec<_>>())?;
        let ends = |term: &Term| term.conditions.is_empty() && term.end != End::NextTerm;
        let place = terms.iter().position(ends).filter(|place| place + 1 < terms.len());
        match place {
            None => Ok(terms),
            Some(place) => {
                let (last, lost) = (&texts[place], &texts[place + 1]);
                let sentence = "this is never reached, as what stands before always ends the policy: take one of both \
                                away, or give the first one conditions";
                let error = lost.place.location.error(sentence);
                Err(error.related("what ends it", last.place.location.clone()).into())
            }
        }
    }

    fn term(&mut self, text: &TermText) -> Result<Term, Errors> {
        let sides = [(Side::From, &text.from), (Side::To, &text.to)];
        let mut conditions = Vec::new();
        for (side, lines) in sides {
            let read: Vec<_> = lines.iter().map(|line| self.condition(side, line)).collect();
            conditions.push(gather(read));
        }
        let (conditions, done) = (gather(conditions), self.actions(&text.then));
        let (conditions, (actions, end)) = match (conditions, done) {
            (Ok(conditions), Ok(done)) => (conditions.concat(), done),
            (Err(mut errors), Err(more)) => {
                errors.append(more);
                return Err(errors);
            }
            (Err(errors), _) | (_, Err(errors)) => return Err(errors),
        };
        Ok(Term {
            name: text.name.as_ref().map(|name| name.text.clone()),
            conditions,
            actions,
            end,
        })
    }

    /// The variable of this name on a side.
    fn variable(&self, side: Side, name: &Word) -> Result<usize, Error> {
        let all = self.variables.iter();
        if let Some(found) = all.clone().position(|one| one.name == name.text && one.side == side) {
            return Ok(found);
        }
        let Some(other) = all.clone().find(|one| one.name == name.text) else {
            let here = all.filter(|one| one.side == side).map(|one| one.name);
            let others = ["policy", "any", "all", "not"];
            return Err(unknown_word("variable", name, here.chain(others)));
        };
        let sentence = match other.side {
            Side::From => {
                format!("`{}` is said of the route itself: ask for it in `from`", name.text)
            }
            Side::To => {
                format!("`{}` is said of who is told of the route: ask for it in `to`", name.text)
            }
            Side::Then => format!("`{}` is only a value for `then`", name.text),
        };
        Err(name.location.error(sentence))
    }

    /// The variable that stands for a value, if this is the name of one.
    fn operand(&self, name: &str) -> Option<usize> {
        self.variables.iter().position(|one| one.name == name)
    }

    /// The list of this name.
    fn list(&self, kind: ListKind, name: &Word) -> Result<&List, Error> {
        let found = self.policies.lists.get(&(kind, name.text.clone()));
        found.ok_or_else(|| {
            let lists = self.policies.lists.keys().filter(|(of, _)| *of == kind);
            unknown("list", name, lists.map(|(_, name)| name.as_str()), kind.keyword())
        })
    }

    /// The list that is named behind `in`, which must stand alone there.
    fn listed<T>(
        &self,
        kind: ListKind,
        words: &[Word],
        behind: &Word,
        take: impl Fn(&List) -> Option<Arc<T>>,
    ) -> Result<Arc<T>, Error> {
        let name = only(words, behind, &format!("the name of a {}", kind.keyword()))?;
        let list = self.list(kind, name)?;
        Ok(take(list).expect("lists are found by their kind"))
    }

    fn kind(&self, variable: usize) -> Kind {
        self.variables[variable].kind
    }
}

/// The one word that must be there.
fn only<'w>(words: &'w [Word], behind: &Word, what: &str) -> Result<&'w Word, Error> {
    match words {
        [] => Err(behind.location.error(format!("behind `{}` {what} is missing", behind.text))),
        [word] => Ok(word),
        [_, extra, ..] => Err(extra
            .location
            .error(format!("`{}` is too much: end the statement before it", extra.text))),
    }
}

/// At least one word.
fn some<'w>(words: &'w [Word], behind: &Word, what: &str) -> Result<&'w [Word], Error> {
    if words.is_empty() {
        return Err(behind.location.error(format!("behind `{}` {what} is missing", behind.text)));
    }
    Ok(words)
}

/// A statement that must have no block.
fn no_block(line: &Line) -> Result<(), Error> {
    match &line.block {
        None => Ok(()),
        Some(_) => {
            let first = line.first();
            Err(first.location.error(format!("`{}` takes no block: end it with `;`", first.text)))
        }
    }
}

/// A name that nothing has.
fn unknown<'n>(
    what: &str,
    name: &Word,
    names: impl Iterator<Item = &'n str>,
    keyword: &str,
) -> Error {
    let advice = match suggest(&name.text, names) {
        Some(other) => format!("did you mean `{other}`?"),
        None => format!("describe it with `{keyword} {} {{ … }}` in `policy`", name.text),
    };
    name.location.error(format!("there is no {what} `{}`: {advice}", name.text))
}

/// A word that means nothing here.
fn unknown_word<'n>(what: &str, name: &Word, names: impl Iterator<Item = &'n str>) -> Error {
    let names: Vec<_> = names.collect();
    let advice = match suggest(&name.text, names.iter().copied()) {
        Some(other) => format!("did you mean `{other}`?"),
        None => format!("there are {}", names.join(", ")),
    };
    name.location.error(format!("there is no {what} `{}` here: {advice}", name.text))
}
