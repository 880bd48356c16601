use proptest::prelude::*;

use super::*;

fn tree(text: &str) -> Tree {
    Tree::parse_part("t", text).unwrap()
}

fn diff(old: &str, new: &str) -> String {
    let (old, new) = (tree(old), tree(new));
    let diff = old.diff(&new);
    assert_eq!(diff.apply(&old).as_ref(), Ok(&new));
    diff.to_string()
}

#[test]
fn comments_stay_with_their_statements() {
    let text = "# Head of the file.\nversion 1;\n# Above a.\n/* And\n  more. */\na { # In a.\n b /* moves */ c; # Beside b.\n # Tail of a.\n} # Beside a.\nd; # Beside d.\n# Tail.\n";
    let expected = "# Head of the file.\nversion 1;\n# Above a.\n/* And\n  more. */\na {\n    # In a.\n    /* moves */\n    b c; # Beside b.\n    # Tail of a.\n} # Beside a.\nd; # Beside d.\n# Tail.\n";
    let tree = Tree::parse("t", text).unwrap();
    assert_eq!(tree.to_string(), expected);
    assert_eq!(Tree::parse("t", expected).unwrap(), tree);
}

#[test]
fn comments_carry_no_terminal_controls() {
    assert_eq!(tree("# \u{1b}[2J\r\na;").to_string(), "version 1;\n# \u{fffd}[2J\na;\n");
}

#[test]
fn the_version_is_the_first_statement_of_a_file_and_optional_in_a_part() {
    assert!(Tree::parse("t", "a;").is_err());
    assert!(Tree::parse("t", "version 2; a;").is_err());
    assert!(Tree::parse_part("t", "version 2; a;").is_err());
    assert!(Tree::parse_part("t", "a; version 1;").is_err());
    assert_eq!(tree("a;"), Tree::parse("t", "version 1; a;").unwrap());
    assert_eq!(tree(""), Tree::empty());
}

#[test]
fn a_part_holds_what_begins_with_its_name() {
    let whole = tree("a 1; b { c; } a 2;");
    assert_eq!(whole.part("a"), tree("a 1; a 2;"));
    assert_eq!(whole.part("c"), Tree::empty());
    assert_eq!((whole.names(), whole.count()), (vec!["a", "b"], 5));
}

#[test]
fn equal_trees_do_not_differ() {
    assert_eq!(diff("a { b; } c;", "a{b;}c;"), "");
    assert!(tree("a;").diff(&tree("a;")).is_empty());
}

#[test]
fn a_changed_line_is_shown_below_the_path_of_its_block() {
    assert_eq!(
        diff("a { b c { d 1; e; } }", "a { b c { d 2; e; } }"),
        "[edit a b c]\n-   d 1;\n+   d 2;\n"
    );
}

#[test]
fn whole_blocks_come_and_go_with_their_content() {
    assert_eq!(
        diff("a { b; } c;", "c; d { e { f; } }"),
        "[edit]\n-   a {\n-       b;\n-   }\n+   d {\n+       e {\n+           f;\n+       }\n+   }\n"
    );
}

#[test]
fn a_statement_that_moved_goes_and_comes() {
    assert_eq!(diff("a; b; c; d;", "a; d; b; c;"), "[edit]\n+   d;\n-   d;\n");
}

#[test]
fn repeated_statements_are_counted() {
    assert_eq!(diff("a; a; b; a;", "a; b; a; a;"), "[edit]\n+   b;\n-   b;\n");
}

#[test]
fn comments_are_part_of_the_difference() {
    assert_eq!(
        diff("# One.\na { b; }\nc; # x\n", "# Two.\na { b; # y\n }\nc;\n# End\n"),
        "[edit]\n-   # One.\n-   a { … }\n+   # Two.\n+   a { … }\n-   c; # x\n+   c;\n+   # End\n[edit a]\n-   b;\n+   b; # y\n"
    );
}

#[test]
fn differences_do_not_fit_another_tree() {
    let diff = tree("a; b { c; }").diff(&tree("b { d; }"));
    for other in ["", "a;", "a; b { e; }", "a; b { c; } f;", "b { c; }", "a; b;"] {
        assert!(diff.apply(&tree(other)).is_err(), "{other}");
    }
    let error = diff.apply(&tree("b { c; }")).unwrap_err().to_string();
    assert!(error.contains("`a`"), "{error}");
}

#[test]
fn a_copy_shares_everything_with_its_origin() {
    let one = tree("a { b; }");
    let two = one.clone();
    assert!(Arc::ptr_eq(&one.root, &two.root));
}

/// Texts of few different words, so that trees have something in common.
fn text() -> impl Strategy<Value = String> {
    let comment = prop_oneof![
        6 => Just(String::new()),
        1 => Just("# remark\n".to_owned()),
        1 => Just("/* long\n remark */".to_owned()),
    ];
    let leaf = ("[a-e]( [0-3]){0,2}", comment.clone())
        .prop_map(|(words, comment)| format!("{words}; {comment}"));
    let statement = leaf.prop_recursive(4, 30, 6, move |inner| {
        let block = prop::collection::vec(inner, 0..6);
        ("[a-e]( [0-3])?", block, comment.clone()).prop_map(|(words, block, comment)| {
            format!("{comment}{words} {{ {}}}\n", block.concat())
        })
    });
    prop::collection::vec(statement, 0..8).prop_map(|all| all.concat())
}

proptest! {
    #[test]
    fn printed_trees_parse_to_the_same_tree(text in text()) {
        let tree = tree(&text);
        let printed = tree.to_string();
        let again = Tree::parse("t", &printed).unwrap();
        prop_assert_eq!(&again, &tree);
        prop_assert_eq!(again.to_string(), printed);
    }

    #[test]
    fn comments_anywhere_survive(text in "([ab]( [cd])?;|[ab] \\{|\\}|# x\n|/\\* y \\*/|/\\* y\n \\*/|\n| ){0,40}") {
        if let Ok(tree) = Tree::parse_part("t", &text) {
            let printed = tree.to_string();
            let again = Tree::parse("t", &printed).unwrap();
            prop_assert_eq!(again.to_string(), printed.clone());
            prop_assert_eq!(again, tree);
            prop_assert_eq!(printed.matches('x').count(), text.matches('x').count());
            prop_assert_eq!(printed.matches('y').count(), text.matches('y').count());
        }
    }

    #[test]
    fn applied_differences_lead_to_the_other_tree(old in text(), new in text()) {
        let (old, new) = (tree(&old), tree(&new));
        let diff = old.diff(&new);
        prop_assert_eq!(diff.apply(&old).unwrap(), new.clone());
        prop_assert_eq!(diff.is_empty(), old == new);
        prop_assert_eq!(diff.to_string().is_empty(), diff.is_empty());
    }
}
