//! What is wrong is said with its place, and how to mend it.

use super::program;

/// The line of the error, and what it says.
fn error(text: &str) -> String {
    let errors = program(text, &["p"]).expect_err(text);
    errors.to_string()
}

#[test]
fn mistakes_in_policies_say_how_to_mend_them() {
    for (statements, place, part) in [
        ("from { prefx 192.0.2.0/24; }", "prefx", "did you mean `prefix`?"),
        ("from { prefix 192.0.2.1/24; }", "192.0.2.1/24", "write `192.0.2.0/24`"),
        ("from { prefix 192.0.2.0/24 greater; }", "greater", "orlonger"),
        ("from { prefix 192.0.2.0/24 upto 33; }", "33", "to 32"),
        ("from { prefix 192.0.2.0/24 upto 20; }", "20", "from that of the prefix"),
        ("from { prefix in costumers; }", "costumers", "did you mean `customers`?"),
        ("from { prefix in x y; }", "y", "too much"),
        ("from { prefix; }", "prefix", "prefix-list"),
        ("from { prefix { } }", "prefix", "takes no block"),
        ("from { metric high; }", "high", "64512-65534"),
        ("from { metric lt; }", "lt", "a number is missing"),
        ("from { metric lt prefix; }", "prefix", "the name of a variable"),
        ("from { metric 9-3; }", "9-3", "the lower one first"),
        ("from { origin ipg; }", "ipg", "did you mean `igp`?"),
        ("from { as-path 65001; }", "65001", "`matches`"),
        ("from { as-path matches \"65001 (\"; }", "\"65001 (\"", "`)` is missing"),
        ("from { as-path matches \"6500111111111\"; }", "6500111111111", "too large"),
        ("from { as-path matches \"* 1\"; }", "* 1", "nothing in front"),
        ("from { as-path matches \"1 ^ 2\"; }", "1 ^ 2", "beginning"),
        ("from { as-path matches \"1{600}\"; }", "1{600}", "512"),
        ("from { community has 65000; }", "65000", "no-export"),
        ("from { community has 65536:1; }", "65536:1", "65535"),
        ("from { large-community has 1:2; }", "1:2", "three numbers"),
        ("from { extended-community has rt:1; }", "rt:1", "rt:65000:100"),
        ("from { policy q; }", "q", "policy-statement"),
        ("from { any { } }", "any", "no conditions"),
        ("from { not metric 5; }", "not", "not { … }"),
        ("from { self 10.0.0.1; }", "self", "only a value"),
        ("to { metric 5; }", "metric", "in `from`"),
        ("then { prefix 10.0.0.0/8; }", "prefix", "can only be read; what can be changed: as-path"),
        ("then { metrc 5; }", "metrc", "did you mean `metric`?"),
        ("then { hops 16; }", "16", "at most 15"),
        ("then { hops remove; }", "remove", "always has a value"),
        ("then { metric div 0; }", "0", "divided by 0"),
        ("then { metric add 1 2; }", "2", "too much"),
        ("then { next-hop here; }", "here", "address of IP"),
        ("then { as-path 65001; }", "65001", "prepend 65000 2"),
        ("then { as-path prepend 0; }", "0", "from 1 to"),
        ("then { as-path prepend 1 65; }", "65", "1 to 64"),
        ("then { community 1:1; }", "1:1", "`add`, `set` or `remove`"),
        ("then { community add 1:*; }", "1:*", "65535"),
        ("then { community remove in x; }", "x", "community-list"),
        ("then { accept now; }", "now", "takes nothing"),
        ("then { accept; metric 5; }", "metric", "nothing is done behind `accept`"),
        ("then { next; }", "next", "`policy` or `term`"),
        ("then { next hop; }", "hop", "next policy"),
        ("form { }", "form", "did you mean `from`?"),
    ] {
        let text = format!(
            "policy {{ prefix-list customers {{ }} policy-statement p {{ {statements} }} }}"
        );
        let said = error(&text);
        assert!(said.contains(part), "{statements}: {said}");
        // The place is that of one of these words, in its quotes if it has any.
        let mut places =
            text.match_indices(place).map(|(at, _)| at + 1).flat_map(|at| [at, at - 1]);
        assert!(places.any(|at| said.starts_with(&format!("t:1:{at}:"))), "{statements}: {said}");
    }
}

#[test]
fn policies_must_not_call_one_another_in_a_circle() {
    let text = "policy {
        policy-statement p { from { policy q; } then { accept; } }
        policy-statement q { from { not { policy r; } } then { accept; } }
        policy-statement r { from { policy q; } then { accept; } }
    }";
    assert!(error(text).contains("q → r → q"), "{}", error(text));
    let own = "policy { policy-statement p { from { policy p; } } }";
    assert!(error(own).contains("p → p"), "{}", error(own));
}

#[test]
fn what_is_never_reached_is_said() {
    let text = "policy { policy-statement p {
        term a { then { accept; } }
        term b { from { metric 5; } then { reject; } }
    } }";
    let said = error(text);
    assert!(
        said.starts_with("t:3:14:") && said.contains("never reached") && said.contains("t:2:14"),
        "{said}"
    );
}

#[test]
fn names_are_given_once() {
    for (text, part) in [
        ("policy { policy-statement p { } policy-statement p { } }", "`p` was described before"),
        (
            "policy { prefix-list a { } prefix-list a { } policy-statement p { } }",
            "`a` was described before",
        ),
        ("policy { policy-statement p { term a { } term a { } } }", "`a` was described before"),
        ("policy { policy-statement p { from { } from { } } }", "from"),
        ("policy { } policy { }", "policy"),
    ] {
        assert!(error(text).contains(part), "{text}: {}", error(text));
    }
}

#[test]
fn a_policy_that_is_not_there_is_said_where_it_is_used() {
    let said =
        program("policy { policy-statement import { } }", &["imprt"]).unwrap_err().to_string();
    assert!(said.starts_with("names:1:") && said.contains("did you mean `import`?"), "{said}");
}

#[test]
fn runs_are_bounded() {
    // Each policy calls the next one twice: 2^15 calls of the last one.
    let call = |n: usize| {
        format!(
            "policy-statement p{n} {{ from {{ any {{ policy p{0}; metric {n}; policy p{0}; }} }} then {{ accept; }} }}",
            n + 1
        )
    };
    let many: String = (0..14).map(call).collect();
    let text = format!(
        "policy {{ policy-statement p {{ from {{ policy p0; }} }} {many} policy-statement p14 {{ then {{ accept; }} }} }}"
    );
    assert!(error(&text).contains("65536 are taken"), "{}", error(&text));
    let chain: String = (0..40)
        .map(|n| format!("policy-statement p{n} {{ from {{ policy p{}; }} }} ", n + 1))
        .collect();
    let text = format!("policy {{ policy-statement p {{ from {{ policy p0; }} }} {chain} }}");
    assert!(error(&text).contains("more than 16 deep"), "{}", error(&text));
}

#[test]
fn several_mistakes_are_said_at_once() {
    let said = error("policy { policy-statement p { from { a 1; b 2; } then { c 3; } } }");
    for name in ["`a`", "`b`", "`c`"] {
        assert!(said.contains(name), "{said}");
    }
}
