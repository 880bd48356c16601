//! Random policies do what walking through their trees does, and are read as they are printed.

use proptest::prelude::*;

use super::{VARIABLES, naive, route};
use crate::check::check;
use crate::{Policies, Program, names};

fn one_of(words: &[&str]) -> impl Strategy<Value = String> + use<> {
    prop::sample::select(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
}

fn condition() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        8 => one_of(&[
            "prefix in a;", "prefix 10.0.0.0/8 longer;", "prefix length ge 9;", "prefix 10.1.0.0/16;",
            "as-path matches \"^1 .*\";", "as-path in a;", "as-path length 2;", "as-path has 2;", "as-path first ne 1;",
            "as-path origin in a;", "metric 1-3;", "metric lt hops;", "metric ge 4;", "metric absent;", "hops ne metric;",
            "hops present;", "origin igp;", "origin ne egp;", "next-hop in a;", "next-hop self;", "next-hop neighbor;",
            "next-hop within 10.0.0.0/8;", "community has 1:*;", "community in a;", "community has-all 1:1 2:2;",
            "community count gt 1;", "large-community has 1:1:1;", "stale;", "stale off;", "label red;", "label ne red;",
        ]),
        1 => one_of(&["policy q;", "policy r;"]),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        (one_of(&["any", "all", "not"]), prop::collection::vec(inner, 1..4))
            .prop_map(|(word, all)| format!("{word} {{ {} }}", all.concat()))
    })
}

fn action() -> impl Strategy<Value = String> {
    one_of(&[
        "metric 3;",
        "metric add 2;",
        "metric sub hops;",
        "metric remove;",
        "metric mul 3;",
        "metric bit-xor 5;",
        "hops metric;",
        "hops add 5;",
        "hops lshift 2;",
        "origin incomplete;",
        "origin igp;",
        "next-hop self;",
        "next-hop 10.0.0.3;",
        "next-hop neighbor;",
        "community add 1:1 3:3;",
        "community remove 1:*;",
        "community remove in a;",
        "community set 2:2;",
        "community clear;",
        "large-community add 1:1:1;",
        "as-path prepend 1;",
        "as-path prepend local-as 2;",
        "as-path prepend metric;",
        "as-path expand;",
        "stale on;",
        "stale off;",
        "label red;",
        "label remove;",
    ])
}

/// A policy; without calls if there is nobody to call.
fn policy(name: &'static str, calls: &'static [&'static str]) -> impl Strategy<Value = String> {
    let end = one_of(&["accept;", "reject;", "next policy;", "next term;", "", ""]);
    let term =
        (prop::collection::vec(condition(), 0..4), prop::collection::vec(action(), 0..4), end);
    prop::collection::vec(term, 0..5).prop_map(move |terms| {
        let mut text = format!("policy-statement {name} {{ ");
        for (place, (conditions, actions, end)) in terms.iter().enumerate() {
            let mut from = conditions.concat();
            for callee in ["q", "r"].iter().filter(|callee| !calls.contains(callee)) {
                from = from.replace(&format!("policy {callee};"), "metric 2;");
            }
            let unreached = conditions.is_empty() && end != "next term;" && place + 1 < terms.len();
            let end = if unreached { "" } else { end };
            let then = format!("{}{end}", actions.concat());
            text += &format!("term t{place} {{ from {{ {from} }} then {{ {then} }} }} ");
        }
        text + "} "
    })
}

fn whole() -> impl Strategy<Value = String> {
    let lists = "prefix-list a { 10.0.0.0/8 upto 16; 192.0.2.0/24 orshorter; } as-list a { 1-3 7; } \
                 as-path-list a { \"1 [2-3]*\"; \"^$\"; } community-list a { 2:2; 3:*; } ";
    (policy("p", &["q", "r"]), policy("q", &["r"]), policy("r", &[]), policy("s", &["q"]))
        .prop_map(move |(p, q, r, s)| format!("policy {{ {lists}{p}{q}{r}{s} }}"))
}

fn routes() -> impl Strategy<Value = String> {
    let part = |all: &[&str]| one_of(all);
    (
        part(&[
            "prefix 10.0.0.0/8;",
            "prefix 10.1.0.0/16;",
            "prefix 0.0.0.0/0;",
            "prefix 2001:db8::/32;",
            "",
        ]),
        part(&[
            "as-path;",
            "as-path 1;",
            "as-path 1 2;",
            "as-path \"{1,2} 3\";",
            "as-path 4 7;",
            "",
        ]),
        part(&["metric 1;", "metric 4;", "metric 0;", ""]),
        part(&["hops 3;", "hops 15;", ""]),
        part(&["origin igp;", "origin egp;", ""]),
        part(&["next-hop 10.0.0.1;", "next-hop 2001:db8::1;", ""]),
        part(&["community 1:1 2:2;", "community 3:4;", "community;", ""]),
        part(&["stale on;", "stale off;", ""]),
        part(&["label red;", "neighbor 10.0.0.1;", ""]),
        part(&["self 10.0.0.1; local-as 9;", ""]),
    )
        .prop_map(|(a, b, c, d, e, f, g, h, i, j)| [a, b, c, d, e, f, g, h, i, j].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn programs_do_what_trees_say(text in whole(), route_text in routes()) {
        let policies = Policies::parse("t", &text).unwrap();
        let chain = names("names", &["p", "s"]).unwrap();
        let program = Program::new(&policies, VARIABLES, &chain).unwrap();
        let located: Vec<_> =
            chain.iter().map(|name| (name.value.as_str().to_owned(), name.location.clone())).collect();
        let (trees, numbers) = check(&policies, VARIABLES, &located).unwrap();
        let route = route(&route_text);
        let before = naive::values(&route, VARIABLES.len());
        let (accepted, after) = naive::run(&trees, &numbers, before.clone());
        let outcome = program.run(&route);
        prop_assert_eq!(outcome.accepted, accepted);
        let mut changed = before;
        changed.extend(outcome.changes.iter().cloned().map(|(variable, value)| (variable, value.map(naive::own))));
        prop_assert_eq!(&changed, &after);
        // Explaining does the same, and ends with the verdict.
        let (explained, why) = program.explain(&route);
        prop_assert_eq!(&explained, &outcome);
        prop_assert_eq!(why.accepted, accepted);
        let verdict = if accepted { "accepted" } else { "rejected" };
        prop_assert!(why.to_string().contains(verdict));
    }

    #[test]
    fn what_is_printed_is_read_as_the_same(text in whole()) {
        let policies = Policies::parse("t", &text).unwrap();
        let printed = policies.to_string();
        let again = Policies::parse("again", &printed).unwrap();
        prop_assert_eq!(&again, &policies);
        prop_assert_eq!(again.to_string(), printed);
        let chain = names("names", &["p", "s"]).unwrap();
        let compile = |policies| Program::new(policies, VARIABLES, &chain).unwrap();
        prop_assert_eq!(compile(&again), compile(&policies));
    }

    #[test]
    fn any_text_is_read_or_is_told_why_not(
        cut in whole(), from in 0usize..2000, length in 0usize..8, new in "[ -~]{0,6}",
    ) {
        // Something of a text is replaced.
        let mut text = cut;
        let from = from.min(text.len());
        let to = (from + length).min(text.len());
        text.replace_range(from..to, &new);
        let Ok(policies) = Policies::parse("t", &text) else { return Ok(()) };
        let printed = policies.to_string();
        prop_assert_eq!(&Policies::parse("again", &printed).unwrap(), &policies);
        if let Ok(program) = Program::new(&policies, VARIABLES, &names("names", &["p"]).unwrap()) {
            program.explain(&route("as-path 1 2; metric 3;"));
        }
    }
}
