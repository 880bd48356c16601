//! From the text of a schema to its tables.

use std::sync::Arc;

use super::value::{TYPES, Type, Value};
use super::{Case, Key, Kind, List, Members, Schema, Shape};
use crate::block::Block;
use crate::document::Document;
use crate::entry::Entry;
use crate::error::{Error, Errors, gather};
use crate::suggest::{list, suggest};
use crate::tree::VERSION;
use crate::value::{Located, Name};

/// The statements that describe statements.
const KINDS: &[&str] = &["container", "list", "leaf", "leaf-list", "flag", "words"];

pub(super) fn schema(source_name: &str, text: &str) -> Result<Schema, Errors> {
    let document = Document::parse(source_name, text)?;
    let top = document.read(VERSION, members)?;
    Ok(Schema { top: Arc::new(top) })
}

/// The descriptions in a block.
fn members(block: &mut Block<'_>) -> Result<Members, Errors> {
    let any = block.flag("any")?;
    let entries = block.many_of(KINDS);
    let kinds = gather(entries.into_iter().map(kind))?;
    let mut members = Members { kinds: Vec::new(), any, has_secret: false };
    kinds.into_iter().try_for_each(|kind| add(&mut members, Arc::new(kind)))?;
    Ok(members)
}

fn add(members: &mut Members, kind: Arc<Kind>) -> Result<(), Errors> {
    if let Some(first) = members.find(&kind.name) {
        let sentence = format!("`{}` is described twice: remove one of the two", kind.name);
        let error = kind.location.error(sentence);
        return Err(error.related("first described here", first.location.clone()).into());
    }
    members.has_secret |= kind.has_secret();
    members.kinds.push(kind);
    Ok(())
}

fn kind(mut entry: Entry<'_>) -> Result<Kind, Errors> {
    let name: Located<Name> = entry.argument("the name of the statement")?;
    let form = entry.keyword();
    let value = match form {
        "leaf" | "leaf-list" => Some(value_type(&mut entry)?),
        _ => None,
    };
    let location = name.location.clone();
    entry.read_block(|block| {
        let help = block.leaf::<String>("help")?.unwrap_or_default();
        let known_as = match block.one("known-as")? {
            Some(mut entry) => entry.rest()?,
            None => Vec::new(),
        };
        let has_value = value.is_some();
        let secret = (has_value || form == "words") && block.flag("secret")?;
        let can_miss = matches!(form, "leaf" | "container" | "flag");
        let mandatory = can_miss && block.flag("mandatory")?;
        let shape = match value {
            Some(value) if form == "leaf" => leaf(value, mandatory, block)?,
            Some(value) => {
                let value = limits(value, block)?;
                let alone = alone(&value, block)?;
                Shape::LeafList { value, at_most: at_most(block)?, alone }
            }
            None => match form {
                "container" => Shape::Container(Arc::new(members(block)?)),
                "list" => list_of(block)?,
                "words" => Shape::Words { usage: block.leaf("usage")?.unwrap_or_default() },
                _ => Shape::Flag,
            },
        };
        let name = name.value.as_str().to_owned();
        Ok(Kind { name, help, mandatory, secret, shape, known_as, location })
    })
}

fn at_most(block: &mut Block<'_>) -> Result<Option<usize>, Error> {
    block.leaf_in("at-most", 1..=usize::MAX)
}

/// The values of a leaf-list that cannot stand beside others.
fn alone(value: &Value, block: &mut Block<'_>) -> Result<Vec<String>, Errors> {
    let Some(mut entry) = block.one("alone")? else { return Ok(Vec::new()) };
    let words: Vec<Located<String>> = entry.rest()?;
    if words.is_empty() {
        return Err(entry.error("`alone` needs the values that stand alone: add them").into());
    }
    words.iter().try_for_each(|word| fits(value, word))?;
    Ok(words.into_iter().map(|word| word.value).collect())
}

fn leaf(value: Value, mandatory: bool, block: &mut Block<'_>) -> Result<Shape, Errors> {
    let value = limits(value, block)?;
    let default: Option<Located<String>> = block.leaf("default")?;
    if let Some(default) = &default {
        fits(&value, default)?;
        if mandatory {
            let sentence = "what is mandatory has no default: remove one of the two";
            return Err(default.error(sentence).into());
        }
    }
    Ok(Shape::Leaf { value, default: default.map(|default| default.value) })
}

/// The type that the words of the statement name.
fn value_type(entry: &mut Entry<'_>) -> Result<Value, Errors> {
    let word: Located<String> = entry.argument("the type of the value")?;
    let names = TYPES.iter().map(|(name, _)| *name);
    let Some((_, kind)) = TYPES.iter().find(|(name, _)| *name == word.value) else {
        let advice = match suggest(&word.value, names.clone()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("there are {}", list(&names.collect::<Vec<_>>())),
        };
        return Err(word.error(format!("`{}` is no type: {advice}", word.value)).into());
    };
    let mut value = Value::new(*kind);
    if *kind == Type::OneOf {
        value.words = entry.rest::<String>()?;
        if value.words.is_empty() {
            return Err(word.error("`one-of` needs the accepted words: add them").into());
        }
    }
    Ok(value)
}

/// What a block says of its value.
fn limits(mut value: Value, block: &mut Block<'_>) -> Result<Value, Errors> {
    value.form = block.leaf("form")?;
    if let Some(entry) = block.one("range")? {
        value.range = Some(range(value.kind, entry)?);
    }
    if let Some(example) = block.leaf::<Located<String>>("example")? {
        fits(&value, &example)?;
        value.example = Some(example.value);
    }
    Ok(value)
}

fn range(kind: Type, mut entry: Entry<'_>) -> Result<[(String, i128); 2], Errors> {
    if !kind.is_measured() {
        let sentence = format!("values of the type `{}` have no range: remove this", kind.word());
        return Err(entry.error(sentence).into());
    }
    let mut bound = |what| -> Result<(String, i128), Errors> {
        let word: Located<String> = entry.argument(what)?;
        match kind.measure(&word.value) {
            Ok(Some(size)) => Ok((word.value, size)),
            Ok(None) => Err(word.error("this has no order: write another bound").into()),
            Err(reason) => {
                let text = format!("`{}` is no bound of such values: {reason}", word.value);
                Err(word.error(text).into())
            }
        }
    };
    let bounds = [bound("the least value")?, bound("the greatest value")?];
    entry.end()?;
    if bounds[0].1 > bounds[1].1 {
        return Err(entry.error("the least value is above the greatest: swap them").into());
    }
    Ok(bounds)
}

/// Checks that a value of the schema itself fits its type.
fn fits(value: &Value, word: &Located<String>) -> Result<(), Errors> {
    value.check(&word.value).map_err(|kind| word.error(kind.to_string()).into())
}

fn list_of(block: &mut Block<'_>) -> Result<Shape, Errors> {
    let keys = gather(block.many("key").into_iter().map(key))?;
    if keys.is_empty() {
        let sentence = "a list needs a key: add for example `key name name;`";
        return Err(block.error(sentence).into());
    }
    let at_most = at_most(block)?;
    let cases = block.many("case");
    let members = members(block)?;
    let cases = gather(cases.into_iter().map(|entry| case(entry, &keys[0], &members)))?;
    Ok(Shape::List(List { keys, members: Arc::new(members), cases, at_most }))
}

fn key(mut entry: Entry<'_>) -> Result<Key, Errors> {
    let name: Name = entry.argument("the name of the key")?;
    let value = value_type(&mut entry)?;
    entry.read_block(|block| {
        let help = block.leaf::<String>("help")?.unwrap_or_default();
        Ok(Key { name: name.as_str().to_owned(), help, value: limits(value, block)? })
    })
}

/// What one key may hold: its own members and the common ones.
fn case(mut entry: Entry<'_>, key: &Key, common: &Members) -> Result<Case, Errors> {
    let word: Located<String> = entry.argument("the key")?;
    fits(&key.value, &word)?;
    let (help, mut members) = entry.read_block(|block| {
        let help = block.leaf::<String>("help")?.unwrap_or_default();
        Ok((help, members(block)?))
    })?;
    members.any |= common.any;
    common.kinds.iter().try_for_each(|kind| add(&mut members, Arc::clone(kind)))?;
    Ok(Case { key: word.value, help, members: Arc::new(members) })
}
