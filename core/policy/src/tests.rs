//! What policies do to routes, what is wrong with them, and how it is said.

mod errors;
mod naive;
mod parts;
mod random;

use std::borrow::Cow;

use weft_config::Errors;

use crate::{
    Access, CommunityKind, Kind, Policies, Program, Route, Side, TextRoute, Value, Variable, names,
};

const NUMBER: Kind = Kind::Number { most: u32::MAX as u64 };

/// One variable of each kind, and some more.
pub(crate) static VARIABLES: &[Variable] = &[
    Variable::new("prefix", Kind::Prefix, "the prefix"),
    Variable::new("as-path", Kind::AsPath, "the AS path").with(Access::Write),
    Variable::new("metric", NUMBER, "the metric").with(Access::Remove),
    Variable::new("hops", Kind::Number { most: 15 }, "how far it is").with(Access::Write),
    Variable::new("origin", Kind::Word(&["igp", "egp", "incomplete"]), "the origin")
        .with(Access::Write),
    Variable::new("next-hop", Kind::Address, "the next hop").with(Access::Write),
    Variable::new("community", Kind::Communities(CommunityKind::Standard), "communities")
        .with(Access::Write),
    Variable::new("extended-community", Kind::Communities(CommunityKind::Extended), "communities")
        .with(Access::Write),
    Variable::new("large-community", Kind::Communities(CommunityKind::Large), "communities")
        .with(Access::Write),
    Variable::new("stale", Kind::Switch, "whether it is stale").with(Access::Write),
    Variable::new("label", Kind::Text, "a text").with(Access::Remove),
    Variable::new("neighbor", Kind::Address, "who announced it"),
    Variable::new("neighbor", Kind::Address, "who is told").on(Side::To),
    Variable::new("self", Kind::Address, "this router").on(Side::Then),
    Variable::new("local-as", NUMBER, "this system").on(Side::Then),
];

fn route(text: &str) -> TextRoute {
    TextRoute::parse("route", text, VARIABLES).unwrap()
}

fn program(text: &str, chain: &[&str]) -> Result<Program, Errors> {
    let policies = Policies::parse("t", text)?;
    Program::new(&policies, VARIABLES, &names("names", chain)?)
}

/// What the policy `p` of these statements does to a route: the verdict, and each change.
fn outcome(statements: &str, text: &str) -> String {
    let program = program(&format!("policy {{ {statements} }}"), &["p"]).unwrap();
    let route = route(text);
    let outcome = program.run(&route);
    assert_eq!(program.explain(&route).0, outcome, "explaining changes nothing");
    let verdict = if outcome.accepted { "accepted" } else { "rejected" };
    let changed =
        outcome.changes.iter().filter(|(variable, value)| *value != route.read(*variable));
    let changes = changed.map(|(variable, value)| {
        let Variable { name, kind, .. } = VARIABLES[*variable];
        match value {
            Some(value) => format!("; {name} {}", value.shown(kind)),
            None => format!("; no {name}"),
        }
    });
    verdict.to_owned() + &changes.collect::<String>()
}

/// Whether a condition holds of a route.
fn holds(condition: &str, text: &str) -> bool {
    let statements = format!("policy-statement p {{ from {{ {condition} }} then {{ accept; }} }}");
    outcome(&statements, text) == "accepted"
}

/// What an action does to a route.
fn done(action: &str, text: &str) -> String {
    let statements = format!("policy-statement p {{ then {{ {action} accept; }} }}");
    let outcome = outcome(&statements, text);
    outcome.strip_prefix("accepted").unwrap().trim_start_matches("; ").to_owned()
}

#[test]
fn conditions_ask_what_they_say() {
    let route = "prefix 192.0.2.0/24; as-path 65001 65002 \"{7,8}\"; metric 5; origin egp; next-hop 10.0.0.1; \
                 community 65000:1 no-export; large-community 1:2:3; extended-community rt:65000:9; stale on; \
                 neighbor 10.0.0.2; label red;";
    for (condition, expected) in [
        ("prefix 192.0.2.0/24;", true),
        ("prefix 192.0.0.0/16;", false),
        ("prefix 192.0.0.0/16 orlonger;", true),
        ("prefix ne 192.0.2.0/24;", false),
        ("prefix length le 24;", true),
        ("prefix length 8-23;", false),
        ("as-path length 3;", true),
        ("as-path first 65001;", true),
        ("as-path origin present;", false),
        ("as-path has 8;", true),
        ("as-path has 64512-65001;", true),
        ("as-path has 9 10-20;", false),
        ("as-path matches \"^65001 .* 7$\";", true),
        ("as-path matches 65003;", false),
        ("metric 5;", true),
        ("metric 1 2 3-6;", true),
        ("metric ne 5;", false),
        ("metric lt 5;", false),
        ("metric ge 5;", true),
        ("hops absent;", true),
        ("hops present;", false),
        ("hops lt 9;", false),
        ("hops ne 9;", true),
        ("origin igp egp;", true),
        ("origin ne egp;", false),
        ("next-hop 10.0.0.1 10.0.0.9;", true),
        ("next-hop within 10.0.0.0/8;", true),
        ("next-hop neighbor;", false),
        ("next-hop ne neighbor;", true),
        ("community has no-export;", true),
        ("community has 65000:2-9 65001:*;", false),
        ("community has-all 65000:* no-export;", true),
        ("community has-all 65000:* 1:1;", false),
        ("community count 2;", true),
        ("large-community has 1:*:3;", true),
        ("extended-community has rt:65000:*;", true),
        ("stale;", true),
        ("stale off;", false),
        ("label red blue;", true),
        ("label ne red;", false),
        ("not { metric 5; origin igp; }", true),
        ("any { metric 4; origin egp; }", true),
        ("any { metric 4; all { origin egp; stale off; } }", false),
        ("metric 5; origin igp;", false),
    ] {
        assert_eq!(holds(condition, route), expected, "{condition}");
    }
}

#[test]
fn actions_do_what_they_say() {
    let route = "as-path 65001 7; metric 5; hops 14; origin egp; next-hop 10.0.0.1; community 1:1 1:2 2:2; \
                 stale on; label red; self 10.0.0.9; local-as 65000;";
    for (action, expected) in [
        ("metric 7;", "metric 7"),
        ("metric set 7;", "metric 7"),
        ("metric 5;", ""),
        ("metric remove;", "no metric"),
        ("metric add 7; metric mul 2;", "metric 24"),
        ("metric sub 9;", "metric 0"),
        ("metric div 2;", "metric 2"),
        ("metric lshift 60;", "metric 4294967295"),
        ("metric rshift 70;", "metric 0"),
        ("metric bit-and 4;", "metric 4"),
        ("metric bit-or 8;", "metric 13"),
        ("metric bit-xor 1;", "metric 4"),
        ("metric add hops;", "metric 19"),
        ("metric remove; metric add 3;", "metric 3"),
        ("hops add 3;", "hops 15"),
        ("hops metric;", "hops 5"),
        ("metric 256; hops metric;", "metric 256; hops 15"),
        ("hops set local-as;", "hops 15"),
        ("origin incomplete;", "origin incomplete"),
        ("next-hop self;", "next-hop 10.0.0.9"),
        ("next-hop neighbor;", ""),
        ("next-hop 2001:db8::1;", "next-hop 2001:db8::1"),
        ("as-path prepend 65000 2;", "as-path 65000 65000 65001 7"),
        ("as-path prepend local-as;", "as-path 65000 65001 7"),
        ("as-path expand 2;", "as-path 65001 65001 65001 7"),
        ("as-path prepend 1; as-path expand;", "as-path 1 1 65001 7"),
        ("community add 1:1 3:3 no-export;", "community 1:1 1:2 2:2 3:3 no-export"),
        ("community remove 1:*;", "community 2:2"),
        ("community set 9:9 9:9;", "community 9:9"),
        ("community clear;", "community "),
        ("large-community add 1:2:3;", "large-community 1:2:3"),
        ("stale off;", "stale off"),
        ("label blue;", "label blue"),
        ("label remove;", "no label"),
    ] {
        assert_eq!(done(action, route), expected, "{action}");
    }
}

#[test]
fn the_first_term_that_ends_decides_and_changes_stay_until_then() {
    let policy = "policy-statement p {
        term a { from { metric 1; } then { metric add 10; } }
        term b { from { metric 11; } then { hops 3; accept; } }
        term c { from { metric 2; } then { next policy; } }
        then { metric 0; reject; }
    }";
    assert_eq!(outcome(policy, "metric 1;"), "accepted; metric 11; hops 3");
    assert_eq!(outcome(policy, "metric 11;"), "accepted; hops 3");
    assert_eq!(outcome(policy, "metric 2;"), "rejected");
    assert_eq!(outcome(policy, "metric 3;"), "rejected; metric 0");
}

#[test]
fn policies_are_asked_in_order_and_who_nobody_accepts_is_rejected() {
    let text = "policy {
        policy-statement a { from { metric 1; } then { hops 1; } }
        policy-statement b { from { hops 1; } then { accept; } }
    }";
    let program = program(text, &["a", "b"]).unwrap();
    assert_eq!(program.names().collect::<Vec<_>>(), ["a", "b"]);
    let (first, second) = (route("metric 1;"), route("metric 2;"));
    let outcome = program.run(&first);
    assert_eq!((outcome.accepted, outcome.changes), (true, vec![(3, Some(Value::Number(1)))]));
    assert!(!program.run(&second).accepted);
}

#[test]
fn what_a_called_policy_changes_stays_with_it() {
    let text = "
        policy-statement sub { then { metric add 1; accept; } }
        policy-statement even { from { policy sub; metric 2; } then { accept; } }
        policy-statement p { from { policy sub; not { policy none; } policy even; } then { accept; } }
        policy-statement none { then { metric 7; } }";
    assert_eq!(outcome(text, "metric 2;"), "accepted");
    assert_eq!(outcome(text, "metric 3;"), "rejected");
}

#[test]
fn sides_are_kept_apart() {
    let text = "policy-statement p { from { neighbor 10.0.0.1; } to { neighbor 10.0.0.2; } then { accept; } }";
    let program = program(&format!("policy {{ {text} }}"), &["p"]).unwrap();
    let mut told = route("neighbor 10.0.0.1;");
    assert!(!program.run(&told).accepted, "nobody is told");
    told.or_set(12, Value::Address("10.0.0.2".parse().unwrap()));
    assert!(program.run(&told).accepted);
    assert!(program.reads(11) && program.reads(12) && !program.reads(0));
}

#[test]
fn an_explanation_says_what_happened_and_why() {
    let text = "policy {
        prefix-list bogons { 10.0.0.0/8 orlonger; }
        policy-statement is-bogon { from { prefix in bogons; } then { accept; } }
        policy-statement p {
            term bogon { from { policy is-bogon; } then { reject; } }
            term near { from { metric lt 9; any { origin egp; stale; } } then { metric add 1; community add 1:2; accept; } }
            then { reject; }
        }
    }";
    let program = program(text, &["p"]).unwrap();
    let (_, why) = program.explain(&route("prefix 192.0.2.0/24; metric 5; stale on;"));
    assert_eq!(
        why.to_string(),
        "\
policy p
  term bogon
    policy is-bogon
      its own term
        prefix in bogons: no, it is 192.0.2.0/24
      neither accepts nor rejects
    policy is-bogon: no
  term near
    metric lt 9: yes, it is 5
    origin egp: no
    stale: yes, it is on
    metric add 1: metric was 5, is 6
    community add 1:2: community was none, is 1:2
    accept
accepted by p, term near
"
    );
    let (_, why) = program.explain(&route("prefix 10.1.0.0/16;"));
    assert!(why.to_string().ends_with("rejected by p, term bogon\n"), "{why}");
}

#[test]
fn a_number_that_is_none_of_a_system_is_not_prepended() {
    assert_eq!(done("as-path prepend metric;", "as-path 7; metric 0;"), "");
    assert_eq!(done("as-path prepend metric;", "as-path 7; metric 4294967295;"), "");
    let grown = done("as-path prepend metric 64;", "as-path 7; metric 8;");
    assert_eq!(grown.matches('8').count(), 64);
}

#[test]
fn lists_of_all_kinds_are_found() {
    let lists = "prefix-list a { 192.0.2.0/24; } as-list a { 65001-65003; } as-path-list a { \"^1 2$\"; 7; }
        community-list a { 1:1; 2:*; } extended-community-list a { rt:1:1; } large-community-list a { 1:1:1; }";
    for (condition, text) in [
        ("prefix in a;", "prefix 192.0.2.0/24;"),
        ("next-hop in a;", "next-hop 192.0.2.77;"),
        ("as-path origin in a;", "as-path 1 65002;"),
        ("as-path has in a;", "as-path 65002 1;"),
        ("as-path in a;", "as-path 1 7 3;"),
        ("metric in a;", "metric 65003;"),
        ("community in a;", "community 2:9;"),
        ("extended-community in a;", "extended-community rt:1:1;"),
        ("large-community in a;", "large-community 1:1:1;"),
    ] {
        let policy =
            format!("{lists} policy-statement p {{ from {{ {condition} }} then {{ accept; }} }}");
        assert_eq!(outcome(&policy, text), "accepted", "{condition}");
        assert_eq!(outcome(&policy, ""), "rejected", "{condition}");
    }
    let strip =
        format!("{lists} policy-statement p {{ then {{ community remove in a; accept; }} }}");
    assert_eq!(outcome(&strip, "community 1:1 1:2 2:7;"), "accepted; community 1:2");
}

#[test]
fn borrowed_and_owned_values_are_the_same() {
    let all = [1, 2];
    assert_eq!(Value::Communities(Cow::Borrowed(&all)), Value::Communities(Cow::Owned(all.into())));
}

#[test]
fn the_schema_accepts_what_is_read() {
    use weft_config::{LoadMode, Schema, Tree};
    let text = "policy {
        prefix-list a { 192.0.2.0/24; 10.0.0.0/8 upto 16; }
        as-path-list a { \"^1 2$\"; 7; }
        policy-statement p {
            term b { from { prefix in a; any { metric 1; not { stale; } } } then { metric add 1; metric add 1; } }
            term a { to { neighbor 10.0.0.1; } then { accept; } }
            then { reject; }
        }
    }";
    let schema = Schema::parse("s", &format!("version 1; {}", crate::SCHEMA)).unwrap();
    let tree = Tree::parse("t", &format!("version 1; {text}")).unwrap();
    let loaded = schema.load(&Tree::empty(), &tree, LoadMode::Override).unwrap();
    let kept = Policies::parse("t", &loaded.part(crate::STATEMENT).body()).unwrap();
    assert_eq!(kept, Policies::parse("t", text).unwrap(), "{loaded}");
}
