//! What operators are shown.

use serde_json::{Value, json};

use super::*;
use crate::interface::Show;

fn prefix(number: u8) -> Prefix {
    ipnet::Ipv4Net::new([203, 0, number, 0].into(), 24).unwrap().prefix()
}

fn routes(from: Option<u8>, to: Option<u8>) -> Show {
    Show {
        received_from: from.map(|number| address(number).into()),
        advertised_to: to.map(|number| address(number).into()),
        ..show("routes")
    }
}

impl World {
    fn shows(&self, request: &Show) -> Result<Value, String> {
        self.bgp.show(self.now, request).map_err(|error| error.note.to_string())
    }

    /// The prefixes of what is shown, with these of each path.
    fn rows(&self, request: &Show, names: &[&str]) -> Vec<Value> {
        let shown = self.shows(request).unwrap();
        let rows = shown["routes"].as_array().unwrap().iter().flat_map(|one| {
            let paths = one["paths"].as_array().unwrap().iter();
            paths.map(|path| {
                let all = names.iter().map(|name| path[*name].clone());
                std::iter::once(one["prefix"].clone()).chain(all).collect()
            })
        });
        rows.collect()
    }
}

/// Another policy of `import`, and one of `export`.
const POLICIES: &str = "policy {
    policy-statement some {
        from { prefix 203.0.1.0/24; }
        then { local-pref 300; accept; }
    }
    policy-statement mark { then { community add no-export 65000:7; med 5; accept; } }
}";

#[test]
fn what_a_peer_has_announced_and_what_one_is_told_is_shown() {
    let mut world = World::new();
    let text = format!(
        "{POLICIES} bgp {{ as 65000; router-id 192.0.2.1;
            peer 10.0.1.2 {{ as 65001; passive on; hold-time {HOLD}s; import some; export all; }}
            peer 10.0.2.2 {{ as 65002; passive on; hold-time {HOLD}s; import all; export mark; }}
        }}"
    );
    world.configure_as(config::read("t", &text).unwrap());
    world.announces(1, &prefix(1));
    world.announces(1, &prefix(2));
    let names = ["as-path", "local-pref", "accepted", "unused"];
    let refused = "`import` of the peer does not take it";
    assert_eq!(
        world.rows(&routes(Some(1), None), &names),
        [
            json!(["203.0.1.0/24", "65001", null, true, null]),
            json!(["203.0.2.0/24", "65001", null, false, refused]),
        ],
        "as it came, also what policy refuses"
    );
    let used = world.rows(&routes(None, None), &["local-pref"]);
    assert_eq!(used, [json!(["203.0.1.0/24", 300]), json!(["203.0.2.0/24", null])]);
    let names = ["as-path", "next-hop", "med", "communities", "peer", "path-id"];
    assert_eq!(
        world.rows(&routes(None, Some(2)), &names),
        [json!([
            "203.0.1.0/24",
            "65000 65001",
            "10.0.2.1",
            5,
            ["no-export", "65000:7"],
            "10.0.1.2",
            null
        ])]
    );
    assert!(world.rows(&routes(None, Some(1)), &[]).is_empty(), "it has told them itself");
    // As `export` marks them; those of a community alone.
    let with =
        |to, community: &str| Show { community: Some(community.to_owned()), ..routes(None, to) };
    assert_eq!(world.rows(&with(Some(2), "65000:7"), &[]), [json!(["203.0.1.0/24"])]);
    assert!(world.rows(&with(Some(2), "65000:8"), &[]).is_empty());
    assert!(
        world.rows(&with(None, "65000:7"), &[]).is_empty(),
        "nobody has announced it with that"
    );
    assert!(world.shows(&with(None, "65000")).unwrap_err().contains("is no community"));
    let within = Show { within: Some("203.0.2.0/23".to_owned()), ..routes(None, None) };
    assert_eq!(world.rows(&within, &[]), [json!(["203.0.2.0/24"])]);
    let both = Show { prefix: Some("203.0.2.1".to_owned()), ..within };
    assert!(world.shows(&both).unwrap_err().contains("either"));
    assert!(world.rows(&routes(Some(2), None), &[]).is_empty());
}

/// The table of RFC 4271 §9.1.2.2, step by step: of two paths to a prefix, the second one comes behind.
#[test]
fn a_path_that_lost_says_in_what() {
    let policies = "policy {
        policy-statement low { then { local-pref 50; accept; } }
        policy-statement long { then { as-path prepend 65009 2; accept; } }
        policy-statement unsure { then { origin incomplete; accept; } }
        policy-statement same { then { origin igp; accept; } }
    }";
    for (second, lost_by) in [
        ("low", "local preference"),
        ("long", "length of the AS path"),
        ("unsure", "origin"),
        ("same", "router-id"),
    ] {
        let mut world = World::new();
        let text = format!(
            "{policies} bgp {{ as 65000; router-id 192.0.2.1;
                peer 10.0.1.2 {{ as 65001; passive on; hold-time {HOLD}s; import same; export all; }}
                peer 10.0.2.2 {{ as 65002; passive on; hold-time {HOLD}s; import {second}; export all; }}
            }}"
        );
        world.configure_as(config::read("t", &text).unwrap());
        for peer in [1, 2] {
            world.announces(peer, &prefix(1));
        }
        let names = ["peer", "best", "lost-by", "unused"];
        assert_eq!(
            world.rows(&routes(None, None), &names),
            [
                json!(["203.0.1.0/24", "10.0.1.2", true, null, null]),
                json!(["203.0.1.0/24", "10.0.2.2", false, lost_by, null]),
            ],
            "{second}"
        );
    }
}

#[test]
fn what_cannot_be_shown_is_said() {
    let mut world = World::started("");
    world.born(false);
    world.connect(1);
    let error = |from, to| world.shows(&routes(from, to)).unwrap_err();
    assert!(error(None, Some(2)).contains("no session with 10.0.2.2"));
    assert!(error(Some(1), Some(1)).contains("either"));
    assert!(error(Some(9), None).contains("there is no peer 10.0.9.2"));
}

#[test]
fn a_summary_says_who_this_is_and_counts_sessions_and_paths() {
    let mut world = World::new();
    world.announces(1, &prefix(7));
    let shown = world.shows(&show("summary")).unwrap();
    assert_eq!((&shown["as"], &shown["router-id"]), (&65000.into(), &"192.0.2.1".into()));
    assert_eq!(shown["peers"], json!({ "Established": 2 }));
    assert_eq!((&shown["ipv4"], &shown["paths"]["ipv4"]), (&1.into(), &1.into()));
    assert_eq!(shown["paths"]["ipv6-multicast"], 0);
}
