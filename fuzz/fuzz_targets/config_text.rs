//! Configurations, schemas and operators' commands: any bytes are one or are told what is wrong; what is
//! printed is read back as the same; differences lead from one tree to the other; what the schema has
//! accepted stays accepted.
//!
//! The parts of the input are separated by zero bytes: a configuration, one that is loaded into it,
//! commands line by line, and perhaps a schema instead of the one below.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_config::{LoadMode, Schema, Tree};

const SCHEMA: &str = r#"version 1;
leaf node name { mandatory; }
container xia {
    leaf echo switch { default on; }
    leaf redirects number { range 1 16; }
    leaf identity path { secret; }
    leaf-list interface interface { at-most 3; }
    list principal {
        key name name;
        flag quiet;
        case hid { words local { usage "hid-…"; } leaf limit number; }
        case zf { any; }
    }
}
container bgp {
    list peer {
        key address address;
        key port number { range 1 65535; }
        leaf as number { mandatory; }
        leaf password text { secret; }
        leaf mode one-of active passive;
    }
}
"#;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.split('\0');
    let mut next = || parts.next().unwrap_or_default();
    let (base, loaded, commands, schema) = (next(), next(), next(), next());
    let schema = match schema {
        "" => Schema::parse("schema", SCHEMA).expect("the schema is right"),
        text => match Schema::parse("fuzz.schema", text) {
            Ok(schema) => schema,
            Err(errors) => {
                assert!(errors.to_string().starts_with("fuzz.schema:"));
                return;
            }
        },
    };
    let Some(mut tree) = parse(base) else { return };
    let _ = schema.check(&tree, None).map_err(|errors| errors.to_string());
    if let Ok(normal) = schema.load(&Tree::empty(), &tree, LoadMode::Override) {
        change(&schema, &tree, &normal);
        tree = normal;
        if let Some(loaded) = parse(loaded) {
            for mode in [LoadMode::Merge, LoadMode::Replace, LoadMode::Override] {
                if let Ok(new) = schema.load(&tree, &loaded, mode) {
                    change(&schema, &tree, &new);
                }
            }
        }
    } else {
        tree = Tree::empty();
    }
    for line in commands.lines().take(20) {
        let completion = schema.complete(&tree, line);
        assert!(line.is_char_boundary(completion.from));
        let _ = completion.common();
        match schema.edit(&tree, line) {
            Ok(new) => {
                change(&schema, &tree, &new);
                tree = new;
            }
            Err(errors) => assert!(errors.count() >= 1 && !errors.to_string().is_empty()),
        }
        let _ = schema.show(&tree, line);
    }
});

/// A tree, which is read back from what it prints.
fn parse(text: &str) -> Option<Tree> {
    let tree = match Tree::parse_part("fuzz.conf", text) {
        Ok(tree) => tree,
        Err(errors) => {
            assert!(errors.to_string().starts_with("fuzz.conf:"));
            return None;
        }
    };
    let printed = tree.to_string();
    let again = Tree::parse("again", &printed).expect("what is printed is read back");
    assert_eq!(again, tree);
    assert_eq!(again.to_string(), printed);
    Some(tree)
}

/// What holds of every tree that has become another one by a schema.
fn change(schema: &Schema, old: &Tree, new: &Tree) {
    let printed = new.to_string();
    assert_eq!(Tree::parse("again", &printed).expect("it is read back"), *new);
    let diff = old.diff(new);
    assert_eq!(diff.apply(old).expect("the differences fit"), *new);
    assert_eq!(diff.is_empty(), old == new);
    let _ = schema.mask_diff(&diff).to_string();
    let masked = schema.mask(new);
    assert_eq!(schema.mask(&masked), masked);
    // Loading what was accepted changes nothing.
    let again = schema.load(&Tree::empty(), new, LoadMode::Override);
    assert_eq!(again.expect("what was accepted is accepted"), *new);
    let whole = schema.check(new, None);
    assert_eq!(schema.check(new, Some(new)), Ok(()));
    if whole.is_ok() && schema.check(old, None).is_ok() {
        assert_eq!(schema.check(new, Some(old)), Ok(()));
    }
}
