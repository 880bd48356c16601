//! The routes and the neighbours of all principals in one list each, for operators.
//!
//! Reference: Machado et al., "Linux XIA", §4.2.1 (routing redirects). A principal shows its tables as it likes
//! ([`Principal::show`](crate::principal::Principal::show)); what it calls `routes`, `learned` and `neighbours` is
//! put together here, so that one question finds out where everything leads.

use serde_json::{Map, Value, json};
use weft_base::Instant;

use crate::node::Node;

/// What principals call the time of the last sign of life of a neighbour, on the node's clock.
const HEARD: &str = "heard_ns";

impl Node {
    /// The routes, by principal: those that were stated, then what routing protocols have found.
    pub(super) fn show_routes(&self) -> Value {
        let mut routes = Vec::new();
        for (principal, mut shown) in self.shown() {
            for (table, origin) in [("routes", "stated"), ("learned", "learned")] {
                routes.extend(rows(&mut shown, table).map(|mut route| {
                    route.insert("principal".to_owned(), principal.into());
                    // Where a principal has its routes from somebody else, it says so.
                    route.entry("origin").or_insert_with(|| origin.into());
                    Value::Object(route)
                }));
            }
        }
        json!({ "routes": routes })
    }

    /// The neighbours, by principal, and how long ago each gave a sign of life.
    pub(super) fn show_neighbours(&self, now: Instant) -> Value {
        let mut neighbours = Vec::new();
        for (principal, mut shown) in self.shown() {
            neighbours.extend(rows(&mut shown, "neighbours").map(|mut place| {
                let heard = place.remove(HEARD).and_then(|heard| heard.as_u64());
                let age = heard.map(|heard| now.as_nanos().saturating_sub(heard) / 1_000_000);
                place.insert("principal".to_owned(), principal.into());
                place.insert("age_ms".to_owned(), age.into());
                Value::Object(place)
            }));
        }
        json!({ "neighbours": neighbours })
    }

    /// What the principals show, with their names, in the order of their types.
    fn shown(&self) -> impl Iterator<Item = (&str, Value)> {
        let present = self.names.iter();
        present.filter_map(|(kind, name)| {
            Some((name.as_str(), self.forwarder.principal(*kind)?.show()))
        })
    }
}

/// Takes the rows of a table out of what a principal shows.
fn rows(shown: &mut Value, table: &str) -> impl Iterator<Item = Map<String, Value>> + use<> {
    let rows = match shown.get_mut(table).map(Value::take) {
        Some(Value::Array(rows)) => rows,
        _ => Vec::new(),
    };
    rows.into_iter().filter_map(|row| match row {
        Value::Object(row) => Some(row),
        _ => None,
    })
}
