//! Interface files: what they say, and mistakes with their places.

use proptest::prelude::*;
use weft_xif::{Interface, Version, generate};

const TEXT: &str = "\
/// What a routing table offers.
interface rib/1.3 {
    /// A route.
    record route { net: ipnet; nexthop: ip; }

    // A remark that documents nothing.

    /// Adds routes
    /// of one protocol.
    /// @protocol who knows them,
    ///           as the registry writes it
    add_routes ? protocol:txt & routes:list<route> & [metric:u32] -> added:u32;
    clear;
}
";

#[test]
fn a_file_is_read_with_its_documentation() {
    let interface = Interface::parse(TEXT).unwrap();
    assert_eq!(interface.to_string(), "rib/1.3");
    assert_eq!(interface.doc, "What a routing table offers.");
    assert_eq!(interface.records[0].fields[1].to_string(), "nexthop:ip");
    let method = &interface.methods[0];
    assert_eq!(
        method.to_string(),
        "add_routes?protocol:txt&routes:list<route>&[metric:u32]->added:u32"
    );
    assert_eq!(method.doc, "Adds routes\nof one protocol.");
    assert_eq!(method.args[0].doc, "who knows them, as the registry writes it");
    assert_eq!(interface.methods[1].to_string(), "clear");
}

#[test]
fn a_newer_minor_version_answers_an_older_caller() {
    let version = |major, minor| Version { major, minor };
    assert!(version(1, 3).answers(version(1, 0)));
    assert!(!version(1, 3).answers(version(1, 4)));
    assert!(!version(2, 0).answers(version(1, 0)));
}

#[test]
fn mistakes_have_their_place() {
    for (text, place, part) in [
        ("", (1, 1), "expected `interface"),
        ("interface rib {}", (1, 15), "expected `/`"),
        ("interface rib/1 {}", (1, 15), "is no version"),
        ("interface rib/1.0 {\n a ? b:u33;\n}", (2, 8), "neither a type nor a record"),
        ("interface rib/1.0 {\n a ? [b:u32] & c:u32;\n}", (2, 16), "must be optional"),
        ("interface rib/1.0 {\n a ? b:u32 & b:u32;\n}", (2, 14), "is there already"),
        ("interface rib/1.0 {\n a;\n a;\n}", (3, 2), "is there already"),
        ("interface rib/1.0 {\n record u32 { a: u32; }\n}", (2, 9), "is a type already"),
        ("interface rib/1.0 {\n record r { }\n}", (3, 1), "has no fields"),
        ("interface rib/1.0 {\n record r { a: handle; }\n}", (2, 13), "neither handles nor lists"),
        ("interface rib/1.0 {\n /// @b what\n a;\n}", (2, 2), "no argument called `b`"),
        ("interface rib/1.0 {\n a ? b:list<list<list<list<u32>>>>;\n}", (2, 27), "too deeply"),
        ("interface rib/1.0 { a }", (1, 23), "expected `;`"),
        ("interface rib/1.0 { a; } b", (1, 26), "expected the end"),
        ("interface rib/1.0 { a ! }", (1, 23), "unexpected character `!`"),
    ] {
        let error = Interface::parse(text).unwrap_err();
        assert_eq!((error.line, error.column), place, "{text}\n{error}");
        assert!(error.text.contains(part), "{text}\n{error}");
    }
}

#[test]
fn the_stubs_have_a_type_for_each_thing() {
    let interface = Interface::parse(TEXT).unwrap();
    let stubs = generate(&interface, TEXT);
    for part in [
        "pub struct Route {",
        "pub net: ::weft_xrl::IpNet,",
        "pub struct AddRoutes {",
        "pub metric: Option<u32>,",
        "pub struct AddRoutesReply {",
        "    AddRoutes(AddRoutes),",
        "    Clear(Clear),",
        "/// who knows them, as the registry writes it",
    ] {
        assert!(stubs.contains(part), "{part}\n{stubs}");
    }
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in ".{0,120}") {
        let _ = Interface::parse(&text);
    }

    #[test]
    fn broken_files_never_panic(cut in 0..TEXT.len(), junk in "[ -~\n]{0,12}") {
        let _ = Interface::parse(&TEXT[..cut]);
        let _ = Interface::parse(&format!("{}{junk}{}", &TEXT[..cut], &TEXT[cut..]));
    }
}
