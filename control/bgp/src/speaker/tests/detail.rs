//! What operators are shown of one session.

use serde_json::{Value, json};

use super::*;
use crate::interface::Show;
use crate::numbers::cease;
use crate::wire::{AddPath, GracefulRestart, Notification};

fn prefix(number: u8) -> Prefix {
    ipnet::Ipv4Net::new([203, 0, number, 0].into(), 24).unwrap().prefix()
}

const TEXT: &str = "
    policy { policy-statement some { from { prefix 203.0.1.0/24; } then { accept; } } }
    bgp { as 65000; router-id 192.0.2.9;
        group transit {
            as 65001; passive on; hold-time 9s; import some; export all; add-path both; md5-key secret;
            ttl-security 2; local-role customer; family ipv4-unicast ipv6-unicast;
            prefix-limit { most 7; action warn; restart-after 90s; }
            peer 10.0.1.2 { description upstream; }
        }
        peer 10.0.2.2 { as 65002; passive on; hold-time 9s; import all; export all; }
    }";

impl World {
    fn details(&self, number: u8) -> Result<Value, String> {
        let request = Show { peer: Some(address(number).into()), ..show("peer") };
        self.bgp.show(self.now, &request).map_err(|error| error.note.to_string())
    }
}

#[test]
fn a_session_is_shown_with_what_was_said_and_what_was_agreed_on() {
    let mut world = World::started_as(config::read("t", TEXT).unwrap());
    world.born(false);
    let said = [Capability::Role(crate::wire::Role::Provider), Capability::ExtendedMessage];
    let families = vec![(Family::IPV4_UNICAST, true)];
    let restart = GracefulRestart { restarted: false, notification: true, time: 60, families };
    let more = [
        Capability::Multiprotocol(Family::IPV4_UNICAST),
        Capability::AddPath(vec![(Family::IPV4_UNICAST, AddPath::Receive)]),
        Capability::GracefulRestart(restart),
    ];
    world.connect_with(1, &[&said[..], &more].concat());
    world.connect(2);
    (1..=3).for_each(|number| drop(world.announces(1, &prefix(number))));
    world.announces(2, &prefix(9));
    world.now += Duration::from_secs(5);
    let shown = world.details(1).unwrap();
    for (name, expected) in [
        ("address", json!("10.0.1.2")),
        ("as", json!(65001)),
        ("configured-as", json!(65001)),
        ("is-internal", json!(false)),
        ("own-as", json!(65000)),
        ("own-router-id", json!("192.0.2.9")),
        ("description", json!("upstream")),
        ("group", json!("transit")),
        ("state", json!("Established")),
        ("state-for", json!(5)),
        ("import", json!(["some"])),
        ("export", json!("all")),
        ("protection", json!({ "md5": true, "ttl-security": 2, "multihop": null })),
        ("limit", json!({ "most": 7, "action": "warn", "restart-after": 90, "restarts-in": null })),
        ("last-sent", Value::Null),
        ("last-received", Value::Null),
        (
            "connection",
            json!({
                "own": { "address": "10.0.1.1", "port": 179 },
                "peer": { "address": "10.0.1.2", "port": 40000 },
            }),
        ),
        (
            "prefixes",
            json!({
                "ipv4": { "received": 3, "accepted": 1, "advertised": 1 },
                "ipv6": { "received": 0, "accepted": 0, "advertised": null },
            }),
        ),
        (
            "agreed",
            json!({
                "router-id": "10.0.1.2", "hold-time": 9, "keepalive": 3, "families": ["ipv4"],
                "four-octet-as": true, "route-refresh": true, "enhanced-route-refresh": true,
                "extended-message": true, "add-path": { "receive": [], "send": ["ipv4"] },
                "extended-next-hop": [], "peer-role": "provider", "graceful-restart": true,
                "graceful-notification": true, "long-lived": false,
            }),
        ),
    ] {
        assert_eq!(shown[name], expected, "{name}");
    }
    let [ours, theirs] = ["sent", "received"].map(|side| &shown["open"][side]);
    assert_eq!((&ours["as"], &theirs["as"]), (&json!(65000), &json!(65001)));
    assert_eq!((&ours["role"], &theirs["role"]), (&json!("customer"), &json!("provider")));
    assert_eq!(ours["add-path"], json!({ "ipv4": "both", "ipv6": "both" }));
    assert_eq!(theirs["graceful-restart"]["seconds"], json!(60));
    assert!(!shown.to_string().contains("secret"));
    // OPEN, KEEPALIVE; a route; the end of the table.
    let [sent, received] = ["sent", "received"].map(|side| &shown["messages"][side]);
    let counts = |of: &Value| {
        ["open", "update", "notification", "keepalive", "route-refresh"]
            .map(|kind| of[kind].as_u64().unwrap())
    };
    assert_eq!((counts(sent), counts(received)), ([1, 2, 0, 1, 0], [1, 3, 0, 1, 0]));
}

#[test]
fn the_last_notifications_of_both_sides_are_kept() {
    let mut world = World::new();
    let reset = Notification::cease_with_text(cease::ADMIN_RESET, "soon back");
    world.says(1, &reset.emit());
    world.now += Duration::from_secs(3);
    let shown = world.details(1).unwrap();
    assert_eq!(shown["state-for"], json!(3));
    assert_eq!((&shown["agreed"], &shown["open"]), (&Value::Null, &Value::Null));
    assert_eq!(
        (&shown["connection"], &shown["prefixes"]["ipv4"]["advertised"]),
        (&Value::Null, &Value::Null)
    );
    let text = "cease, administrative reset: \"soon back\"";
    let data: String = reset.data.iter().map(|byte| format!("{byte:02x}")).collect();
    let received = json!({ "seconds-ago": 3, "code": 6, "subcode": 4, "data": data, "text": text });
    assert_eq!((&shown["last-received"], &shown["last-sent"]), (&received, &Value::Null));
    // Another one does not hide it, and data may be long.
    while world.bgp.peers[&IpAddr::from(address(1))].state() != crate::fsm::State::Active {
        world.now = world.bgp.deadline().unwrap();
        world.happens(Event::Tick);
        world.says(2, &keepalive());
    }
    world.connect(1);
    let unknown = [&[0x50, 99, 1, 0][..], &[7; 256]].concat();
    let body = crate::wire::malformed::body_with(&unknown);
    world.says(1, &crate::wire::malformed::message(&body));
    let shown = world.details(1).unwrap();
    let sent = &shown["last-sent"];
    assert_eq!((&sent["code"], &sent["subcode"]), (&json!(3), &json!(2)));
    assert_eq!(sent["data"].as_str().map(str::len), Some(2 * 64));
    assert_eq!(shown["last-received"]["text"], json!(text));
    assert_eq!(shown["messages"]["sent"]["notification"], json!(1));
    assert_eq!(shown["messages"]["received"]["notification"], json!(1));
}

#[test]
fn only_a_peer_that_there_is_can_be_shown() {
    let world = World::new();
    assert!(world.details(9).unwrap_err().contains("there is no peer 10.0.9.2"));
    let error = world.bgp.show(world.now, &show("peer")).unwrap_err();
    assert!(error.note.contains("say which peer"), "{error}");
}
