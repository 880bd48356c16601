use proptest::prelude::*;

use super::*;
use crate::tree::Tree;

const SCHEMA: &str = r#"
version 1;
leaf node name { mandatory; help "the node's name"; }
container xia {
    help "XIA on this node";
    leaf echo switch { default on; help "answer pings"; }
    leaf redirects number { range 1 16; default 8; help "longest chain of redirects"; }
    leaf identity path { help "file of a private key"; }
    leaf-list interface interface { at-most 3; help "carries XIP"; }
    leaf delay duration { range 1ms 10s; }
    list principal {
        key name name { help "a principal"; }
        help "a principal with its statements";
        flag quiet;
        case hid {
            help "hosts";
            words local { usage "hid-…"; help "this node has this identity"; }
            leaf neighbour-limit number;
        }
        case zf { any; }
    }
}
container bgp {
    list peer {
        known-as neighbor neighbour;
        key address address;
        leaf as number { mandatory; known-as remote-as; range 1 4294967295; }
        leaf password text { secret; help "of the session"; }
        leaf pin number { secret; range 0 9999; }
        leaf mode one-of active passive;
    }
}
"#;

fn schema() -> Schema {
    Schema::parse("schema", SCHEMA).unwrap()
}

fn tree(text: &str) -> Tree {
    Tree::parse_part("node.conf", text).unwrap()
}

/// All mistakes in `text`, without the excerpts.
fn mistakes(text: &str) -> Vec<String> {
    let Err(errors) = schema().check(&tree(text), None) else { return Vec::new() };
    let sentence = |error: &Error| {
        let location = error.location();
        format!("{}:{}: {}", location.line(), location.column(), error.kind())
    };
    errors.iter().map(sentence).collect()
}

/// The tree after commands, as text.
fn edited(text: &str, commands: &[&str]) -> String {
    let mut tree = schema().load(&Tree::empty(), &tree(text), LoadMode::Override).unwrap();
    for command in commands {
        tree = schema().edit(&tree, command).unwrap_or_else(|errors| panic!("{errors}"));
    }
    tree.to_string()
}

fn refused(text: &str, command: &str) -> String {
    let tree = schema().load(&Tree::empty(), &tree(text), LoadMode::Override).unwrap();
    schema().edit(&tree, command).unwrap_err().to_string()
}

fn loaded(base: &str, new: &str, mode: LoadMode) -> String {
    let base = schema().load(&Tree::empty(), &tree(base), LoadMode::Override).unwrap();
    schema().load(&base, &tree(new), mode).unwrap_or_else(|errors| panic!("{errors}")).to_string()
}

fn offers(text: &str, line: &str) -> Vec<String> {
    let completion = schema().complete(&tree(text), line);
    completion.candidates.into_iter().map(|candidate| candidate.text).collect()
}

#[test]
fn what_the_schema_describes_is_accepted() {
    let text = "node r1; xia { echo off; redirects 16; interface eth0 eth1; identity /k; delay 2s; \
                principal hid { local hid-aa; quiet; } principal zf { x y { z; } } principal ad; } \
                bgp { peer 10.0.0.1 { as 65001; mode active; password p; } }";
    assert_eq!(mistakes(text), [""; 0]);
}

#[test]
fn every_mistake_is_told_with_its_place() {
    let text = "xia {\n ecko on;\n echo maybe;\n redirects 17;\n interface eth0 eth/1 eth0;\n interface;\n \
                delay 20s;\n principal;\n principal hid { locl x; }\n principal ad 2;\n echo;\n}\n\
                bgp { peer 10.0.0.1; peer 10.0.0.1 { as 1 2; mode x; } } frr;";
    assert_eq!(
        mistakes(text),
        [
            "2:2: unknown statement `ecko`: did you mean `echo`?",
            "3:7: `maybe` is not a switch: it is one of `on`, `true`, `yes`, `off`, `false` or `no`",
            "4:12: `17` is out of range: it must be 1 to 16",
            "5:17: `eth/1` is not the name of a network interface: it must be 1 to 15 letters, \
             digits, `.`, `-` or `_`; write for example `eth0`",
            "6:11: `interface` needs the name of a network interface here: write for example `eth0`",
            "7:8: `20s` is out of range: it must be 1ms to 10s",
            "8:11: `principal` needs the name here: write for example `server`",
            "9:18: unknown statement `locl`: did you mean `local`?",
            "10:15: `principal` takes nothing more here: remove this word",
            "11:6: `echo` needs a switch here: write for example `on`",
            "5:23: `eth0` is given twice: remove one of the two",
            "11:2: `echo` is given twice: remove one of the two",
            "13:7: `peer` lacks the statement `as`: add for example `as 1;`",
            "13:43: `as` takes nothing more here: remove this word",
            "13:51: `x` is not accepted here: write `active` or `passive`",
            "13:22: `peer 10.0.0.1` is given twice: remove one of the two",
            "13:58: unknown statement `frr`: accepted here: `node`, `xia` or `bgp`",
            "1:1: the text lacks the statement `node`: add for example `node server;`",
        ]
    );
    assert!(
        mistakes("node r; xia { interface a; interface b; interface c; interface d; }")[0]
            .ends_with("there may be at most 3 of `interface`: remove some")
    );
    assert_eq!(mistakes("node r; node r { x; }").len(), 2);
}

#[test]
fn what_is_shared_with_a_good_tree_is_not_checked_again() {
    let schema = schema();
    let bad = tree("node r; xia { echo maybe; } bgp { peer 10.0.0.1 { as 1; } }");
    assert!(schema.check(&bad, None).is_err());
    // The caller says that it is good; only what differs from it is looked at.
    assert!(schema.check(&bad, Some(&bad)).is_ok());
    let changed = schema.edit(&bad, "set bgp peer 10.0.0.2 as 2").unwrap();
    assert!(schema.check(&changed, Some(&bad)).is_ok());
    let incomplete = schema.edit(&bad, "set bgp peer 10.0.0.3 mode active").unwrap();
    assert!(schema.check(&incomplete, Some(&bad)).is_err());
    let twice =
        schema.load(&bad, &tree("bgp { peer 10.0.0.1 { as 7; } }"), LoadMode::Merge).unwrap();
    assert!(schema.check(&twice, Some(&bad)).is_ok());
}

#[test]
fn secrets_are_shown_nowhere() {
    let schema = schema();
    let text = "node r; bgp { peer 10.0.0.1 { as 1; password \"geheim é\"; pin 77777; mode x; } }";
    let with_mistakes = tree(text);
    let errors = schema.check(&with_mistakes, None).unwrap_err().to_string();
    assert!(!errors.contains("geheim") && !errors.contains("77777"), "{errors}");
    assert!(errors.contains("the secret value of `pin` is not a whole number"), "{errors}");
    assert!(errors.contains("mode x;"), "{errors}");

    let old = tree("node r; bgp { peer 10.0.0.1 { as 1; password geheim; } }");
    let new = schema.edit(&old, "set bgp peer 10.0.0.1 password verborgen").unwrap();
    let shown = [
        schema.mask(&new).to_string(),
        schema.mask_diff(&old.diff(&new)).to_string(),
        schema.mask_diff(&Tree::empty().diff(&new)).to_string(),
        schema.show(&new, "bgp").unwrap(),
        schema.show(&new, "bgp peer 10.0.0.1 password").unwrap(),
        format!("{:?}", schema.complete(&new, "delete bgp peer 10.0.0.1 password ")),
        schema.edit(&new, "set bgp peer 10.0.0.1 pin geheim").unwrap_err().to_string(),
    ];
    for text in &shown {
        assert!(!text.contains("geheim") && !text.contains("verborgen"), "{text}");
    }
    assert_eq!(
        shown[1],
        "[edit bgp peer 10.0.0.1]\n-   password ********;\n+   password ********;\n"
    );
}

#[test]
fn the_mask_is_no_secret() {
    let schema = schema();
    let text = "node r; bgp { peer 10.0.0.1 { as 1; password geheim; } }";
    let shown = tree(&schema.mask(&tree(text)).to_string());
    let errors = schema.check(&shown, None).unwrap_err().to_string();
    assert!(errors.contains("node.conf:6:18: `********` is the mask that stands"), "{errors}");
    let merged = schema.load(&tree(text), &shown, LoadMode::Merge).unwrap_err().to_string();
    assert!(merged.contains("write the secret of `password` itself"), "{merged}");
    let set = schema.edit(&tree(text), "set bgp peer 10.0.0.1 password ********");
    assert!(set.unwrap_err().to_string().contains("is the mask"));
    let words = Schema::parse("schema", "version 1; words key { secret; }").unwrap();
    let errors = words.check(&tree("key ********;"), None).unwrap_err().to_string();
    assert!(errors.contains("write the secret of `key` itself"), "{errors}");
}

#[test]
fn set_makes_the_way_to_a_statement_and_gives_leaves_a_value() {
    assert_eq!(
        edited(
            "node r;",
            &["set xia principal hid local hid-aa", "set xia echo off", "set xia echo on"]
        ),
        "version 1;\nnode r;\nxia {\n    principal hid {\n        local hid-aa;\n    }\n    echo on;\n}\n"
    );
    assert_eq!(
        edited("", &["set xia interface eth0 eth1", "set xia interface eth1 eth2"]),
        "version 1;\nxia {\n    interface eth0;\n    interface eth1;\n    interface eth2;\n}\n"
    );
    assert_eq!(
        edited(
            "",
            &["set xia { echo off; principal zf { route a via b; } }", "set xia principal zf"]
        ),
        "version 1;\nxia {\n    echo off;\n    principal zf {\n        route a via b;\n    }\n}\n"
    );
}

#[test]
fn who_writes_what_others_call_a_statement_is_told_its_name() {
    let schema = schema();
    let known = tree("node r; bgp { peer 10.0.0.2 { as 1; } }");
    let errors = schema.check(&tree("node r; bgp { neighbor 10.0.0.1 { as 1; } }"), None);
    assert!(errors.unwrap_err().to_string().contains("did you mean `peer`?"));
    for (command, meant) in [
        ("set bgp neighbour 10.0.0.1 as 1", "did you mean `peer`?"),
        ("set bgp peer 10.0.0.1 remote-as 1", "did you mean `as`?"),
        ("delete bgp neighbor 10.0.0.1", "did you mean `peer`?"),
    ] {
        let error = schema.edit(&known, command).unwrap_err().to_string();
        assert!(error.contains(meant), "{command}: {error}");
    }
}

/// A list of values of which two stand alone.
const LONELY: &str = "version 1; list peer { key name name; leaf-list import name { alone all none; } leaf mode name; }";

#[test]
fn what_stands_alone_replaces_others_and_is_replaced_by_them() {
    let schema = Schema::parse("schema", LONELY).unwrap();
    let after = |text: &str, command: &str| {
        let tree = schema.load(&Tree::empty(), &tree(text), LoadMode::Override).unwrap();
        let text =
            schema.edit(&tree, command).map(|tree| tree.text()).map_err(|e| e.to_string())?;
        let words: Vec<_> = text.split_whitespace().skip(2).collect();
        Ok::<_, String>(words.join(" "))
    };
    for (text, command, expected) in [
        ("peer a { import all; mode x; }", "set peer a import p q", "import p; mode x; import q;"),
        ("peer a { import p q; mode x; }", "set peer a import none", "import none; mode x;"),
        ("peer a { import all; mode x; }", "set peer a import none", "import none; mode x;"),
        ("peer a { import all; mode x; }", "set peer a import all", "import all; mode x;"),
        ("peer a { import p; }", "set peer a import q", "import p; import q;"),
        (
            "peer a { import p; } peer b { import p; }",
            "set peer b import all",
            "import p; } peer b { import all;",
        ),
        ("peer a { import all; }", "set peer a { import p; mode x; }", "import p; mode x;"),
    ] {
        assert_eq!(after(text, command).unwrap(), format!("peer a {{ {expected} }}"), "{command}");
    }
    for command in
        ["set peer a import all p", "set peer a import p none", "set peer a import all none"]
    {
        let error = after("peer a { import q; }", command).unwrap_err();
        assert!(error.contains("stands alone: delete it"), "{error}");
    }
    let merged = |base: &str, new: &str, mode| {
        schema.load(&tree(base), &tree(new), mode).map(|tree| tree.text().replace("\n", " "))
    };
    let new = "peer a { import p; }";
    let text = merged("version 1; peer a { import all; }", new, LoadMode::Merge).unwrap();
    assert!(text.contains("import p;") && !text.contains("all"), "{text}");
}

#[test]
fn what_stands_alone_is_not_accepted_beside_others() {
    let schema = Schema::parse("schema", LONELY).unwrap();
    let wrong = |text: &str| schema.check(&tree(text), None).err().map(|errors| errors.to_string());
    assert_eq!(
        wrong("peer a { import all; } peer b { import p q; } peer c { import none; }"),
        None
    );
    for text in [
        "peer a { import p; import all; }",
        "peer a { import all p; }",
        "peer a { import none; import all; }",
    ] {
        let error = wrong(text).unwrap();
        assert!(error.contains("stands alone") && error.contains("this is beside it"), "{error}");
    }
    let of = |alone: &str| {
        Schema::parse("s", &format!("version 1; leaf-list import number {{ {alone}; }}"))
    };
    assert!(of("alone").unwrap_err().to_string().contains("needs the values"));
    assert!(of("alone x").is_err() && of("alone 1 2").is_ok());
}

#[test]
fn delete_takes_a_statement_with_all_that_is_in_it() {
    let text = "node r; xia { echo on; interface eth0 eth1 eth2; \
                principal hid { local a; local b; } principal zf { route a via b; route c via d; } }";
    assert_eq!(
        edited(
            text,
            &[
                "delete node",
                "delete xia echo",
                "delete xia interface eth2 eth0",
                "delete xia principal hid local a",
                "delete xia principal zf route",
            ]
        ),
        "version 1;\nxia {\n    interface eth1;\n    principal hid {\n        local b;\n    }\n    \
         principal zf;\n}\n"
    );
    assert_eq!(
        edited(
            text,
            &["delete xia principal", "delete xia interface", "delete node", "delete xia echo"]
        ),
        "version 1;\nxia {}\n"
    );
}

#[test]
fn what_is_not_there_cannot_be_deleted() {
    let text = "xia { echo on; interface eth0; principal hid; }";
    assert_eq!(
        refused(text, "delete xia interface eth1"),
        "command:1:22: there is no `eth1` here to be found: did you mean `eth0`?\n  \
         1 | delete xia interface eth1\n    |                      ^^^^"
    );
    for command in ["delete xia echo off", "delete bgp", "delete xia principal hdi local"] {
        assert!(
            refused(text, command).contains("there is no")
                || refused(text, command).contains("unknown")
        );
    }
    assert!(refused(text, "delete xai").contains("did you mean `xia`?"));
}

#[test]
fn commands_are_checked_when_they_are_given() {
    for (command, sentence) in [
        ("set xia ecko on", "command:1:9: unknown statement `ecko`: did you mean `echo`?"),
        ("set xia redirects 99", "command:1:19: `99` is out of range: it must be 1 to 16"),
        ("set xia echo", "command:1:13: `echo` needs a switch here"),
        ("set xia principal", "command:1:18: `principal` needs the name here"),
        ("set xia echo on on", "command:1:17: `echo` takes nothing more here"),
        ("set xia interface a a", "command:1:21: `a` is given twice"),
        ("set xia echo { on; }", "command:1:13: `echo` needs a switch here"),
        ("sett xia echo on", "command:1:1: unknown statement `sett`: did you mean `set`?"),
        ("set version 2", "command:1:5: the version of the language stays"),
        ("set", "command:1:4: `set` needs the words of a statement"),
        ("delete xia { a; }", "command:1:8: `delete` takes no block"),
        ("rename xia", "command:1:8: write the statement, then `to`, then another key"),
        ("", "command:1:1: the command is empty: write one statement"),
    ] {
        let text = refused("", command);
        assert!(text.starts_with(sentence), "{command}: {text}");
    }
}

#[test]
fn entries_are_renamed_copied_and_moved() {
    let text = "xia { principal a { quiet; } principal b; principal c; interface e0 e1; }";
    let inner = |commands: &[&str]| {
        let text = edited(text, commands);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        words.strip_prefix("version 1; xia { ").unwrap().strip_suffix(" }").unwrap().to_owned()
    };
    assert_eq!(
        inner(&["rename xia principal a to d", "rename xia interface e0 to interface e2"]),
        "principal d { quiet; } principal b; principal c; interface e2; interface e1;"
    );
    assert_eq!(
        inner(&["copy xia principal a to principal d"]),
        "principal a { quiet; } principal d { quiet; } principal b; principal c; interface e0; interface e1;"
    );
    assert_eq!(
        inner(&["insert xia principal a after c", "insert xia interface e1 before interface e0"]),
        "principal b; principal c; principal a { quiet; } interface e1; interface e0;"
    );
    for command in [
        "rename xia principal a to b",
        "rename xia principal a to 7",
        "rename xia principal x to y",
        "rename xia principal to y",
        "rename xia principal a to b c",
        "insert xia principal a before x",
        "insert xia principal a before a",
        "rename xia to bgp",
    ] {
        refused(text, command);
    }
}

#[test]
fn comments_are_put_above_statements_and_removed() {
    let text = "xia { echo on; }";
    assert_eq!(
        edited(text, &["annotate xia echo \"for the\\nlab\""]),
        "version 1;\nxia {\n    # for the\n    # lab\n    echo on;\n}\n"
    );
    assert_eq!(edited("# x\nxia;", &["annotate xia \"\""]), "version 1;\nxia {}\n");
    refused(text, "annotate xia");
}

#[test]
fn load_merge_adds_and_load_override_replaces_everything() {
    let base = "node r; xia { echo on; interface eth0; principal hid { local a; } }";
    let new = "# The new one.\nxia { echo off; interface eth0 eth1; principal hid { local b; } }";
    assert_eq!(
        loaded(base, new, LoadMode::Merge),
        "version 1;\nnode r;\n# The new one.\nxia {\n    echo off;\n    interface eth0;\n    \
         principal hid {\n        local a;\n        local b;\n    }\n    interface eth1;\n}\n"
    );
    assert_eq!(
        loaded(base, "version 1; xia { interface eth0 eth1; }", LoadMode::Override),
        "version 1;\nxia {\n    interface eth0;\n    interface eth1;\n}\n"
    );
}

#[test]
fn load_replace_replaces_and_deletes_what_is_marked() {
    let base = "node r; xia { echo on; interface eth0; principal hid { local a; } principal zf; }";
    assert_eq!(
        loaded(
            base,
            "xia { replace: principal hid { quiet; } delete: principal zf; delete: echo; } replace: bgp;",
            LoadMode::Replace
        ),
        "version 1;\nnode r;\nxia {\n    interface eth0;\n    principal hid {\n        quiet;\n    }\n}\nbgp {}\n"
    );
    // What follows a deletion is new, and holds nothing of what was deleted.
    for (text, expected) in [
        ("delete: xia; xia { principal hid; }", "version 1;\nxia {\n    principal hid;\n}\n"),
        (
            "xia { delete: principal hid; principal hid { quiet; } }",
            "version 1;\nxia {\n    echo on;\n    principal hid {\n        quiet;\n    }\n    principal zf;\n}\n",
        ),
    ] {
        let base = "xia { echo on; principal hid { local a; } principal zf; }";
        assert_eq!(loaded(base, text, LoadMode::Replace), expected);
    }
    let base = tree(base);
    for text in
        ["delete: bgp;", "xia { delete: interface eth9; }", "replace:;", "delete: replace: xia;"]
    {
        assert!(schema().load(&base, &tree(text), LoadMode::Replace).is_err(), "{text}");
    }
    let marks = schema().load(&base, &tree("replace: bgp;"), LoadMode::Merge).unwrap_err();
    assert!(marks.to_string().contains("unknown statement `replace:`"));
}

#[test]
fn what_the_schema_refuses_is_not_loaded() {
    let new = tree("xia { ecko on; }");
    for mode in [LoadMode::Merge, LoadMode::Replace, LoadMode::Override] {
        assert!(schema().load(&Tree::empty(), &new, mode).is_err());
    }
}

#[test]
fn completion_offers_what_may_follow_with_help() {
    let text = "node r; xia { interface eth0; principal hid { local a; } principal foo; }";
    assert_eq!(offers(text, ""), ["set", "delete", "rename", "copy", "insert", "annotate"]);
    assert_eq!(offers(text, "se"), ["set"]);
    assert_eq!(offers(text, "set "), ["node", "xia", "bgp"]);
    assert_eq!(offers(text, "set xia e"), ["echo"]);
    assert_eq!(offers(text, "set xia echo "), ["on", "off"]);
    assert_eq!(offers(text, "set xia redirects "), ["<1..16>"]);
    assert_eq!(offers(text, "set xia principal "), ["hid", "zf", "<name>", "foo"]);
    assert_eq!(offers(text, "set xia principal hid "), ["local", "neighbour-limit", "quiet"]);
    assert_eq!(offers(text, "set xia principal hid local "), ["hid-…"]);
    assert_eq!(offers(text, "set xia principal ad "), ["quiet"]);
    assert_eq!(offers(text, "set bgp peer 10.0.0.1 mode p"), ["passive"]);
    assert_eq!(offers(text, "delete "), ["node", "xia"]);
    assert_eq!(offers(text, "delete xia principal "), ["hid", "foo"]);
    assert_eq!(offers(text, "show xia interface "), ["eth0"]);
    assert_eq!(offers(text, "delete xia principal hid local "), ["a"]);
    assert_eq!(offers(text, "rename xia principal hid t"), ["to"]);
    assert_eq!(offers(text, "set xia {"), [""; 0]);

    let completion = schema().complete(&tree(text), "set xia re");
    assert_eq!((completion.from, completion.common()), (8, "redirects"));
    assert_eq!(completion.candidates[0].help, "<1..16>: longest chain of redirects");
    assert!(!completion.is_whole);
    assert!(schema().complete(&tree(text), "set xia redirects 3").is_whole);
}

#[test]
fn mistakes_in_a_schema_are_told() {
    for (text, sentence) in [
        ("leaf a colour;", "`colour` is no type"),
        ("leaf a numbr;", "did you mean `number`?"),
        ("leaf a number; flag a;", "`a` is described twice"),
        ("leaf a number { range 9 1; }", "the least value is above the greatest"),
        ("leaf a name { range a b; }", "values of the type `name` have no range"),
        ("leaf a number { range 1 2; default 3; }", "`3` is out of range"),
        ("leaf a number { mandatory; default 3; }", "what is mandatory has no default"),
        ("list a;", "a list needs a key"),
        ("list a { key k number; case x; }", "`x` is not a whole number"),
        ("list a { key k name; flag b; case x { flag b; } }", "`b` is described twice"),
        ("leaf a one-of;", "`one-of` needs the accepted words"),
        ("container a { secret; }", "unknown statement `secret`"),
        ("leaf a;", "`leaf` needs the type of the value here"),
    ] {
        let errors = Schema::parse("s", &format!("version 1; {text}")).unwrap_err().to_string();
        assert!(errors.contains(sentence), "{text}: {errors}");
    }
}

#[test]
fn descriptions_of_several_components_become_one() {
    let parse =
        |name: &str, text: &str| Schema::parse(name, &format!("version 1; {text}")).unwrap();
    let (one, two) = (parse("one", "container a;"), parse("two", "container b;"));
    let both = Schema::union([&one, &two]).unwrap();
    assert_eq!(both.names().collect::<Vec<_>>(), ["a", "b"]);
    let error = Schema::union([&both, &parse("three", "flag b;")]).unwrap_err().to_string();
    assert!(error.contains("three:1:17") && error.contains("two:1:22"), "{error}");
}

#[test]
fn trees_stay_as_deep_as_can_be_read_back() {
    let any = Schema::any();
    let deep = format!("set {}x;{}", "a { ".repeat(31), " }".repeat(31));
    let tree = any.edit(&Tree::empty(), &deep).unwrap();
    assert_eq!(Tree::parse("t", &tree.to_string()).unwrap(), tree);
    let schema =
        Schema::parse("s", "version 1; container c { any; } container d { container c { any; } }")
            .unwrap();
    let deep = |head: &str, depth: usize| {
        format!("set {head} {{ {}x;{} }}", "a { ".repeat(depth), " }".repeat(depth))
    };
    assert!(schema.edit(&Tree::empty(), &deep("d c", 30)).is_ok());
    assert!(
        schema
            .edit(&Tree::empty(), &deep("d c", 31))
            .unwrap_err()
            .to_string()
            .contains("nested deeper")
    );
}

/// Words of a command that often fit the schema.
fn command() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "set",
        "delete",
        "rename",
        "copy",
        "insert",
        "annotate",
        "xia",
        "bgp",
        "peer",
        "node",
        "principal",
        "hid",
        "zf",
        "local",
        "echo",
        "on",
        "off",
        "interface",
        "eth0",
        "eth1",
        "to",
        "before",
        "after",
        "10.0.0.1",
        "as",
        "1",
        "mode",
        "active",
        "password",
        "x",
        "{",
        "}",
        ";",
        "quiet",
        "any",
        "\"a b\"",
    ]);
    let verb = prop::sample::select(vec![
        "set xia",
        "set xia principal",
        "set bgp peer",
        "delete xia",
        "set",
    ]);
    (verb, prop::collection::vec(word, 0..6))
        .prop_map(|(verb, words)| format!("{verb} {}", words.join(" ")))
}

proptest! {
    #[test]
    fn edits_keep_trees_readable_and_their_differences_exact(commands in prop::collection::vec(command(), 0..20)) {
        let schema = schema();
        let mut tree = Tree::empty();
        for command in &commands {
            let _ = schema.complete(&tree, command);
            let Ok(new) = schema.edit(&tree, command) else { continue };
            let printed = new.to_string();
            prop_assert_eq!(&Tree::parse("t", &printed).unwrap(), &new);
            prop_assert_eq!(&tree.diff(&new).apply(&tree).unwrap(), &new);
            // What was accepted piece by piece is accepted as a whole, but for what is missing.
            let all = schema.check_extent(&new, None, check::Extent::Piece);
            prop_assert!(all.is_ok(), "{:?}", all);
            prop_assert_eq!(&schema.load(&Tree::empty(), &new, LoadMode::Override).unwrap(), &new);
            tree = new;
        }
    }

    #[test]
    fn arbitrary_commands_and_completions_never_panic(line in ".{0,60}") {
        let (schema, tree) = (schema(), tree("xia { echo on; }"));
        let _ = schema.edit(&tree, &line);
        let completion = schema.complete(&tree, &line);
        prop_assert!(line.is_char_boundary(completion.from));
    }

    #[test]
    fn arbitrary_text_is_no_schema_that_panics(text in "(container|list|leaf|key|any|case|range|1|x|name|number|\\{|\\}|;| ){0,40}") {
        let _ = Schema::parse("s", &format!("version 1; {text}"));
    }
}
