//! Prefixes of the principal LPM: what is read is shown so that it is read as the same again.
//!
//! Input: a prefix as it stands in a statement, such as `10.0.0.0/8`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use weft_base::{Instant, Random};
use weft_xia_lpm::Lpm;
use weft_xip::principal::Principal;

fuzz_target!(|text: &str| {
    let Some(shown) = shown(text) else { return };
    let printed =
        shown["locals"][0]["prefix"].as_str().expect("a local prefix is shown as text").to_owned();
    assert_eq!(self::shown(&printed), Some(shown), "{text:?} is shown as {printed}");
});

/// What is shown of a node that has this prefix; `None` if it is none.
fn shown(prefix: &str) -> Option<Value> {
    let mut lpm = Lpm::new(Random::from_seed(1));
    lpm.set(Instant::ZERO, &["local", prefix], &mut Vec::new()).ok()?;
    let shown = lpm.show();
    lpm.delete(Instant::ZERO, &["local", prefix], &mut Vec::new()).expect("it is there");
    assert_eq!(lpm.show(), Lpm::new(Random::from_seed(1)).show());
    Some(shown)
}
