//! From text to tokens: words, strings, `{`, `}`, `;`; comments and space are skipped.
//!
//! The lexer never stops at a mistake: it notes it and returns the token that was probably meant,
//! so that one pass finds as many mistakes as possible.

use std::sync::Arc;

use crate::error::{ErrorKind, MAX_ERRORS};
use crate::source::{Source, Span};
use crate::statement::Word;

/// What stands at a place of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Word(Word),
    Open(Span),
    Close(Span),
    Semicolon(Span),
    /// The end of the text; the span is empty.
    End(Span),
}

impl Token {
    pub(crate) fn span(&self) -> Span {
        match self {
            Token::Word(word) => word.span(),
            &(Token::Open(span)
            | Token::Close(span)
            | Token::Semicolon(span)
            | Token::End(span)) => span,
        }
    }
}

/// Which bytes may stand in a word without quotes.
static WORD_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128u8 {
        let is_mark = matches!(
            byte,
            b'-' | b':'
                | b'.'
                | b'/'
                | b'*'
                | b'>'
                | b'%'
                | b'!'
                | b'@'
                | b'='
                | b'+'
                | b'_'
                | b','
        );
        table[byte as usize] = byte.is_ascii_alphanumeric() || is_mark;
        byte += 1;
    }
    table
};

/// Whether this byte of UTF-8 may stand in a word without quotes; all such are ASCII.
pub(crate) fn is_word_byte(byte: u8) -> bool {
    WORD_BYTES[usize::from(byte)]
}

/// Whether `c` may stand in a word without quotes.
fn is_word_character(c: char) -> bool {
    u8::try_from(c).is_ok_and(is_word_byte)
}

/// What ends a bare word.
fn is_delimiter(c: char) -> bool {
    c.is_ascii_whitespace() || matches!(c, '{' | '}' | ';' | '"' | '#')
}

pub(crate) struct Lexer<'t> {
    source: &'t Arc<Source>,
    text: &'t str,
    /// Byte offset of the next character.
    at: usize,
    mistakes: Vec<(Span, ErrorKind)>,
    /// Where comments stand, their marks included, in the order of the text.
    comments: Vec<Span>,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(source: &'t Arc<Source>) -> Self {
        let text = source.text();
        let byte_order_mark = text.chars().next().filter(|&c| c == '\u{feff}');
        Self {
            source,
            text,
            at: byte_order_mark.map_or(0, char::len_utf8),
            mistakes: Vec::new(),
            comments: Vec::new(),
        }
    }

    /// Notes a mistake.
    pub(crate) fn report(&mut self, span: Span, kind: ErrorKind) {
        self.mistakes.push((span, kind));
    }

    /// Whether there are so many mistakes that it is useless to go on.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.mistakes.len() >= MAX_ERRORS
    }

    pub(crate) fn into_mistakes(self) -> Vec<(Span, ErrorKind)> {
        self.mistakes
    }

    /// The comments seen so far, taken out.
    pub(crate) fn take_comments(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.comments)
    }

    /// The next token; at the end of the text, again and again `End`.
    pub(crate) fn next(&mut self) -> Token {
        self.skip_space_and_comments();
        let start = self.at;
        let Some(first) = self.peek() else {
            return Token::End(Span::new(start, start));
        };
        let make: fn(Span) -> Token = match first {
            '{' => Token::Open,
            '}' => Token::Close,
            ';' => Token::Semicolon,
            '"' => return Token::Word(self.string()),
            _ => return Token::Word(self.bare_word()),
        };
        self.at += 1;
        make(Span::new(start, self.at))
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_space_and_comments(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with('#') || trimmed.starts_with("//") {
                let start = self.at;
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
                self.comments.push(Span::new(start, self.at));
            } else if trimmed.starts_with("/*") {
                let start = self.at;
                self.skip_block_comment();
                self.comments.push(Span::new(start, self.at));
            } else {
                return;
            }
        }
    }

    fn skip_block_comment(&mut self) {
        let start = self.at;
        match self.rest()[2..].find("*/") {
            Some(length) => self.at += 2 + length + 2,
            None => {
                self.report(Span::new(start, start + 2), ErrorKind::UnclosedComment);
                self.at = self.text.len();
            }
        }
    }

    fn bare_word(&mut self) -> Word {
        let start = self.at;
        let rest = self.rest();
        // Nearly all words end where the first byte stands that belongs to none.
        let plain = rest.bytes().position(|byte| !is_word_byte(byte)).unwrap_or(rest.len());
        let more = rest[plain..].find(is_delimiter).unwrap_or(rest.len() - plain);
        let text = &rest[..plain + more];
        self.at += text.len();
        let span = Span::new(start, self.at);
        if text == "*/" {
            self.report(span, ErrorKind::StrayCommentEnd);
        } else if more > 0
            && let Some((offset, c)) = text.char_indices().find(|&(_, c)| !is_word_character(c))
        {
            let from = start + offset;
            self.report(Span::new(from, from + c.len_utf8()), stray_character(c, text));
        }
        self.require_space_before_word();
        Word::bare(self.source, span)
    }

    fn string(&mut self) -> Word {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let from = self.at;
            match self.peek() {
                None | Some('\n') => {
                    self.report(Span::new(start, from), ErrorKind::UnclosedString);
                    return Word::new(text, Span::new(start, from), true);
                }
                Some('"') => {
                    self.at += 1;
                    break;
                }
                Some('\\') => text.extend(self.escape()),
                Some(c) => {
                    self.at += c.len_utf8();
                    // A carriage return before the line's end is reported as the unclosed string.
                    if c.is_control() && c != '\t' && c != '\r' {
                        self.report(Span::new(from, self.at), ErrorKind::ControlInString(c));
                    }
                    text.push(c);
                }
            }
        }
        let span = Span::new(start, self.at);
        self.require_space_before_word();
        Word::new(text, span, true)
    }

    /// The character that the escape at this place stands for.
    fn escape(&mut self) -> Option<char> {
        let start = self.at;
        self.at += 1;
        let letter = self.peek().filter(|&c| c != '\n');
        self.at += letter.map_or(0, char::len_utf8);
        let value = match letter {
            Some('"') => Some('"'),
            Some('\\') => Some('\\'),
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('t') => Some('\t'),
            Some('u') => self.character_number(),
            _ => None,
        };
        if value.is_none() {
            let wrong = self.text[start + 1..self.at].to_owned();
            self.report(Span::new(start, self.at), ErrorKind::UnknownEscape(wrong));
        }
        value
    }

    /// `{1f600}`: one to six hexadecimal digits in braces.
    fn character_number(&mut self) -> Option<char> {
        const LONGEST: usize = 6;
        let digits = self.rest().strip_prefix('{')?;
        let length = digits.bytes().take(LONGEST + 1).position(|byte| byte == b'}')?;
        let digits = &digits[..length];
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let value = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
        self.at += length + 2;
        Some(value)
    }

    /// `"a"b`, `a"b"` and `"a""b"` look as if they were one word, and are not.
    fn require_space_before_word(&mut self) {
        let touches = match self.peek() {
            Some('"') => true,
            Some(c) => !is_delimiter(c),
            None => false,
        };
        if touches {
            self.report(Span::new(self.at, self.at + 1), ErrorKind::MissingSpace);
        }
    }
}

fn stray_character(c: char, word: &str) -> ErrorKind {
    if c.is_whitespace() || crate::source::is_unsafe_to_show(c) {
        ErrorKind::Invisible(c)
    } else {
        let shortened: String = word.chars().take(40).collect();
        let ellipsis = if shortened.len() < word.len() { "…" } else { "" };
        ErrorKind::NeedsQuotes(c, format!("{}{ellipsis}", crate::print::quoted(&shortened)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The tokens as text: words in brackets, and the kinds of the mistakes.
    fn check(text: &str) -> (String, Vec<ErrorKind>) {
        let source = Source::new("t", text);
        let mut lexer = Lexer::new(&source);
        let mut out = String::new();
        loop {
            match lexer.next() {
                Token::Word(word) => out.push_str(&format!("[{}]", word.text())),
                Token::Open(_) => out.push('{'),
                Token::Close(_) => out.push('}'),
                Token::Semicolon(_) => out.push(';'),
                Token::End(_) => break,
            }
        }
        (out, lexer.into_mistakes().into_iter().map(|(_, kind)| kind).collect())
    }

    fn good(text: &str) -> String {
        let (tokens, mistakes) = check(text);
        assert_eq!(mistakes, [], "in {text:?}");
        tokens
    }

    fn mistake(text: &str) -> ErrorKind {
        let (tokens, mut mistakes) = check(text);
        assert_eq!(mistakes.len(), 1, "in {text:?}, tokens {tokens}, mistakes {mistakes:?}");
        mistakes.remove(0)
    }

    #[test]
    fn addresses_and_endpoints_are_single_words() {
        for word in [
            "hid-0123456789abcdef0123456789abcdef01234567-1:xdp-0123456789abcdef0123456789abcdef01234567-10",
            "hid-aa->1:xdp-bb-01",
            "hid-aa-*1",
            "!hid-aa-0",
            "10.0.0.1:13781",
            "10.0.1.1/24",
            "server:eth0",
            "user@host",
            "a=b+c_d,e",
            "1%",
            "http://host/path",
        ] {
            assert_eq!(good(word), format!("[{word}]"));
        }
    }

    #[test]
    fn comments_of_all_three_forms_are_skipped() {
        assert_eq!(good("a # b\nc // d\n/* e\n; */f;/**/g#h"), "[a][c][f];[g]");
    }

    #[test]
    fn slashes_inside_a_word_begin_no_comment() {
        assert_eq!(good("a//b c/*d"), "[a//b][c/*d]");
    }

    #[test]
    fn hash_ends_a_word_and_begins_a_comment() {
        assert_eq!(good("10ms# c\n;"), "[10ms];");
    }

    #[test]
    fn strings_keep_delimiters_and_decode_escapes() {
        assert_eq!(good(r#""a b;{}# \"\\\n\r\t\u{e9}é" """#), "[a b;{}# \"\\\n\r\té\u{e9}][]");
    }

    #[test]
    fn byte_order_mark_at_the_beginning_is_skipped() {
        assert_eq!(good("\u{feff}a;"), "[a];");
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(mistake("a(b)"), ErrorKind::NeedsQuotes('(', "\"a(b)\"".into()));
        assert_eq!(mistake("a\u{a0}b"), ErrorKind::Invisible('\u{a0}'));
        assert_eq!(mistake("\"a\nb"), ErrorKind::UnclosedString);
        assert_eq!(mistake("\"a"), ErrorKind::UnclosedString);
        assert_eq!(mistake("\"a\u{7}\""), ErrorKind::ControlInString('\u{7}'));
        assert_eq!(mistake(r#""\q""#), ErrorKind::UnknownEscape("q".into()));
        assert_eq!(mistake(r#""\u{110000}""#), ErrorKind::UnknownEscape("u".into()));
        assert_eq!(mistake(r#""\u{0000041}""#), ErrorKind::UnknownEscape("u".into()));
        assert_eq!(mistake("\"a\"b"), ErrorKind::MissingSpace);
        assert_eq!(mistake("a\"b\""), ErrorKind::MissingSpace);
        assert_eq!(mistake("\"a\"\"b\""), ErrorKind::MissingSpace);
        assert_eq!(mistake("a /* b"), ErrorKind::UnclosedComment);
        assert_eq!(mistake("a /*/"), ErrorKind::UnclosedComment);
        assert_eq!(mistake("10ms/* b */"), ErrorKind::StrayCommentEnd);
    }

    #[test]
    fn backslash_at_the_end_of_a_line_is_a_bad_escape_of_an_unclosed_string() {
        let (_, mistakes) = check("\"a\\\nb");
        assert_eq!(mistakes, [ErrorKind::UnknownEscape(String::new()), ErrorKind::UnclosedString]);
    }

    proptest! {
        #[test]
        fn spans_of_words_show_the_words(text in "[a-z/#*\"\\\\;{} \n]{0,60}") {
            let source = Source::new("t", &text);
            let mut lexer = Lexer::new(&source);
            while let token @ (Token::Word(_) | Token::Open(_)) = lexer.next() {
                if let Token::Word(word) = token && !word.quoted() {
                    prop_assert_eq!(&text[word.span().range()], word.text());
                }
            }
        }
    }
}
