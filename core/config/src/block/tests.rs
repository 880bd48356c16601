//! The reader as a consumer uses it: what it takes, and what it reports.

use std::net::Ipv4Addr;
use std::time::Duration;

use super::*;
use crate::Document;
use crate::value::{Rate, ValueError};

/// Reads the only block of the text, which begins with `a`.
fn read<T>(
    text: &str,
    read: impl for<'d> FnOnce(&mut Block<'d>) -> Result<T, Errors>,
) -> Result<T, Errors> {
    let document = Document::parse("t", text).expect("well-formed");
    document.block().required_one("a")?.block()?.read(read)
}

/// The kind and the marked text of the first mistake.
fn mistake<T>(
    text: &str,
    consumer: impl for<'d> FnOnce(&mut Block<'d>) -> Result<T, Errors>,
) -> (ErrorKind, &str) {
    let errors = read(text, consumer).err().expect(text);
    let first = errors.iter().next().expect("at least one");
    (first.kind().clone(), &text[first.location().span().range()])
}

#[test]
fn leaves_are_taken_in_any_order() {
    let values = read("a { delay 10ms; rate 1Mbit/s; on; }", |block| {
        let rate: Option<Rate> = block.leaf("rate")?;
        let delay: Duration = block.required("delay")?;
        let size: Option<u16> = block.leaf("size")?;
        Ok((rate, delay, size, block.flag("on")?, block.flag("off")?))
    });
    let expected =
        (Some(Rate::from_bits_per_second(1_000_000)), Duration::from_millis(10), None, true, false);
    assert_eq!(values.unwrap(), expected);
}

#[test]
fn statements_that_nobody_asked_for_are_all_reported() {
    let errors =
        read("a { raet 1; rate 2bit/s; x { y; } }", |block| Ok(block.leaf::<Rate>("rate")?));
    let kinds: Vec<_> = errors.unwrap_err().iter().map(|error| error.kind().clone()).collect();
    let unknown = |word: &str, suggestion: Option<&str>| ErrorKind::UnknownStatement {
        word: word.into(),
        suggestion: suggestion.map(str::to_owned),
        accepted: vec!["rate".into()],
    };
    assert_eq!(kinds, [unknown("raet", Some("rate")), unknown("x", None)]);
}

#[test]
fn unknown_statements_beyond_the_limit_are_counted() {
    let text = format!("a {{ {} }}", "b; ".repeat(MAX_ERRORS + 100));
    let errors = read(&text, |_| Ok(())).unwrap_err();
    assert_eq!((errors.iter().count(), errors.count()), (MAX_ERRORS, MAX_ERRORS + 100));
}

#[test]
fn duplicate_leaf_shows_both_places() {
    let text = "a { b 1; b 2; }";
    let errors = read(text, |block| Ok(block.leaf::<u8>("b")?)).unwrap_err();
    assert_eq!(
        errors.to_string(),
        "t:1:10: `b` is given twice: remove one of the two\n  1 | a { b 1; b 2; }\n    |          ^\n\
         t:1:5: first given here\n  1 | a { b 1; b 2; }\n    |     ^"
    );
}

#[test]
fn duplicate_of_a_named_statement_shows_its_name() {
    let document = Document::parse("t", "node a; node b; node a;").unwrap();
    let mut nodes = document.block().many("node");
    nodes.iter_mut().for_each(|node| drop(node.argument::<String>("its name").unwrap()));
    let error = nodes[2].duplicate_of(&nodes[0]);
    assert_eq!(error.kind(), &ErrorKind::Duplicate("node a".into()));
    assert_eq!(error.location().column(), 17);
}

#[test]
fn a_leaf_has_exactly_one_value_and_no_block() {
    let leaf = |block: &mut Block<'_>| Ok(block.leaf::<u8>("b")?);
    let (kind, _) = mistake("a { b; }", leaf);
    assert_eq!(
        kind,
        ErrorKind::MissingWord {
            statement: "b".into(),
            what: "a whole number".into(),
            example: "7".into()
        }
    );
    let extra = |next_line| ErrorKind::ExtraWord { statement: "b".into(), next_line };
    assert_eq!(mistake("a { b 1 2; }", leaf), (extra(false), "2"));
    assert_eq!(mistake("a { b 1\n c 2; }", leaf), (extra(true), "c"));
    assert_eq!(mistake("a { b 1 { } }", leaf), (ErrorKind::TakesNoBlock("b".into()), "b"));
    assert_eq!(
        mistake("a { b x; }", leaf),
        (
            ErrorKind::BadValue {
                text: "x".into(),
                what: "a whole number",
                reason: ValueError::Form("decimal digits without a unit"),
                example: "7",
            },
            "x"
        )
    );
}

#[test]
fn a_flag_has_no_value() {
    let extra = ErrorKind::ExtraWord { statement: "b".into(), next_line: false };
    assert_eq!(mistake("a { b on; }", |block| Ok(block.flag("b")?)), (extra, "on"));
}

#[test]
fn values_out_of_range_are_refused() {
    let check = |text| read(text, |block| Ok(block.leaf_in("b", 1..=32u8)?));
    assert_eq!(check("a { b 32; }").unwrap(), Some(32));
    assert_eq!(check("a { }").unwrap(), None);
    let out = ErrorKind::OutOfRange { text: "33".into(), min: "1".into(), max: "32".into() };
    assert_eq!(mistake("a { b 33; }", |block| Ok(block.leaf_in("b", 1..=32u8)?)), (out, "33"));
}

#[test]
fn missing_statements_are_reported_at_the_owner() {
    let required = |block: &mut Block<'_>| Ok(block.required::<Rate>("rate")?);
    let missing = ErrorKind::MissingStatement {
        owner: "a".into(),
        name: "rate".into(),
        example: "200Mbit/s".into(),
    };
    assert_eq!(mistake("a { }", required), (missing, "a"));
    let in_range = |block: &mut Block<'_>| Ok(block.required_in("k", 4..=9u8)?);
    let missing =
        ErrorKind::MissingStatement { owner: "a".into(), name: "k".into(), example: "4".into() };
    assert_eq!(mistake("a { }", in_range), (missing, "a"));
    let missing = ErrorKind::MissingBlock { owner: String::new(), name: "a".into() };
    assert_eq!(mistake("b;", |_| Ok(())), (missing, ""));
}

#[test]
fn lists_join_the_values_of_all_statements() {
    let list = |text| read(text, |block| block.list::<u8>("b"));
    assert_eq!(list("a { b 1 2; b 3; }").unwrap(), [1, 2, 3]);
    assert_eq!(list("a { }").unwrap(), []);
    assert_eq!(list("a { b x 2; b y; b; }").unwrap_err().count(), 3);
}

#[test]
fn statements_of_several_kinds_keep_their_order() {
    let steps = read("a { run x; cut y; run z; }", |block| {
        let steps = block.many_of(&["run", "cut"]);
        let read = |mut entry: Entry<'_>| {
            Ok((entry.keyword().to_owned(), entry.argument::<String>("a step")?))
        };
        gather(steps.into_iter().map(read))
    });
    let step = |kind: &str, what: &str| (kind.to_owned(), what.to_owned());
    assert_eq!(steps.unwrap(), [step("run", "x"), step("cut", "y"), step("run", "z")]);
}

#[test]
fn foreign_types_are_read_through_their_parser() {
    let form = Form { what: "an address", example: "10.0.0.1" };
    let parse = |text: &str| text.parse::<Ipv4Addr>();
    let text = "a { b 10.0.0.1; }";
    let value = read(text, |block| Ok(block.required_with("b", form, parse)?));
    assert_eq!(value.unwrap(), Ipv4Addr::new(10, 0, 0, 1));
    let (kind, marked) = mistake("a { b x; }", |block| Ok(block.leaf_with("b", form, parse)?));
    assert_eq!(marked, "x");
    assert_eq!(
        kind.to_string(),
        "`x` is not an address: invalid IPv4 address syntax; write for example `10.0.0.1`"
    );
}

#[test]
fn located_values_remember_their_place() {
    let text = "a { b 1; }";
    let document = Document::parse("t", text).unwrap();
    let mut block = document.block().required_one("a").unwrap().block().unwrap();
    let value: Located<u8> = block.required("b").unwrap();
    drop(document);
    assert_eq!(value.value, 1);
    assert_eq!(
        value.error("is too small").to_string(),
        "t:1:7: is too small\n  1 | a { b 1; }\n    |       ^"
    );
}

#[test]
fn blocks_are_required_or_optional() {
    let needs = ErrorKind::NeedsBlock("b".into());
    let consumer = |block: &mut Block<'_>| {
        block.required_one("b")?.block()?.finish()?;
        Ok(())
    };
    assert_eq!(mistake("a { b; }", consumer), (needs, "b"));
    let optional = read("a { b; }", |block| block.required_one("b")?.read_block(|_| Ok(())));
    optional.unwrap();
}

#[test]
fn words_of_an_entry_are_taken_in_order() {
    let text = "route a via b c";
    let command = crate::Command::parse(text).unwrap();
    let mut entry = command.entry();
    assert_eq!(entry.argument::<String>("a destination").unwrap(), "a");
    assert!(!entry.take("dev"));
    assert!(entry.take("via"));
    assert_eq!(entry.optional::<String>().unwrap().as_deref(), Some("b"));
    let error = entry.expect("d").unwrap_err();
    let unexpected = ErrorKind::ExpectedWord { found: "c".into(), expected: "d".into() };
    assert_eq!(error.kind(), &unexpected);
    assert!(matches!(entry.end().unwrap_err().kind(), ErrorKind::ExtraWord { .. }));
    assert!(matches!(entry.block().unwrap_err().kind(), ErrorKind::ExtraWord { .. }));
    assert_eq!(entry.rest::<String>().unwrap(), ["c"]);
    entry.end().unwrap();
    assert_eq!(entry.optional::<String>().unwrap(), None);
    let missing = entry.expect("d").unwrap_err();
    assert_eq!(missing.location().column(), text.len() + 1);
}

#[test]
fn rest_reports_every_bad_word() {
    let command = crate::Command::parse("mtu 1 x 2 y").unwrap();
    assert_eq!(command.entry().rest::<u16>().unwrap_err().count(), 2);
}
