//! Interface files: arbitrary text is read or refused, stubs are written for what was read, and what a
//! method's specification says can be written as an XRL's and is read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_xif::{Interface, generate};
use weft_xrl::text::Xrl;

fuzz_target!(|text: &str| {
    let Ok(interface) = Interface::parse(text) else { return };
    let stubs = generate(&interface, text);
    for method in &interface.methods {
        assert!(stubs.contains(&format!("`{}`", method.name)) || !method.doc.is_empty());
        if method.args.iter().chain(&method.returns).any(|field| field.optional) {
            continue;
        }
        let spec = format!("finder://target/{interface}/{method}");
        let xrl: Xrl = spec.parse().expect("a specification is an XRL without values");
        assert_eq!(xrl.to_string(), spec);
    }
});
