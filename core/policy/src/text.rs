//! Routes and names of policies as texts, for tools and tests.

use std::borrow::Cow;

use weft_config::{Document, Entry, Error, Errors, Located, Name, gather, suggest};

use crate::as_path::AsPath;
use crate::read::Word;
use crate::read::bad;
use crate::value::{Kind, Route, Value, Variable};

/// Names of policies, as if they were written in a text of this name.
///
/// # Errors
/// Those that are no names.
pub fn names(source: &str, names: &[&str]) -> Result<Vec<Located<Name>>, Errors> {
    gather(names.iter().map(|name| {
        let document =
            Document::parse(source, &format!("policy {};", weft_config::Word::from(*name)))?;
        let mut entry = document.block().required_one("policy")?;
        Ok(entry.argument("the name of a policy")?)
    }))
}

/// A route that is written down: each variable that has a value as a statement.
///
/// ```text
/// prefix 192.0.2.0/24; as-path 65001 65002; community 65000:1 no-export; med 5;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextRoute {
    values: Vec<Option<Value<'static>>>,
}

impl TextRoute {
    /// Reads a route with these variables.
    ///
    /// # Errors
    /// Every mistake with its place.
    pub fn parse(source: &str, text: &str, variables: &'static [Variable]) -> Result<Self, Errors> {
        let document = Document::parse(source, text)?;
        let mut values = vec![None; variables.len()];
        let read = |entry: Entry<'_>| -> Result<(), Errors> {
            let word = |word: &weft_config::Word| Word {
                text: word.text().to_owned(),
                location: entry.location_of(word.span()),
            };
            let words: Vec<_> = entry.statement().words().iter().map(word).collect();
            let (name, rest) = (&words[0], &words[1..]);
            let place = variables.iter().position(|one| one.name == name.text);
            let place = place.ok_or_else(|| unknown(name, variables))?;
            if entry.statement().block().is_some() || values[place].is_some() {
                let sentence = format!("`{}` is written once, without a block", name.text);
                return Err(name.location.error(sentence).into());
            }
            values[place] = Some(value(variables[place].kind, name, rest)?);
            Ok(())
        };
        gather(document.block().all().into_iter().map(read))?;
        Ok(Self { values })
    }

    /// Gives a variable a value, if it has none.
    pub fn or_set(&mut self, variable: usize, value: Value<'static>) {
        self.values[variable].get_or_insert(value);
    }
}

impl Route for TextRoute {
    fn read(&self, variable: usize) -> Option<Value<'_>> {
        self.values.get(variable)?.clone()
    }
}

fn unknown(name: &Word, variables: &[Variable]) -> Error {
    let names = variables.iter().map(|one| one.name);
    let advice = match suggest(&name.text, names.clone()) {
        Some(other) => format!("did you mean `{other}`?"),
        None => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
    };
    name.location.error(format!("routes have no `{}`: {advice}", name.text))
}

fn value(kind: Kind, name: &Word, rest: &[Word]) -> Result<Value<'static>, Error> {
    let joined = || rest.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    match kind {
        Kind::AsPath => {
            let path: AsPath<'static> = joined().parse().map_err(|error| bad(name, &error))?;
            return Ok(Value::AsPath(path));
        }
        Kind::Communities(kind) => {
            let words = rest.iter();
            let all = words.map(|word| kind.parse(&word.text).map_err(|error| bad(word, &error)));
            return Ok(Value::Communities(Cow::Owned(all.collect::<Result<_, _>>()?)));
        }
        Kind::Text => return Ok(Value::Text(Cow::Owned(joined()))),
        _ => {}
    }
    let [word] = rest else {
        return Err(name.location.error(format!("behind `{}` comes {}", name.text, kind.what())));
    };
    let text = word.text.as_str();
    let value = match kind {
        Kind::Switch => {
            ["off", "on"].iter().position(|one| *one == text).map(|on| Value::Switch(on == 1))
        }
        Kind::Number { most } => {
            text.parse().ok().filter(|number| *number <= most).map(Value::Number)
        }
        Kind::Word(known) => known.iter().position(|one| *one == text).map(Value::Word),
        Kind::Address => text.parse().ok().map(Value::Address),
        Kind::Prefix => text.parse::<ipnet::IpNet>().ok().map(|net| Value::Prefix(net.trunc())),
        Kind::Text | Kind::AsPath | Kind::Communities(_) => None,
    };
    let what = match kind {
        Kind::Word(known) => format!("one of {}", known.join(", ")),
        Kind::Number { most } => format!("a number up to {most}"),
        kind => kind.what().to_owned(),
    };
    value.ok_or_else(|| bad(word, &format!("{} is {what}", name.text)))
}
