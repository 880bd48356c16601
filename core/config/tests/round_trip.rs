//! Properties of the text form: what is printed parses to the same tree, and no text panics.

use proptest::prelude::*;
use weft_config::{Command, Document, MAX_DEPTH, Statement};

/// Words of every kind: bare, needing quotes, empty, comment marks, control characters.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[-a-zA-Z0-9:./*>%!@=+_,]{1,12}",
        "[ {};#\"\\\\/*\t\n\r]{0,6}",
        any::<String>(),
        Just("\u{feff}".to_owned()),
    ]
}

fn leaf() -> impl Strategy<Value = Statement> {
    (word(), prop::collection::vec(word(), 0..4)).prop_map(|(keyword, words)| {
        words.iter().fold(Statement::new(&keyword), |statement, word| statement.word(word.as_str()))
    })
}

fn statement() -> impl Strategy<Value = Statement> {
    leaf().prop_recursive(6, 60, 5, |inner| {
        (leaf(), prop::collection::vec(inner, 0..5))
            .prop_map(|(statement, children)| statement.children(children))
    })
}

/// Text that comes close to the language.
fn near_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("version 1;".to_owned()),
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just(";".to_owned()),
        Just("\"".to_owned()),
        Just("\\u{".to_owned()),
        Just("/*".to_owned()),
        Just("*/".to_owned()),
        Just("#".to_owned()),
        Just("\n".to_owned()),
        Just(" ".to_owned()),
        "[a-z]{1,3}",
        ".{0,3}",
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Parses, and shows what there is to show.
fn consume(bytes: &[u8]) {
    match Document::parse_bytes("t", bytes) {
        Ok(document) => {
            let again = Document::parse("t", &document.to_string()).expect("canonical text parses");
            assert_eq!(again.statements(), document.statements());
        }
        Err(errors) => {
            for error in errors.iter() {
                let location = error.location();
                assert!(location.line() >= 1 && location.column() >= 1);
            }
            assert!(!errors.to_string().is_empty());
        }
    }
    let _ = Command::parse(&String::from_utf8_lossy(bytes));
}

proptest! {
    #[test]
    fn printed_statements_parse_to_the_same_tree(statements in prop::collection::vec(statement(), 0..5)) {
        let text: String = statements.iter().map(ToString::to_string).collect();
        let document = Document::parse("t", &text).expect("printed text is well-formed");
        prop_assert_eq!(document.statements(), statements.as_slice());
        prop_assert_eq!(document.to_string(), text);
    }

    #[test]
    fn printed_statement_is_a_command(statement in statement()) {
        prop_assert_eq!(Statement::parse_one(&statement.to_string()).unwrap(), statement);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        consume(&bytes);
    }

    #[test]
    fn arbitrary_text_never_panics(text in near_text()) {
        consume(text.as_bytes());
    }

    #[test]
    fn truncated_text_never_panics(statement in statement()) {
        let text = statement.to_string();
        for end in 0..text.len() {
            consume(&text.as_bytes()[..end]);
        }
    }

    #[test]
    fn statement_cut_before_its_end_mark_is_an_error(statement in statement()) {
        let text = statement.to_string();
        let text = text.trim_end();
        for end in (1..text.len()).filter(|&end| text.is_char_boundary(end)) {
            prop_assert!(Document::parse("t", &text[..end]).is_err(), "{}", &text[..end]);
        }
    }
}

#[test]
fn deepest_tree_round_trips() {
    let deepest = (0..MAX_DEPTH)
        .fold(Statement::new("leaf"), |inner, _| Statement::new("block").child(inner));
    assert_eq!(Statement::parse_one(&deepest.to_string()).unwrap(), deepest);
}
