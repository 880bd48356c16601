//! What is accepted, and the texts that people see for what is not: each `tests/errors/NAME.lab` is
//! read, and what is reported is compared with `NAME.txt`. `UPDATE_FIXTURES=1` rewrites the latter,
//! for review.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;

/// A lab with every statement and every step.
const ALL: &str = include_str!("../../tests/all.lab");

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors")
}

fn check(actual: &str, fixture: &Path) {
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        fs::write(fixture, actual).expect("the fixture can be written");
    }
    let expected = fs::read_to_string(fixture).expect("run with UPDATE_FIXTURES=1 to make it");
    assert_eq!(actual, expected, "{}", fixture.display());
}

#[test]
fn error_texts_are_those_of_the_fixtures() {
    let mut cases: Vec<PathBuf> = fs::read_dir(fixtures())
        .expect("the fixtures are there")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "lab"))
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    for case in cases {
        let name = case.file_name().expect("a file").to_string_lossy();
        let bytes = fs::read(&case).expect("a readable case");
        let errors = Lab::parse_bytes(&name, &bytes, &Variables::new()).expect_err(&name);
        check(&format!("{errors}\n"), &case.with_extension("txt"));
    }
}

fn parse(text: &str, given: &[(&str, &str)]) -> Result<Lab, String> {
    let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Lab::parse("t.lab", text, &given.collect()).map_err(|errors| errors.to_string())
}

#[test]
fn every_statement_and_every_step_is_read() {
    let lab = parse(ALL, &[]).unwrap();
    assert_eq!(lab.name(), "all");
    assert_eq!(lab.seed(), 7);
    assert!(lab.nodes().eq(["a", "b", "r", "c", "d", "e", "f", "g"]));
    assert!(lab.scenarios().eq(["default", "other"]));
    let [first, second] = &lab.links[..] else { panic!("two links") };
    assert_eq!((first.properties.model.loss, first.properties.mtu), (10_000_000, 1400));
    assert_eq!((second.properties.model.loss, second.properties.mtu), (0, 9000));
    assert_eq!(lab.scenarios[0].steps.len(), 26);
    let NodeKind::Router(frr) = &lab.nodes[5].kind else { panic!("a router") };
    assert_eq!(frr.daemons, ["zebra", "ripd", "bgpd"]);
    assert!(lab.nodes[5].is_deferred && !lab.nodes[4].is_deferred);
    assert!(first.ends[0].address6.is_none() && second.ends[1].address6.is_some());
    assert_eq!(lab.scenarios[0].steps[0].text, "run a \"weft serve @b\" as server");
}

#[test]
fn a_variable_may_be_the_directory_of_the_lab_file() {
    let text = "version 1; lab l { variable DIRECTORY here; }";
    let read = |source: &str, given: &[(&str, &str)]| {
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Lab::parse(source, text, &given.collect()).unwrap().variables
    };
    assert_eq!(read("/labs/one.lab", &[]), ["/labs"]);
    assert_eq!(read("/labs/one.lab", &[("DIRECTORY", "other")]), ["other"]);
    let here = std::env::current_dir().unwrap();
    assert_eq!(read("labs/one.lab", &[]), [here.join("labs").to_str().unwrap()]);
    assert_eq!(read("one.lab", &[]), [here.to_str().unwrap()]);
}

#[test]
fn values_given_by_the_user_take_the_place_of_defaults() {
    let text = "version 1; lab l { variable FILE default x; variable B; }";
    assert_eq!(parse(text, &[("B", "b")]).unwrap().variables, ["x", "b"]);
    assert_eq!(parse(text, &[("FILE", "a"), ("B", "")]).unwrap().variables, ["a", ""]);
    let error = parse(text, &[("B", "b"), ("FIEL", "a")]).unwrap_err();
    assert!(
        error.contains("`FIEL`, which was set, does not exist: did you mean `FILE`?"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn changed_labs_are_read_or_told_and_never_panic(
        at in 0..ALL.len(),
        len in 0usize..40,
        instead in "[ -~\n]{0,8}",
    ) {
        let mut bytes = ALL.as_bytes().to_vec();
        bytes.splice(at..(at + len).min(ALL.len()), instead.bytes());
        match Lab::parse_bytes("t.lab", &bytes, &Variables::new()) {
            Ok(_) => {}
            Err(errors) => prop_assert!(errors.to_string().starts_with("t.lab:")),
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Lab::parse_bytes("t.lab", &bytes, &Variables::new());
    }
}
