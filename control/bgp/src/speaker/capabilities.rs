//! What a speaker says in its OPEN, as JSON.
//!
//! Reference: RFC 5492, and the specifications that `wire::Capability` names.

use serde_json::{Map, Value, json};

use crate::incoming::version;
use crate::wire::{Capability, Families, Family, Open};

/// The name of a family: as that of its table, if it has one.
pub(super) fn name(family: Family) -> String {
    version(family).map_or_else(|| family.to_string(), |version| version.name().to_owned())
}

/// The names of families, in their order.
pub(super) fn names(families: Families) -> Vec<String> {
    families.iter().map(name).collect()
}

/// An OPEN.
pub(super) fn shown(open: &Open) -> Value {
    let mut unknown = Vec::new();
    let mut all = json!({
        "as": open.autonomous_system(), "router-id": open.identifier.to_string(),
        "hold-time": open.hold_time, "families": Vec::from_iter(open.families().into_iter().map(name)),
        "route-refresh": false, "enhanced-route-refresh": false, "four-octet-as": false,
        "extended-message": false, "role": null, "add-path": {}, "extended-next-hop": [],
        "graceful-restart": null, "long-lived": {}, "host": null,
    });
    for capability in &open.capabilities {
        let (name, value) = match capability {
            // They are there already.
            Capability::Multiprotocol(_) => continue,
            Capability::RouteRefresh => ("route-refresh", true.into()),
            Capability::EnhancedRefresh => ("enhanced-route-refresh", true.into()),
            Capability::FourOctetAs(_) => ("four-octet-as", true.into()),
            Capability::ExtendedMessage => ("extended-message", true.into()),
            Capability::Role(role) => ("role", role.to_string().into()),
            Capability::AddPath(all) => ("add-path", by_family(all, |way| way.to_string().into())),
            Capability::ExtendedNextHop(tuples) => {
                let family = |afi, safi| Some(name(Family { afi, safi: u8::try_from(safi).ok()? }));
                let all = tuples.iter().filter_map(|one| family(one.afi, one.safi));
                ("extended-next-hop", all.collect())
            }
            Capability::GracefulRestart(restart) => {
                let families = by_family(&restart.families, |forwards| (*forwards).into());
                let shown = json!({
                    "restarted": restart.restarted, "notification": restart.notification,
                    "seconds": restart.time, "families": families,
                });
                ("graceful-restart", shown)
            }
            Capability::LongLived(tuples) => {
                let tuples: Vec<_> = tuples.iter().map(|one| (one.family, one)).collect();
                let one = |one: &&crate::wire::LongLived| json!({ "seconds": one.stale_time, "forwarding": one.forwarding });
                ("long-lived", by_family(&tuples, one))
            }
            Capability::Fqdn { host, .. } => {
                let text = String::from_utf8_lossy(host);
                // It may come from anybody, and goes to a terminal.
                let plain = |c: char| if c.is_control() { '\u{FFFD}' } else { c };
                ("host", text.chars().map(plain).collect::<String>().into())
            }
            Capability::Other { code, .. } => {
                unknown.push(*code);
                continue;
            }
        };
        all[name] = value;
    }
    all["unknown"] = json!(unknown);
    all
}

/// Something for each family, by its name.
fn by_family<T>(all: &[(Family, T)], shown: impl Fn(&T) -> Value) -> Value {
    let entry = |(family, one): &(Family, T)| (name(*family), shown(one));
    Value::Object(Map::from_iter(all.iter().map(entry)))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::wire::{AddPath, ExtendedNextHop, GracefulRestart, LongLived, Role};

    #[test]
    fn everything_that_a_speaker_says_is_shown() {
        let (family, odd) = (Family::IPV4_UNICAST, Family { afi: 25, safi: 70 });
        let mut open = Open::new(70000, 90, Ipv4Addr::new(192, 0, 2, 1));
        let plain = shown(&open);
        assert_eq!((&plain["role"], &plain["graceful-restart"]), (&Value::Null, &Value::Null));
        assert_eq!(plain["families"], json!(["ipv4"]), "RFC 4760 §8");
        open.capabilities.extend([
            Capability::Multiprotocol(Family::IPV6_MULTICAST),
            Capability::Multiprotocol(odd),
            Capability::RouteRefresh,
            Capability::EnhancedRefresh,
            Capability::ExtendedMessage,
            Capability::Role(Role::RouteServer),
            Capability::AddPath(vec![(family, AddPath::Both), (odd, AddPath::Send)]),
            Capability::ExtendedNextHop(vec![ExtendedNextHop { afi: 1, safi: 1, next_hop_afi: 2 }]),
            Capability::GracefulRestart(GracefulRestart {
                restarted: true,
                notification: false,
                time: 120,
                families: vec![(family, true)],
            }),
            Capability::LongLived(vec![LongLived { family, forwarding: false, stale_time: 86400 }]),
            Capability::Fqdn { host: b"r\x1b1".into(), domain: Vec::new() },
            Capability::Other { code: 73, value: vec![1] },
        ]);
        let expected = json!({
            "as": 70000, "router-id": "192.0.2.1", "hold-time": 90,
            "families": ["ipv6 multicast", "afi 25 safi 70"],
            "route-refresh": true, "enhanced-route-refresh": true, "four-octet-as": true,
            "extended-message": true, "role": "route-server",
            "add-path": { "ipv4": "both", "afi 25 safi 70": "send" },
            "extended-next-hop": ["ipv4"],
            "graceful-restart": {
                "restarted": true, "notification": false, "seconds": 120, "families": { "ipv4": true },
            },
            "long-lived": { "ipv4": { "seconds": 86400, "forwarding": false } },
            "host": "r\u{FFFD}1", "unknown": [73],
        });
        assert_eq!(shown(&open), expected);
    }
}
