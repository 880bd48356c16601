//! Words that contain `@NAME`.
//!
//! `@NAME` stands for the value of a variable, an alias or a node, anywhere in a word; `@@` is a
//! single `@`. As names may contain `-` and addresses use it as a separator, a name ends where it
//! stops being a known one: with a node `client1`, `@client1-1` is the value of `client1` and `-1`.

use weft_config::{Error, Located};

use super::names::{Meaning, Names};

/// A word, cut into fixed texts and names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(Meaning),
}

impl Template {
    /// Cuts `text`, which stands at the place of `word`, into its parts.
    pub(crate) fn parse(text: &str, word: &Located<String>, names: &Names) -> Result<Self, Error> {
        let mut parts = Vec::new();
        let mut fixed = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('@') {
            fixed.push_str(before);
            if let Some(behind) = behind.strip_prefix('@') {
                fixed.push('@');
                rest = behind;
                continue;
            }
            let (length, meaning) =
                longest_name(behind, names).ok_or_else(|| unknown(behind, word, names))?;
            if meaning == Meaning::Nameless {
                let node = &behind[..length];
                return Err(word.error(format!(
                    "node `{node}` has no identifier that `@{node}` could stand for: only nodes of kind `weft` have one"
                )));
            }
            parts.push(Part::Text(std::mem::take(&mut fixed)));
            parts.push(Part::Value(meaning));
            rest = &behind[length..];
        }
        fixed.push_str(rest);
        parts.push(Part::Text(fixed));
        parts.retain(|part| *part != Part::Text(String::new()));
        Ok(Self(parts))
    }

    /// Every name that is used.
    pub(crate) fn meanings(&self) -> impl Iterator<Item = Meaning> {
        self.0.iter().filter_map(|part| match part {
            Part::Value(meaning) => Some(*meaning),
            Part::Text(_) => None,
        })
    }

    /// The word with the values in place of the names.
    pub(crate) fn expand<'v>(&self, value: impl Fn(Meaning) -> &'v str) -> String {
        let text = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Value(meaning) => value(*meaning).to_owned(),
        };
        self.0.iter().map(text).collect()
    }
}

/// The part of `text` at its beginning that could be a name.
fn candidate(text: &str) -> &str {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    &text[..text.find(|c| !is_inner(c)).unwrap_or(text.len())]
}

/// The longest known name that `text` begins with, and that ends at a `-` or where no name goes on.
fn longest_name(text: &str, names: &Names) -> Option<(usize, Meaning)> {
    let mut name = candidate(text);
    loop {
        if let Some(meaning) = names.meaning(name) {
            return Some((name.len(), meaning));
        }
        name = &name[..name.rfind('-')?];
    }
}

fn unknown(text: &str, word: &Located<String>, names: &Names) -> Error {
    match candidate(text) {
        "" => word.error("no name stands behind `@`: write `@@` for the character itself"),
        name => word.error(format!("the name `@{name}` is unknown: {}", names.advice(name))),
    }
}

#[cfg(test)]
mod tests {
    use weft_config::{Document, Name};

    use super::*;

    fn names() -> Names {
        let document = Document::parse("t", "n client1 client1-a tree;").unwrap();
        let mut entry = document.block().one("n").unwrap().unwrap();
        let mut names = Names::default();
        for (index, name) in entry.rest::<Located<Name>>().unwrap().iter().enumerate() {
            names.add(name, Meaning::Node(index)).unwrap();
        }
        names
    }

    fn expand(text: &str) -> Result<String, String> {
        let document = Document::parse("t", "word x;").unwrap();
        let word: Located<String> = document.block().required("word").unwrap();
        let template = Template::parse(text, &word, &names()).map_err(|e| e.kind().to_string())?;
        let values = ["C", "A", "T"];
        Ok(template.expand(|meaning| match meaning {
            Meaning::Node(index) => values[index],
            _ => unreachable!("only nodes are named"),
        }))
    }

    #[test]
    fn names_are_replaced_anywhere_in_a_word() {
        assert_eq!(expand("@client1").unwrap(), "C");
        assert_eq!(expand("a@client1:@tree,b").unwrap(), "aC:T,b");
        assert_eq!(expand("no names").unwrap(), "no names");
        assert_eq!(expand("").unwrap(), "");
    }

    #[test]
    fn names_end_where_they_stop_being_known() {
        assert_eq!(expand("@client1-1:@tree-01").unwrap(), "C-1:T-01");
        assert_eq!(expand("@client1-a-1").unwrap(), "A-1");
        assert_eq!(expand("@client1->1:@tree").unwrap(), "C->1:T");
    }

    #[test]
    fn doubled_signs_are_single_ones() {
        assert_eq!(expand("user@@host").unwrap(), "user@host");
        assert_eq!(expand("@@@tree").unwrap(), "@T");
    }

    #[test]
    fn unknown_names_are_refused_with_advice() {
        assert!(expand("@clietn1").unwrap_err().contains("did you mean `@client1`?"));
        assert!(expand("a @ b").unwrap_err().contains("`@@`"));
        assert!(expand("@-1").unwrap_err().contains("unknown"));
    }
}
