//! Lab files, with the configuration language below: any bytes are a lab or are told what is wrong,
//! and what is read is printed as canonical text that means the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_config::Document;
use weft_lab::{Lab, Variables};

fuzz_target!(|bytes: &[u8]| {
    let given = Variables::new();
    let lab = match Lab::parse_bytes("fuzz.lab", bytes, &given) {
        Ok(lab) => lab,
        Err(errors) => {
            assert!(errors.count() >= 1);
            // Shows the lines of the mistakes.
            assert!(errors.to_string().starts_with("fuzz.lab:"));
            return;
        }
    };
    let document = Document::parse_bytes("fuzz.lab", bytes).expect("the lab was read from it");
    let printed = document.to_string();
    let again = Lab::parse("fuzz.lab", &printed, &given).expect("canonical text is read back");
    assert_eq!(lab.name(), again.name());
    assert_eq!(lab.seed(), again.seed());
    assert!(lab.nodes().eq(again.nodes()));
    assert!(lab.scenarios().eq(again.scenarios()));
});
