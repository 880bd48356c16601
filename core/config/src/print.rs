//! From statements to their canonical text: one statement per line, four spaces per level, quotes
//! only where a word needs them.

use std::fmt;

use crate::document::Document;
use crate::lexer::is_word_byte;
use crate::source::is_unsafe_to_show;
use crate::statement::{Statement, Word};

const INDENT: usize = 4;

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.statements().iter().try_for_each(|statement| write!(f, "{statement}"))
    }
}

/// The statement with its block, each line ended.
impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, self, 0)
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_bare() {
            true => f.write_str(self.text()),
            false => f.write_str(&quoted(self.text())),
        }
    }
}

fn print(f: &mut fmt::Formatter<'_>, statement: &Statement, depth: usize) -> fmt::Result {
    write!(f, "{:1$}", "", depth * INDENT)?;
    for (index, word) in statement.words().iter().enumerate() {
        write!(f, "{}{word}", if index == 0 { "" } else { " " })?;
    }
    match statement.block() {
        None => writeln!(f, ";"),
        Some([]) => writeln!(f, " {{}}"),
        Some(block) => {
            writeln!(f, " {{")?;
            block.iter().try_for_each(|inner| print(f, inner, depth + 1))?;
            writeln!(f, "{:1$}}}", "", depth * INDENT)
        }
    }
}

impl Word {
    /// Adds what `Display` prints.
    pub(crate) fn put(&self, out: &mut String) {
        match self.is_bare() {
            true => out.push_str(self.text()),
            false => out.push_str(&quoted(self.text())),
        }
    }
}

/// Whether the lexer reads `text` back without quotes.
pub(crate) fn is_bare(text: &str) -> bool {
    let is_comment_mark = text.starts_with("//") || text.starts_with("/*") || text == "*/";
    !text.is_empty() && text.bytes().all(is_word_byte) && !is_comment_mark
}

/// `text` as a string in quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_unsafe_to_show(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, canonical: &str) {
        assert_eq!(Document::parse("t", text).unwrap().to_string(), canonical);
    }

    #[test]
    fn canonical_text_has_one_statement_per_line_and_four_spaces_per_level() {
        check(
            "version 1;a{b 1  2;c{d;}}e{}",
            "version 1;\na {\n    b 1 2;\n    c {\n        d;\n    }\n}\ne {}\n",
        );
    }

    #[test]
    fn quotes_stay_only_where_they_are_needed() {
        check(
            r#"a "b" "" "c d" "//e" "/*" "*/" "f#" "é";"#,
            "a b \"\" \"c d\" \"//e\" \"/*\" \"*/\" \"f#\" \"é\";\n",
        );
    }

    #[test]
    fn escapes_are_printed_as_escapes() {
        check(r#"a "\"\\\n\r\t\u{1b}\u{202e}";"#, "a \"\\\"\\\\\\n\\r\\t\\u{1b}\\u{202e}\";\n");
    }
}
