//! The text of addresses: what `libxia` accepts and how it judges it, and where errors are.

use weft_xip::{Address, Names, TextErrorKind, Xid, XidType};

/// `a` stands for `aa…aa`, `b` for `bb…bb01`, `c` for `cc…cc`, `0` for `00…00`.
fn expand(short: &str) -> String {
    let b = format!("{}01", "bb".repeat(19));
    short
        .replace("{a}", &"aa".repeat(20))
        .replace("{b}", &b)
        .replace("{c}", &"cc".repeat(20))
        .replace("{0}", &"00".repeat(20))
}

/// Nodes of a row each of which leads to the next, with the entry edge at the last.
fn chain(nodes: usize) -> String {
    let rows = (1..nodes).map(|next| format!("hid-{{a}}-{next}:"));
    expand(&(rows.collect::<String>() + "hid-{a}-0"))
}

fn check(text: &str) -> i32 {
    let address: Address = expand(text).parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    address.check().map_or_else(|error| error.code(), |count| count as i32)
}

/// The results of `libxia` (AltraMayor/xiaconf), run on these texts; one row each.
#[test]
fn texts_that_libxia_accepts_get_its_verdict() {
    let table = [
        ("HID-{a}-1:0x17-{b}-10", 2),
        ("0x99-{a}-0", 1),
        ("hid-{a}", -7),
        ("hid-{a}-0:xdp-{b}-0", -5),
        ("hid-{a}-2:xdp-{b}-0", -4),
        ("hid-{a}-*1:xdp-{b}-0", -3),
        ("hid-{a}->1:xdp-{b}-0", -2),
        ("ad-{c}-1:hid-{a}-2:xdp-{b}-1", -6),
        ("nat-{0}-0:hid-{a}-1", -1),
        ("nat-{0}-0", 0),
        ("hid-{a}-1111:xdp-{b}-0", 2),
    ];
    for (text, verdict) in table {
        assert_eq!(check(text), verdict, "{text}");
    }
    assert_eq!(check(&chain(8)), 8);
}

#[test]
fn texts_that_libxia_refuses_are_errors() {
    let table = [
        "foo-{a}-0",
        "hid-{a}-",
        "hid-{a}-1:xdp-{b}-",
        "hid-aaaa-0",
        "hid-{a}-00000",
        "hid-{a}-0 ",
    ];
    for text in table {
        assert!(expand(text).parse::<Address>().is_err(), "{text}");
    }
}

/// Deviation: `libxia` refuses nine nodes, which the wire allows.
#[test]
fn nine_nodes_are_accepted_and_ten_are_not() {
    assert_eq!(check(&chain(9)), 9);
    let error = chain(10).parse::<Address>().unwrap_err();
    assert_eq!(error.kind, TextErrorKind::TooManyRows);
    assert_eq!(error.at, 9 * "hid-:-1".len() + 9 * 40);
}

#[test]
fn names_and_lower_case_are_printed() {
    let address: Address = expand("HID-{a}-1:0x17-{b}-10").to_uppercase().parse().unwrap();
    assert_eq!(address.to_string(), expand("hid-{a}-1:xdp-{b}-10"));
}

#[test]
fn texts_of_the_address_forms_are_printed_as_they_were_read() {
    let texts = [
        "xdp-{b}-0",
        "hid-{a}-1:xdp-{b}-0",
        "hid-{a}-1:xdp-{b}-10",
        "ad-{c}-21:hid-{a}-2:xdp-{b}-210",
        "hid-{a}:xdp-{b}-01",
        "0x99-{a}-0",
        "!hid-{a}-2***:xdp-{b}-0***",
        "!hid-{a}->1***:xdp-{b}->0*>**",
        "!hid-{a}-****",
        "!hid-{a}-z***",
        "!nat-{0}-0***",
    ];
    for text in texts.map(expand) {
        assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
    }
}

#[test]
fn one_line_feed_may_follow_a_colon_and_the_last_row() {
    let plain: Address = expand("hid-{a}-1:xdp-{b}-0").parse().unwrap();
    assert_eq!(expand("hid-{a}-1:\nxdp-{b}-0\n").parse(), Ok(plain));
    assert_eq!(format!("{plain:#}"), expand("hid-{a}-1:\nxdp-{b}-0"));
    for text in ["hid-{a}-1:\n\nxdp-{b}-0", "hid-{a}-1:xdp-{b}-0\n\n", "hid-{a}-1\n:xdp-{b}-0"] {
        assert!(expand(text).parse::<Address>().is_err(), "{text}");
    }
}

/// The mark says what a printer thought; the check is ours.
#[test]
fn the_mark_of_an_invalid_address_is_ignored() {
    let marked: Address = expand("!xdp-{b}-0").parse().unwrap();
    assert_eq!(marked.check(), Ok(1));
    assert_eq!(marked.to_string(), expand("xdp-{b}-0"));
}

#[test]
fn an_edge_no_address_can_have_is_printed_as_plus_and_not_read() {
    use weft_xip::{Edge, Row};
    let mut row = expand("hid-{a}").parse::<Address>().unwrap().rows()[0];
    row.edges[0] = Edge::to(36);
    let text = Address::from_rows(&[Row { ..row }]).unwrap().to_string();
    assert_eq!(text, expand("!hid-{a}-+***"));
    assert_eq!(text.parse::<Address>().unwrap_err().kind, TextErrorKind::ExpectedEdge);
}

#[test]
fn errors_name_the_byte_and_say_what_was_expected() {
    use TextErrorKind::*;
    let table = [
        ("", 0, ExpectedType),
        ("!", 1, ExpectedType),
        ("-{a}-0", 0, ExpectedType),
        (" hid-{a}-0", 0, ExpectedType),
        ("é", 0, ExpectedType),
        ("hid", 3, ExpectedDash),
        ("hid:{a}", 3, ExpectedDash),
        ("hidé-{a}", 3, ExpectedDash),
        ("foo-{a}-0", 0, UnknownName { name: "foo".into() }),
        ("hid-{a}-1:Foo-{b}-0", 47, UnknownName { name: "Foo".into() }),
        ("0x-{a}-0", 0, TypeNumber),
        ("0x123456789-{a}-0", 0, TypeNumber),
        ("0x000000011-{a}-0", 0, TypeNumber),
        ("0x1g-{a}-0", 0, TypeNumber),
        ("0x+1-{a}-0", 0, TypeNumber),
        ("abcdefghijklmnopqrstuvwxyz012345-{a}-0", 0, NameTooLong { len: 32 }),
        ("hid-aaaa-0", 8, ExpectedHexDigit { found: 4 }),
        ("hid-", 4, ExpectedHexDigit { found: 0 }),
        ("hid-{a}a-0", 44, ExpectedEdgesOrRow),
        ("hid-{a} ", 44, ExpectedEdgesOrRow),
        ("hid-{a}-", 45, ExpectedEdge),
        ("hid-{a}-:xdp-{b}-0", 45, ExpectedEdge),
        ("hid-{a}-+", 45, ExpectedEdge),
        ("hid-{a}->", 46, ExpectedEdge),
        ("hid-{a}->>0", 46, ExpectedEdge),
        ("hid-{a}-0é", 46, ExpectedRow),
        ("hid-{a}-0 ", 46, ExpectedRow),
        ("hid-{a}-00000", 49, TooManyEdges),
        ("hid-{a}-0000>0", 49, TooManyEdges),
        ("hid-{a}-0:", 47, ExpectedType),
        ("hid-{a}-0:\n", 48, ExpectedType),
        ("hid-{a}-0\n ", 47, ExpectedEnd),
    ];
    for (text, at, kind) in table {
        let error = expand(text).parse::<Address>().unwrap_err();
        assert_eq!((error.at, error.kind), (at, kind), "{text:?}");
    }
    let error = expand("hid-{a}-").parse::<Address>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "byte 45: expected an edge: a digit, a letter or `*`, with `>` before it if it was chosen"
    );
}

#[test]
fn an_xid_stands_alone() {
    let text = expand("hid-{a}");
    let xid: Xid = text.parse().unwrap();
    assert_eq!(xid, Xid::new(XidType::HID, [0xaa; 20]));
    assert_eq!(xid.to_string(), text);
    let error = expand("hid-{a}-0").parse::<Xid>().unwrap_err();
    assert_eq!((error.at, error.kind), (44, TextErrorKind::ExpectedEndOfXid));
    assert_eq!(Xid::new(XidType(0xffff_ffff), [0; 20]).to_string(), expand("0xffffffff-{0}"));
}

#[test]
fn loaded_names_are_read_and_printed() {
    let mut names = Names::new();
    names.insert("Chat", XidType(0x1000)).unwrap();
    let text = expand("hid-{a}-1:chat-{b}-0");
    let address = names.parse_address(&text).unwrap();
    assert_eq!(address.display(&names).to_string(), text);
    assert_eq!(address.to_string(), expand("hid-{a}-1:0x1000-{b}-0"));
    assert_eq!(names.parse_xid(&expand("CHAT-{b}")), Ok(address.final_xid()));
    assert!(text.parse::<Address>().is_err());
}
