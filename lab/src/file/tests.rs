//! What is accepted, and the texts that people see for what is not: each `tests/errors/NAME.lab` is
//! read, and what is reported is compared with `NAME.txt`. `UPDATE_FIXTURES=1` rewrites the latter,
//! for review.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

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
