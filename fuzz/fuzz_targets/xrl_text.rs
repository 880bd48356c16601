//! XRLs as text: what can be read is written again the same way, and arguments go to the wire and back
//! without a change.
//!
//! Input: the arguments of a method that has every type, `name:type=value&…`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_xif::Interface;
use weft_xrl::text::{Xrl, decode_arguments, encode_arguments};
use weft_xrl::{Decoder, Encoder, Limits};

const INTERFACE: &str = include_str!("../../interfaces/probe.xif");

fuzz_target!(|text: &str| {
    if let Ok(xrl) = text.parse::<Xrl>() {
        let written = xrl.to_string();
        let again: Xrl = written.parse().expect("what was written can be read");
        assert_eq!(again.to_string(), written);
    }
    let Ok(xrl) = format!("finder://probe/probe/1.2/echo?{text}").parse::<Xrl>() else { return };
    let interface = Interface::parse(INTERFACE).expect("the interface is right");
    for method in &interface.methods {
        let _ = Limits::parse(text, method, &interface);
        let mut to = Encoder::new();
        if encode_arguments(&xrl.args, &method.args, &interface, &mut to).is_err() {
            continue;
        }
        let (bytes, handles) = to.finish();
        let mut from = Decoder::new(bytes.bytes(), handles);
        let written = decode_arguments(&mut from, &method.args, &interface)
            .expect("what was encoded can be decoded");
        let again = format!("finder://p/probe/1.2/{}?{written}", method.name);
        let again: Xrl = again.parse().expect("what was written can be read");
        let mut to = Encoder::new();
        encode_arguments(&again.args, &method.args, &interface, &mut to)
            .expect("what was decoded can be encoded");
        assert_eq!(to.finish().0.bytes(), bytes.bytes());
    }
});
