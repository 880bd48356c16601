//! `variable …`, `alias …` and `file …`: what comes into a lab from outside, or is made for it.

use std::collections::BTreeMap;

use weft_config::{Block, ByteSize, Entry, Error, Errors, Located, Name, gather, suggest};

use super::names::{Meaning, Names};
use super::template::Template;

/// The largest file that is made of random bytes.
const LARGEST_FILE: u64 = 64 << 30;

/// Texts for variables that the user gives, by name.
pub type Variables = BTreeMap<String, String>;

/// A name for a text that the host program makes out of a kind and words.
#[derive(Debug, Clone)]
pub(crate) struct Alias {
    pub(crate) kind: Located<String>,
    pub(crate) words: Vec<Template>,
}

/// A file that commands find in their working directory.
#[derive(Debug, Clone)]
pub(crate) struct InputFile {
    /// Its name there, without directory.
    pub(crate) name: Located<Name>,
    pub(crate) content: Content,
}

/// What an input file holds.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// What the file of this machine at this path holds.
    Copy(Located<Template>),
    /// This many random bytes, which follow from the lab's seed.
    Random(u64),
}

/// Reads the variables; the values of `given` take the place of those in the file.
pub(super) fn read_variables(
    block: &mut Block<'_>,
    given: &Variables,
    names: &mut Names,
) -> Result<Vec<String>, Errors> {
    let mut known = Vec::new();
    let values =
        gather(block.many("variable").into_iter().enumerate().map(|(index, mut entry)| {
            let name: Located<Name> = entry.argument("the name of the variable")?;
            names.add(&name, Meaning::Variable(index))?;
            known.push(name.value.as_str().to_owned());
            Ok(read_variable(&mut entry, &name, given)?)
        }))?;
    let unknown = given.keys().filter(|name| !known.contains(name));
    gather(unknown.map(|name| Err::<(), _>(unknown_variable(block, name, &known).into())))?;
    Ok(values)
}

fn unknown_variable(block: &Block<'_>, name: &str, known: &[String]) -> Error {
    let advice = match suggest(name, known.iter().map(String::as_str)) {
        Some(similar) => format!("did you mean `{similar}`?"),
        None if known.is_empty() => "this lab has no variables".to_owned(),
        None => format!("this lab has {}", known.join(", ")),
    };
    block.error(format!("the variable `{name}`, which was set, does not exist: {advice}"))
}

fn read_variable(
    entry: &mut Entry<'_>,
    name: &Located<Name>,
    given: &Variables,
) -> Result<String, Error> {
    let default = match (entry.take("default"), entry.take("here")) {
        (true, _) => Some(entry.argument("its value")?),
        (false, true) => Some(directory_of(name)?),
        (false, false) => None,
    };
    entry.end()?;
    let value = given.get(name.value.as_str()).cloned().or(default);
    value.ok_or_else(|| {
        let name = &name.value;
        entry.error(format!(
            "the variable `{name}` has no value: give one with `--set {name}=VALUE`, or write \
             `variable {name} default VALUE;`"
        ))
    })
}

/// The whole path of the directory of the lab file, in which the name of a variable stands.
fn directory_of(name: &Located<Name>) -> Result<String, Error> {
    let directory = std::path::absolute(name.location.source_name())
        .ok()
        .and_then(|file| file.parent()?.to_str().map(str::to_owned));
    directory.ok_or_else(|| name.error("the directory of this file has no name that can be used"))
}

/// Reads the aliases. An alias may use the names of those before it.
pub(super) fn read_aliases(block: &mut Block<'_>, names: &mut Names) -> Result<Vec<Alias>, Errors> {
    let mut entries = block.many("alias");
    let heads = gather(entries.iter_mut().enumerate().map(|(index, entry)| {
        let name: Located<Name> = entry.argument("the name of the alias")?;
        names.add(&name, Meaning::Alias(index))?;
        Ok(entry.argument::<Located<String>>("the kind of the alias")?)
    }))?;
    let names = &*names;
    gather(entries.iter_mut().zip(heads).enumerate().map(|(index, (entry, kind))| {
        let words: Vec<Located<String>> = entry.rest()?;
        entry.end()?;
        let template = |word: &Located<String>| {
            let template = Template::parse(&word.value, word, names)?;
            let is_later = |meaning| matches!(meaning, Meaning::Alias(other) if other >= index);
            if template.meanings().any(is_later) {
                let sentence = "this word uses an alias that is defined later: move it up";
                return Err(word.error(sentence).into());
            }
            Ok(template)
        };
        Ok(Alias { kind, words: gather(words.iter().map(template))? })
    }))
}

/// Reads the input files.
pub(super) fn read_files(block: &mut Block<'_>, names: &Names) -> Result<Vec<InputFile>, Errors> {
    let mut seen: BTreeMap<String, Entry<'_>> = BTreeMap::new();
    gather(block.many("file").into_iter().map(|mut entry| {
        let name: Located<Name> = entry.argument("the name of the file")?;
        if let Some(first) = seen.insert(name.value.as_str().to_owned(), entry.clone()) {
            return Err(entry.duplicate_of(&first).into());
        }
        let content = read_content(&mut entry, names)?;
        entry.end()?;
        Ok(InputFile { name, content })
    }))
}

fn read_content(entry: &mut Entry<'_>, names: &Names) -> Result<Content, Error> {
    if entry.take("size") {
        let size: Located<ByteSize> = entry.argument("how large the file is")?;
        return match size.value.bytes() {
            bytes if bytes <= LARGEST_FILE => Ok(Content::Random(bytes)),
            _ => {
                Err(size.error("a file of random bytes has at most 64 GiB: choose a smaller size"))
            }
        };
    }
    entry.expect("from")?;
    let path: Located<String> = entry.argument("the path of the file")?;
    let value = Template::parse(&path.value, &path, names)?;
    Ok(Content::Copy(Located { value, location: path.location }))
}
