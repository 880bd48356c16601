//! Command lines: one text, cut into words as a shell does it, and no more of a shell than that.

use weft_config::{Error, Located};

use super::names::Names;
use super::template::Template;

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// Never empty.
    pub(crate) words: Vec<Template>,
    /// The text as it stands in the file, for people.
    pub(crate) text: Located<String>,
}

impl CommandLine {
    /// Cuts the text at its spaces. Single quotes keep what they enclose together; names are
    /// replaced afterwards, so that a value is never cut.
    pub(crate) fn parse(text: Located<String>, names: &Names) -> Result<Self, Error> {
        let words = split(&text.value).ok_or_else(|| {
            text.error("a single quote is not closed in this command: add `'` at its end")
        })?;
        if words.is_empty() {
            return Err(text.error("the command is empty: write a program and its arguments"));
        }
        let template = |word: &String| Template::parse(word, &text, names);
        let words = words.iter().map(template).collect::<Result<_, _>>()?;
        Ok(Self { words, text })
    }
}

/// `None` if a quote is not closed.
fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    (!quoted).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_separate_and_quotes_join() {
        assert_eq!(split(" a  b\tc ").unwrap(), ["a", "b", "c"]);
        assert_eq!(split("sh -c 'a  b' ''").unwrap(), ["sh", "-c", "a  b", ""]);
        assert_eq!(split("a'b c'd").unwrap(), ["ab cd"]);
        assert_eq!(split("").unwrap(), [""; 0]);
    }

    #[test]
    fn unclosed_quotes_are_refused() {
        assert_eq!(split("a 'b"), None);
    }
}
