//! Attributes of a route as JSON, for operators and programs.
//!
//! Reference: RFC 4271 §5 and the RFCs of the others, see [`Attributes`]. Those that few routes have stand there only if the route
//! has them.

use std::fmt::Display;

use serde_json::{Value, json};
use weft_policy::CommunityKind;

use crate::wire::{Attributes, LargeCommunity};

/// All but the next hop, of which more can be said than the address.
pub(super) fn shown(of: &Attributes) -> Value {
    let rare = of.rare();
    let mut shown = json!({
        "as-path": of.as_path.to_string(), "origin": format!("{:?}", of.origin),
        "med": of.med, "local-pref": of.local_pref,
        "communities": texts(&of.communities, |one| CommunityKind::Standard.shown((*one).into())),
        "extended-communities":
            texts(&of.extended_communities, |one| CommunityKind::Extended.shown((*one).into())),
        "large-communities":
            texts(&of.large_communities, |one| CommunityKind::Large.shown(number(one))),
    });
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            shown[name] = value;
        }
    };
    add("atomic-aggregate", of.atomic_aggregate.then_some(Value::Bool(true)));
    add(
        "aggregator",
        rare.aggregator.map(
            |one| json!({ "as": one.autonomous_system, "router-id": one.identifier.to_string() }),
        ),
    );
    add("originator-id", rare.originator_id.map(|one| one.to_string().into()));
    let clusters = texts(&rare.cluster_list, |one| *one);
    add("cluster-list", (!rare.cluster_list.is_empty()).then(|| clusters.into()));
    add("aigp", rare.aigp.map(Value::from));
    add("only-to-customer", rare.only_to_customer.map(Value::from));
    // What it means is not known here, only that it is passed on.
    let unknown: Vec<_> = rare.unknown.iter().map(|one| Value::from(one.code)).collect();
    add("unknown-attributes", (!unknown.is_empty()).then(|| unknown.into()));
    shown
}

fn texts<T, D: Display>(all: &[T], text: impl Fn(&T) -> D) -> Vec<String> {
    all.iter().map(|one| text(one).to_string()).collect()
}

/// A community that an operator asks for, of whichever kind.
pub(super) struct NamedCommunity {
    /// Where in [`shown`] it would stand, and how, for each kind that it may be of.
    places: Vec<(&'static str, String)>,
}

impl NamedCommunity {
    /// That which a word names.
    ///
    /// # Errors
    /// A sentence that says how communities are written.
    pub(super) fn parse(word: &str) -> Result<Self, String> {
        let kinds = [
            ("communities", CommunityKind::Standard),
            ("extended-communities", CommunityKind::Extended),
            ("large-communities", CommunityKind::Large),
        ];
        let place = |(name, kind): (&'static str, CommunityKind)| {
            kind.parse(word).ok().map(|one| (name, kind.shown(one).to_string()))
        };
        let places: Vec<_> = kinds.into_iter().filter_map(place).collect();
        if places.is_empty() {
            return Err(format!(
                "`{}` is no community: write it as 65000:7, no-export, rt:65000:100 or 65000:1:2",
                word.escape_debug()
            ));
        }
        Ok(Self { places })
    }

    /// Whether what is [`shown`] of a path has it.
    pub(super) fn is_of(&self, shown: &Value) -> bool {
        let stands = |(name, text): &(&str, String)| {
            shown[*name].as_array().is_some_and(|all| all.iter().any(|one| one == text))
        };
        self.places.iter().any(stands)
    }
}

/// The 96 bits of a large community as one number.
fn number(one: &LargeCommunity) -> u128 {
    let words = [one.administrator, one.first, one.second];
    words.into_iter().fold(0, |all, word| all << 32 | u128::from(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Aggregator, AsPath, UnknownAttribute};

    #[test]
    fn usual_attributes_always_stand_there_and_others_if_a_route_has_them() {
        let mut attributes = Attributes {
            as_path: AsPath::from_sequence(&[65001, 4_200_000_000]),
            communities: [0xFFFF_FF01, 65000 << 16 | 7].into(),
            extended_communities: [0x0002_FDE8_0000_0064].into(),
            large_communities: [LargeCommunity { administrator: 65000, first: 1, second: 2 }]
                .into(),
            ..Attributes::default()
        };
        let usual = json!({
            "as-path": "65001 4200000000", "origin": "Incomplete", "med": null, "local-pref": null,
            "communities": ["no-export", "65000:7"], "extended-communities": ["rt:65000:100"],
            "large-communities": ["65000:1:2"],
        });
        assert_eq!(shown(&attributes), usual);
        attributes.atomic_aggregate = true;
        attributes.change_rare(|rare| {
            let identifier = [192, 0, 2, 9].into();
            rare.aggregator = Some(Aggregator { autonomous_system: 65009, identifier });
            rare.originator_id = Some(identifier);
            rare.cluster_list = [identifier].into();
            (rare.aigp, rare.only_to_customer) = (Some(20), Some(65001));
            rare.unknown = [UnknownAttribute { code: 99, value: [1].into() }].into();
        });
        let mut all = usual;
        for (name, value) in [
            ("atomic-aggregate", json!(true)),
            ("aggregator", json!({ "as": 65009, "router-id": "192.0.2.9" })),
            ("originator-id", json!("192.0.2.9")),
            ("cluster-list", json!(["192.0.2.9"])),
            ("aigp", json!(20)),
            ("only-to-customer", json!(65001)),
            ("unknown-attributes", json!([99])),
        ] {
            all[name] = value;
        }
        assert_eq!(shown(&attributes), all);
    }
}
