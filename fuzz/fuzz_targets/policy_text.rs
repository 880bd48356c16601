//! Policies: any text is one or is told what is wrong; what is printed is read back as the same; whatever compiles runs to
//! its end, and explaining does the same.
//!
//! The parts of the input are separated by zero bytes: policies, and a route.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_policy::{
    Access, CommunityKind, Kind, Policies, Program, Side, TextRoute, Variable, names,
};

static VARIABLES: &[Variable] = &[
    Variable::new("prefix", Kind::Prefix, ""),
    Variable::new("as-path", Kind::AsPath, "").with(Access::Write),
    Variable::new("metric", Kind::Number { most: 0xFFFF_FFFF }, "").with(Access::Remove),
    Variable::new("hops", Kind::Number { most: 15 }, "").with(Access::Write),
    Variable::new("origin", Kind::Word(&["igp", "egp"]), "").with(Access::Write),
    Variable::new("next-hop", Kind::Address, "").with(Access::Write),
    Variable::new("community", Kind::Communities(CommunityKind::Standard), "").with(Access::Write),
    Variable::new("extended-community", Kind::Communities(CommunityKind::Extended), "")
        .with(Access::Write),
    Variable::new("large-community", Kind::Communities(CommunityKind::Large), "")
        .with(Access::Write),
    Variable::new("stale", Kind::Switch, "").with(Access::Write),
    Variable::new("label", Kind::Text, "").with(Access::Remove),
    Variable::new("neighbor", Kind::Address, ""),
    Variable::new("neighbor", Kind::Address, "").on(Side::To),
    Variable::new("self", Kind::Address, "").on(Side::Then),
];

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (policies, route) = text.split_once('\0').unwrap_or((&text, ""));
    let policies = match Policies::parse("fuzz.conf", policies) {
        Ok(policies) => policies,
        Err(errors) => {
            assert!(errors.to_string().starts_with("fuzz.conf:"));
            return;
        }
    };
    let printed = policies.to_string();
    let again = Policies::parse("again", &printed).expect("what is printed is read back");
    assert_eq!(again, policies);
    assert_eq!(again.to_string(), printed);
    let all: Vec<_> = policies.names().collect();
    let all = names("fuzz", &all).expect("they are names");
    let program = match Program::new(&policies, VARIABLES, &all) {
        Ok(program) => program,
        Err(errors) => {
            assert!(errors.count() >= 1 && !errors.to_string().is_empty());
            return;
        }
    };
    assert_eq!(Program::new(&again, VARIABLES, &all).as_ref(), Ok(&program));
    let empty = TextRoute::parse("route", "", VARIABLES).expect("nothing need be said");
    let route = TextRoute::parse("route", route, VARIABLES).unwrap_or(empty);
    let (outcome, explanation) = program.explain(&route);
    assert_eq!(outcome, program.run(&route));
    assert_eq!(outcome.accepted, explanation.accepted);
    assert!(!explanation.to_string().is_empty());
});
