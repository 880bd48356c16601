//! The state of HID for people and programs.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weft_base::Instant;
use weft_xip::Xid;
use weft_xip::kept_port::PortState;
use weft_xip::table::{show_routes, show_stated};

use crate::Hid;
use crate::interfaces::Interface;
use crate::neighbours::Place;

pub(crate) fn show(hid: &Hid) -> Value {
    let locals: Value = hid.locals.iter().map(ToString::to_string).collect();
    let counters: serde_json::Map<_, _> =
        hid.counters.iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
    let unreachable = hid.routes.iter().filter(|(_, via)| via.is_empty()).map(|(xid, _)| *xid);
    json!({
        "locals": locals,
        "neighbours": neighbours(hid),
        "routes": show_stated(&hid.default, rows(&hid.routes), unreachable),
        "learned": show_routes(rows(&hid.learned)),
        "neighbour-limit": hid.limit,
        "interfaces": interfaces(hid),
        "counters": counters,
    })
}

/// A row for each gateway.
fn rows(routes: &BTreeMap<Xid, Vec<Xid>>) -> impl Iterator<Item = (Xid, Xid)> {
    routes.iter().flat_map(|(xid, all)| all.iter().map(|via| (*xid, *via)))
}

fn neighbours(hid: &Hid) -> Value {
    let mut places: Vec<Place> = hid.neighbours.iter().collect();
    places.sort_by_key(|place| (place.hid, place.interface, place.mac));
    let is_used = |place: &Place| {
        let up = |name: &str| hid.interfaces.contains_key(name);
        hid.neighbours.best(place.hid, up) == Some((place.interface, place.mac))
    };
    let line = |place: Place| {
        let heard = hid.neighbours.last_sign(&place, hid.needs_proof(place.interface));
        json!({
            "xid": place.hid.to_string(),
            "link": place.mac.to_string(),
            "interface": place.interface,
            "origin": if place.origin.configured { "configured" } else { "learned" },
            "proven": place.origin.is_proven(),
            "used": is_used(&place),
            "state": state(&place, heard),
            "heard_ns": heard.map(Instant::as_nanos),
        })
    };
    places.into_iter().map(line).collect()
}

/// How a place is, in a word.
fn state(place: &Place, heard: Option<Instant>) -> &'static str {
    match (place.origin.learned, heard) {
        (None, _) => "configured",
        (Some(life), _) if life.due_questions > 0 => "silent",
        (Some(_), Some(_)) => "reachable",
        (Some(_), None) => "reported",
    }
}

fn interfaces(hid: &Hid) -> Value {
    let state = |nwp| match nwp {
        PortState::Closed => "off",
        PortState::Opening(_) => "opening",
        PortState::Open(_) => "on",
        PortState::Failed(_) => "failed",
    };
    let line = |(name, interface): (&String, &Interface)| {
        json!({
            "name": name,
            "link": interface.mac.to_string(),
            "nwp": state(interface.nwp.state()),
            "proof": hid.policy(name).name(),
            "neighbours": hid.neighbours.count(name),
        })
    };
    hid.interfaces.iter().map(line).collect()
}
