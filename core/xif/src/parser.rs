//! Reads interface files.

use crate::lexer::{Lexer, Token};
use crate::model::{Field, Interface, Method, Record, Version};
use crate::types::is_name;
use crate::{Type, XifError};

/// The most methods of one interface; a method's number has 16 bits on the wire.
const MOST_METHODS: usize = 4096;
/// The most arguments of one method, and fields of one record.
const MOST_FIELDS: usize = 255;

pub(crate) fn parse(text: &str) -> Result<Interface, XifError> {
    Parser::new(text)?.interface()
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The token that comes next, and where it is.
    next: Token<'a>,
    at: usize,
}

/// Documentation in front of something: its text, and that of each `@name`.
#[derive(Default)]
struct Doc {
    text: String,
    of: Vec<(String, String, usize)>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self, XifError> {
        let mut lexer = Lexer::new(text);
        let (at, next) = lexer.next()?;
        Ok(Self { lexer, next, at })
    }

    fn error<T>(&self, text: impl Into<String>) -> Result<T, XifError> {
        Err(XifError::at(self.lexer.source, self.at, text))
    }

    fn advance(&mut self) -> Result<Token<'a>, XifError> {
        let token = self.next;
        (self.at, self.next) = self.lexer.next()?;
        Ok(token)
    }

    /// Takes the next token if it is `token`.
    fn takes(&mut self, token: Token<'_>) -> Result<bool, XifError> {
        let same = self.next == token;
        if same {
            self.advance()?;
        }
        Ok(same)
    }

    fn expect(&mut self, mark: char) -> Result<(), XifError> {
        match self.takes(Token::Mark(mark))? {
            true => Ok(()),
            false => self.error(format!("expected `{mark}`, found {}", self.found())),
        }
    }

    fn found(&self) -> String {
        match self.next {
            Token::Word(word) => format!("`{word}`"),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::Arrow => "`->`".to_owned(),
            Token::Doc(_) => "documentation".to_owned(),
            Token::End => "the end of the text".to_owned(),
        }
    }

    fn name(&mut self, what: &str) -> Result<String, XifError> {
        match self.next {
            Token::Word(word) if is_name(word) => {
                self.advance()?;
                Ok(word.to_owned())
            }
            _ => self.error(format!("expected the name of {what}, found {}", self.found())),
        }
    }

    fn doc(&mut self) -> Result<Doc, XifError> {
        let mut doc = Doc::default();
        while let Token::Doc(line) = self.next {
            if let Some(rest) = line.strip_prefix('@') {
                let (name, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                doc.of.push((name.to_owned(), text.trim().to_owned(), self.at));
            } else if let Some((_, text, _)) = doc.of.last_mut() {
                push_line(text, line, ' ');
            } else {
                push_line(&mut doc.text, line, '\n');
            }
            self.advance()?;
        }
        Ok(doc)
    }

    fn interface(mut self) -> Result<Interface, XifError> {
        let doc = self.doc()?;
        if !self.takes(Token::Word("interface"))? {
            return self.error(format!("expected `interface name/1.0 {{`, found {}", self.found()));
        }
        let name = self.name("the interface")?;
        self.expect('/')?;
        let version = self.version()?;
        self.expect('{')?;
        let (records, methods) = (Vec::new(), Vec::new());
        let mut interface = Interface { name, version, records, methods, doc: doc.text };
        while !self.takes(Token::Mark('}'))? {
            self.item(&mut interface)?;
        }
        match self.next {
            Token::End => Ok(interface),
            _ => self.error(format!("expected the end of the text, found {}", self.found())),
        }
    }

    fn version(&mut self) -> Result<Version, XifError> {
        let version = match self.next {
            Token::Word(word) => word.parse::<Version>(),
            _ => Err(format!("expected a version such as `1.0`, found {}", self.found())),
        };
        match version {
            Ok(version) => {
                self.advance()?;
                Ok(version)
            }
            Err(text) => self.error(text),
        }
    }

    fn item(&mut self, interface: &mut Interface) -> Result<(), XifError> {
        let doc = self.doc()?;
        if self.takes(Token::Word("record"))? {
            let at = self.at;
            let record = self.record(doc.text, interface)?;
            if interface.record(&record.name).is_some()
                || !matches!(Type::from_word(&record.name), Some(Type::Record(_)))
            {
                self.at = at;
                return self.error(format!("`{}` is a type already", record.name));
            }
            interface.records.push(record);
            return Ok(());
        }
        let at = self.at;
        let method = self.method(doc, interface)?;
        self.at = if interface.method(&method.name).is_some() { at } else { self.at };
        if interface.method(&method.name).is_some() {
            return self.error(format!("the method `{}` is there already", method.name));
        }
        if interface.methods.len() == MOST_METHODS {
            return self.error(format!("an interface has at most {MOST_METHODS} methods"));
        }
        interface.methods.push(method);
        Ok(())
    }

    fn record(&mut self, doc: String, interface: &Interface) -> Result<Record, XifError> {
        let name = self.name("the record")?;
        self.expect('{')?;
        let mut fields = Vec::new();
        while !self.takes(Token::Mark('}'))? {
            let doc = self.doc()?;
            let at = self.at;
            let mut field = self.field(&fields, interface)?;
            field.doc = doc.text;
            self.expect(';')?;
            if field.kind == Type::Handle || matches!(field.kind, Type::List(_)) {
                self.at = at;
                return self.error(format!(
                    "the field `{}` is a {}; records hold neither handles nor lists",
                    field.name, field.kind
                ));
            }
            fields.push(field);
        }
        match fields.len() {
            0 => self.error(format!("the record `{name}` has no fields")),
            _ => Ok(Record { name, fields, doc }),
        }
    }

    fn method(&mut self, doc: Doc, interface: &Interface) -> Result<Method, XifError> {
        let name = self.name("a method")?;
        let (mut args, mut returns) = (Vec::new(), Vec::new());
        if self.takes(Token::Mark('?'))? {
            args = self.fields(interface)?;
        }
        if self.takes(Token::Arrow)? {
            returns = self.fields(interface)?;
        }
        self.expect(';')?;
        for (of, text, at) in doc.of {
            let mut fields = args.iter_mut().chain(&mut returns);
            match fields.find(|field| field.name == of) {
                Some(field) => field.doc = text,
                None => {
                    self.at = at;
                    return self.error(format!("`{name}` has no argument called `{of}`"));
                }
            }
        }
        Ok(Method { name, args, returns, doc: doc.text })
    }

    /// Arguments between `&`; once one is optional, the rest is.
    fn fields(&mut self, interface: &Interface) -> Result<Vec<Field>, XifError> {
        let mut fields: Vec<Field> = Vec::new();
        loop {
            let optional = self.takes(Token::Mark('['))?;
            if !optional && fields.last().is_some_and(|last| last.optional) {
                return self.error("an argument after an optional one must be optional, too");
            }
            let mut field = self.field(&fields, interface)?;
            field.optional = optional;
            if optional {
                self.expect(']')?;
            }
            fields.push(field);
            if !self.takes(Token::Mark('&'))? {
                return Ok(fields);
            }
        }
    }

    fn field(&mut self, others: &[Field], interface: &Interface) -> Result<Field, XifError> {
        let at = self.at;
        let name = self.name("an argument")?;
        if others.iter().any(|other| other.name == name) || others.len() == MOST_FIELDS {
            self.at = at;
            return self.error(format!("`{name}` is there already, or one of too many"));
        }
        self.expect(':')?;
        let kind = self.kind(interface, 0)?;
        Ok(Field { name, kind, optional: false, doc: String::new() })
    }

    fn kind(&mut self, interface: &Interface, depth: usize) -> Result<Type, XifError> {
        let at = self.at;
        let word = self.name("a type")?;
        if word == "list" {
            if depth == 3 {
                return self.error("lists are nested too deeply");
            }
            self.expect('<')?;
            let inner = self.kind(interface, depth + 1)?;
            self.expect('>')?;
            return Ok(Type::List(Box::new(inner)));
        }
        match Type::from_word(&word) {
            Some(Type::Record(name)) if interface.record(&name).is_none() => {
                self.at = at;
                self.error(format!("`{name}` is neither a type nor a record defined before"))
            }
            Some(kind) => Ok(kind),
            None => self.error(format!("`{word}` is no type")),
        }
    }
}

fn push_line(text: &mut String, line: &str, between: char) {
    if !text.is_empty() {
        text.push(between);
    }
    text.push_str(line);
}
