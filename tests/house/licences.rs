//! What others' code may be part of weft: its licence and where it comes from.
//!
//! The list of licences is the one in `deny.toml`, so that `cargo deny` and this test never
//! differ.
//!
//! Reference: SPDX specification 2.3, annex D, licence expressions. Of it: identifiers, `WITH`,
//! `AND`, `OR`, parentheses, and the older `/` that means `OR`.

use std::collections::BTreeSet;
use std::fs;

use crate::{expect_none, workspace};

/// Where every crate that is not weft's own comes from: cargo's default registry.
const REGISTRY: &str = concat!("registry+https://github.com/rust-lang/", "crates", ".io-index");

/// Whether an expression can be met with licences of the `allowed` list alone.
///
/// An error says what is wrong with an expression that cannot be read.
fn permitted(expression: &str, allowed: &BTreeSet<String>) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, allowed };
    let verdict = parser.any_of()?;
    match parser.words {
        [] => Ok(verdict),
        [word, ..] => Err(format!("`{word}` is out of place in `{expression}`")),
    }
}

struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a BTreeSet<String>,
}

impl Parser<'_> {
    /// Takes the next word if it is `word`.
    fn take(&mut self, word: &str) -> bool {
        let taken = self.words.first() == Some(&word);
        if taken {
            self.words = &self.words[1..];
        }
        taken
    }

    fn any_of(&mut self) -> Result<bool, String> {
        let mut verdict = self.all_of()?;
        while self.take("OR") {
            verdict |= self.all_of()?;
        }
        Ok(verdict)
    }

    fn all_of(&mut self) -> Result<bool, String> {
        let mut verdict = self.one()?;
        while self.take("AND") {
            verdict &= self.one()?;
        }
        Ok(verdict)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.take("(") {
            let verdict = self.any_of()?;
            return if self.take(")") { Ok(verdict) } else { Err("a `)` is missing".to_owned()) };
        }
        let [licence, rest @ ..] = self.words else {
            return Err("the expression ends too early".to_owned());
        };
        if matches!(*licence, "AND" | "OR" | "WITH" | ")") {
            return Err(format!("`{licence}` stands where a licence is expected"));
        }
        self.words = rest;
        let mut name = (*licence).to_owned();
        if self.take("WITH") {
            let [exception, rest @ ..] = self.words else {
                return Err("`WITH` names no exception".to_owned());
            };
            name = format!("{name} WITH {exception}");
            self.words = rest;
        }
        Ok(self.allowed.contains(&name))
    }
}

/// The quoted strings of the list `allow` in the section `[licenses]` of deny.toml.
fn allow_list(deny: &str) -> BTreeSet<String> {
    let section = deny.split("[licenses]").nth(1).unwrap_or_default();
    let list = section.split("allow = [").nth(1).unwrap_or_default();
    let list = list.split(']').next().unwrap_or_default();
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_dependency_has_a_permitted_licence_and_comes_from_the_registry() {
    let deny = fs::read_to_string(workspace::root().join("deny.toml")).unwrap();
    let allowed = allow_list(&deny);
    let mut offences = Vec::new();
    let mut seen = 0;
    for package in workspace::dependencies() {
        let Some(source) = package["source"].as_str() else { continue };
        seen += 1;
        let name = format!("{} {}", package["name"], package["version"]);
        if source != REGISTRY {
            offences.push(format!("{name} comes from {source}"));
        }
        let licence = package["license"].as_str().unwrap_or_default();
        match permitted(licence, &allowed) {
            Ok(true) => {}
            Ok(false) => offences.push(format!("{name} is under {licence}")),
            Err(why) => offences.push(format!("{name} is under `{licence}`: {why}")),
        }
    }
    assert!(seen > 0, "cargo metadata named no dependency");
    expect_none("dependencies that weft must not have (deny.toml):", &offences);
}

#[test]
fn expressions_are_met_by_what_is_allowed() {
    let deny = "[advisories]\nallow = [\"no\"]\n[licenses]\nallow = [\n \"MIT\", # why\n \
                \"Apache-2.0\",\n \"Apache-2.0 WITH LLVM-exception\"]\n[sources]\nallow = [\"X\"]";
    let allowed = allow_list(deny);
    let permitted = |expression: &str| permitted(expression, &allowed).unwrap();
    assert!(permitted("MIT"));
    assert!(permitted("GPL-3.0-only OR MIT"));
    assert!(permitted("Zlib/MIT"));
    assert!(permitted("Apache-2.0 WITH LLVM-exception"));
    assert!(permitted("(GPL-2.0 OR MIT) AND Apache-2.0"));
    assert!(permitted("GPL-2.0 OR MIT AND Apache-2.0"), "AND binds tighter than OR");
    assert!(!permitted("GPL-3.0-only"));
    assert!(!permitted("MIT AND X"));
    assert!(!permitted("MIT WITH Classpath-exception-2.0"));
    assert!(!permitted("no"));
}

#[test]
fn an_expression_that_cannot_be_read_is_an_error() {
    for broken in ["", "MIT OR", "(MIT", "MIT)", "MIT Apache-2.0", "AND", "MIT WITH"] {
        assert!(permitted(broken, &BTreeSet::new()).is_err(), "`{broken}` was read");
    }
}
