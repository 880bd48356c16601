//! From tokens to statements.
//!
//! ```text
//! text      = statements end
//! statement = word { word } ( ";" | "{" statements "}" )
//! ```
//! At a mistake the parser notes it, takes what was probably meant, and goes on.

use std::sync::Arc;

use crate::document::MAX_DEPTH;
use crate::error::{Error, ErrorKind, Errors};
use crate::lexer::{Lexer, Token};
use crate::source::{Location, Source, Span};
use crate::statement::{Statement, Word};

/// All statements of the text, and where its comments stand.
pub(crate) fn parse(source: &Arc<Source>) -> Result<(Vec<Statement>, Vec<Span>), Errors> {
    Parser::new(source).run(|parser| {
        let statements = parser.document()?;
        Some((statements, parser.lexer.take_comments()))
    })
}

/// The only statement of the text, whose `;` may be left out.
pub(crate) fn parse_command(source: &Arc<Source>) -> Result<Statement, Errors> {
    Parser::new(source).run(Parser::command)
}

struct Parser<'s> {
    source: &'s Arc<Source>,
    lexer: Lexer<'s>,
    /// The token not yet consumed.
    ahead: Token,
    /// Nothing more is read, because of a mistake after which it makes no sense.
    stopped: bool,
    /// The opening brace of the innermost block that the end of the text left open.
    unclosed: Option<Span>,
}

impl<'s> Parser<'s> {
    fn new(source: &'s Arc<Source>) -> Self {
        let mut lexer = Lexer::new(source);
        let ahead = lexer.next();
        Self { source, lexer, ahead, stopped: false, unclosed: None }
    }

    /// Runs a rule; its result counts if there was no mistake.
    fn run<T>(mut self, rule: impl FnOnce(&mut Self) -> Option<T>) -> Result<T, Errors> {
        let result = rule(&mut self);
        let unclosed = self.unclosed;
        let source = self.source;
        let mut mistakes = self.lexer.into_mistakes();
        mistakes.sort_by_key(|&(span, _)| span);
        Errors::check(mistakes.into_iter().map(|(span, kind)| {
            let opened_here =
                matches!(kind, ErrorKind::UnclosedBlock).then_some(unclosed).flatten();
            let error = Error::new(kind, Location::new(source, span));
            match opened_here {
                Some(open) => error.related("the block begins here", Location::new(source, open)),
                None => error,
            }
        }))?;
        Ok(result.expect("a rule without a result reports why"))
    }

    fn advance(&mut self) -> Token {
        let next = self.lexer.next();
        std::mem::replace(&mut self.ahead, next)
    }

    fn report(&mut self, span: Span, kind: ErrorKind) {
        self.lexer.report(span, kind);
        if self.lexer.is_hopeless() {
            self.stop();
        }
    }

    fn stop(&mut self) {
        self.stopped = true;
        let end = self.source.text().len();
        self.ahead = Token::End(Span::new(end, end));
    }

    fn document(&mut self) -> Option<Vec<Statement>> {
        let mut all = Vec::new();
        loop {
            all.append(&mut self.statements(0));
            match self.ahead {
                Token::Close(span) => {
                    self.advance();
                    self.report(span, ErrorKind::StrayClose);
                }
                _ => return Some(all),
            }
        }
    }

    fn command(&mut self) -> Option<Statement> {
        let words = self.words();
        let Some(last) = words.last().map(Word::span) else {
            self.report(self.ahead.span(), ErrorKind::EmptyCommand);
            return None;
        };
        let statement = match self.ahead {
            Token::End(_) => {
                let span = words[0].span().to(last);
                Statement::from_words(words, None, span)
            }
            _ => self.rest_of_statement(words, last, 0),
        };
        match self.ahead {
            Token::End(_) => {}
            Token::Close(span) => self.report(span, ErrorKind::StrayClose),
            _ => self.report(self.ahead.span(), ErrorKind::SecondStatement),
        }
        Some(statement)
    }

    /// Statements up to a `}` or the end, neither of which is consumed.
    fn statements(&mut self, depth: usize) -> Vec<Statement> {
        let mut statements = Vec::new();
        loop {
            let words = self.words();
            match (words.last().map(Word::span), &self.ahead) {
                (Some(last), _) => statements.push(self.rest_of_statement(words, last, depth)),
                (None, &Token::Semicolon(span)) => {
                    self.advance();
                    self.report(span, ErrorKind::EmptyStatement);
                }
                (None, &Token::Open(span)) => {
                    self.report(span, ErrorKind::NamelessBlock);
                    self.block(span, depth);
                }
                (None, _) => return statements,
            }
        }
    }

    fn words(&mut self) -> Vec<Word> {
        let mut words = Vec::new();
        while let Token::Word(_) = self.ahead
            && !self.lexer.is_hopeless()
        {
            if let Token::Word(word) = self.advance() {
                words.push(word);
            }
        }
        if self.lexer.is_hopeless() {
            self.stop();
        }
        words
    }

    /// What follows the words, the last of which stands at `last`.
    fn rest_of_statement(&mut self, words: Vec<Word>, last: Span, depth: usize) -> Statement {
        let first = words[0].span();
        match self.ahead {
            Token::Semicolon(end) => {
                self.advance();
                Statement::from_words(words, None, first.to(end))
            }
            Token::Open(open) => {
                let (block, end) = self.block(open, depth);
                Statement::from_words(words, Some(block), first.to(end))
            }
            Token::Word(_) | Token::Close(_) | Token::End(_) => {
                if !self.stopped {
                    self.report(last.behind(), ErrorKind::MissingSemicolon);
                }
                Statement::from_words(words, None, first.to(last))
            }
        }
    }

    /// From `{` to `}`: the statements, and where the block ends.
    fn block(&mut self, open: Span, depth: usize) -> (Vec<Statement>, Span) {
        if depth == MAX_DEPTH {
            if !self.stopped {
                self.report(open, ErrorKind::TooDeep { limit: MAX_DEPTH });
                self.stop();
            }
            return (Vec::new(), open);
        }
        if !self.stopped {
            self.advance();
        }
        let statements = self.statements(depth + 1);
        match self.ahead {
            Token::Close(end) => {
                self.advance();
                (statements, end)
            }
            Token::End(end) if !self.stopped => {
                // Reported once, for the innermost of the open blocks.
                self.unclosed = Some(open);
                self.report(end, ErrorKind::UnclosedBlock);
                self.stop();
                (statements, end)
            }
            _ => (statements, open),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<ErrorKind> {
        let errors = parse(&Source::new("t", text)).expect_err(text);
        errors.iter().map(|error| error.kind().clone()).collect()
    }

    #[test]
    fn every_mistake_of_structure_is_named() {
        assert_eq!(kinds(";"), [ErrorKind::EmptyStatement]);
        assert_eq!(kinds("a {};"), [ErrorKind::EmptyStatement]);
        assert_eq!(kinds("{ a; }"), [ErrorKind::NamelessBlock]);
        assert_eq!(kinds("a; } b;"), [ErrorKind::StrayClose]);
        assert_eq!(kinds("a { b;"), [ErrorKind::UnclosedBlock]);
        assert_eq!(kinds("a { b { c;"), [ErrorKind::UnclosedBlock]);
        assert_eq!(kinds("a"), [ErrorKind::MissingSemicolon]);
        assert_eq!(kinds("a { b }"), [ErrorKind::MissingSemicolon]);
        assert_eq!(kinds("a { b"), [ErrorKind::MissingSemicolon, ErrorKind::UnclosedBlock]);
    }

    #[test]
    fn mistakes_in_different_places_are_reported_together() {
        let text = "a { b(; }\n} c { d }\n; \"e\\q\"; f";
        assert_eq!(
            kinds(text),
            [
                ErrorKind::NeedsQuotes('(', "\"b(\"".into()),
                ErrorKind::StrayClose,
                ErrorKind::MissingSemicolon,
                ErrorKind::EmptyStatement,
                ErrorKind::UnknownEscape("q".into()),
                ErrorKind::MissingSemicolon,
            ]
        );
    }

    #[test]
    fn nesting_is_accepted_up_to_the_limit_and_refused_beyond() {
        let nested = |depth: usize| format!("{}{}", "a {".repeat(depth), "}".repeat(depth));
        assert!(parse(&Source::new("t", &nested(MAX_DEPTH))).is_ok());
        let limit = MAX_DEPTH;
        assert_eq!(kinds(&nested(MAX_DEPTH + 1)), [ErrorKind::TooDeep { limit }]);
        assert_eq!(kinds(&"a {".repeat(100_000)), [ErrorKind::TooDeep { limit }]);
        let nameless = kinds(&"{".repeat(100_000));
        assert_eq!(nameless.len(), crate::MAX_ERRORS);
    }

    #[test]
    fn hopeless_text_is_given_up() {
        assert_eq!(kinds(&";".repeat(100_000)).len(), crate::MAX_ERRORS);
        assert_eq!(kinds(&"( ".repeat(100_000)).len(), crate::MAX_ERRORS);
    }

    #[test]
    fn statement_spans_reach_from_first_word_to_end_mark() {
        let text = " a b; c { d; } ";
        let (statements, _) = parse(&Source::new("t", text)).unwrap();
        let shown = |statement: &Statement| &text[statement.span().range()];
        assert_eq!(shown(&statements[0]), "a b;");
        assert_eq!(shown(&statements[1]), "c { d; }");
        assert_eq!(shown(&statements[1].block().unwrap()[0]), "d;");
    }
}
