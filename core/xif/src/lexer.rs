//! Words, marks and documentation lines of an interface file.

use crate::XifError;

/// One piece of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// A name, a type word or a version: letters, digits, `_`, `-` and `.`.
    Word(&'a str),
    /// One of `/ { } ; : ? & [ ] < >`.
    Mark(char),
    /// `->`
    Arrow,
    /// The text of a `///` line.
    Doc(&'a str),
    /// The end of the text.
    End,
}

/// Cuts a text into tokens, one at a time.
pub(crate) struct Lexer<'a> {
    pub(crate) source: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(source: &'a str) -> Self {
        Self { source, at: 0 }
    }

    /// The next token and the offset of its first byte.
    pub(crate) fn next(&mut self) -> Result<(usize, Token<'a>), XifError> {
        loop {
            let rest = &self.source[self.at..];
            let trimmed = rest.trim_start();
            self.at = self.source.len() - trimmed.len();
            // `//` but not `///` is a remark that documents nothing.
            if trimmed.starts_with("//") && !trimmed.starts_with("///") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
                continue;
            }
            let start = self.at;
            let (len, token) = self.token(trimmed)?;
            self.at += len;
            return Ok((start, token));
        }
    }

    fn token(&self, rest: &'a str) -> Result<(usize, Token<'a>), XifError> {
        let Some(first) = rest.chars().next() else { return Ok((0, Token::End)) };
        if let Some(doc) = rest.strip_prefix("///") {
            let line = doc.split('\n').next().unwrap_or(doc);
            return Ok((3 + line.len(), Token::Doc(line.trim())));
        }
        if rest.starts_with("->") {
            return Ok((2, Token::Arrow));
        }
        if "/{};:?&[]<>".contains(first) {
            return Ok((1, Token::Mark(first)));
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        // A `-` is part of a word unless it begins an arrow.
        let len = rest
            .char_indices()
            .find(|(at, c)| !is_part(*c) && (*c != '-' || rest[*at..].starts_with("->")))
            .map_or(rest.len(), |(at, _)| at);
        match len {
            0 => Err(XifError::at(
                self.source,
                self.at,
                format!("unexpected character `{}`", first.escape_debug()),
            )),
            _ => Ok((len, Token::Word(&rest[..len]))),
        }
    }
}
