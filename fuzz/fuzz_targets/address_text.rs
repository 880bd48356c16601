//! Address text and principal maps: what is read is printed so that it is read as the same again.
//!
//! Input: a principal map up to the first zero byte, then an address.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_xip::{Address, Names};

fuzz_target!(|text: &str| {
    let (map, address) = text.split_once('\0').unwrap_or(("", text));
    let mut names = Names::new();
    let skipped = names.load(map);
    assert!(skipped.len() <= map.lines().count());
    read_and_print(&names, address);
    read_and_print(&Names::new(), address);
    let _ = names.parse_xid(address);
});

fn read_and_print(names: &Names, text: &str) {
    match names.parse_address(text) {
        Ok(address) => print_and_read(names, &address),
        Err(error) => assert!(text.is_char_boundary(error.at), "{error}"),
    }
}

fn print_and_read(names: &Names, address: &Address) {
    let printed = address.display(names).to_string();
    assert_eq!(printed.starts_with('!'), !address.is_valid());
    assert_eq!(names.parse_address(&printed).as_ref(), Ok(address));
    let lines = format!("{:#}", address.display(names));
    assert_eq!(names.parse_address(&lines).as_ref(), Ok(address));
    for row in address.rows() {
        let xid = row.xid.display(names).to_string();
        assert_eq!(names.parse_xid(&xid), Ok(row.xid));
    }
}
