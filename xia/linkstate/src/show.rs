//! The state of link-state routing for people and programs.

use serde_json::{Map, Value, json};
use weft_linkstate::NextHop;
use weft_linkstate::wire::LsaRepr;
use weft_xip::Xid;
use weft_xip::kept_port::PortState;

use crate::LinkState;
use crate::hosts::{host, xid};

pub(crate) fn show(protocol: &LinkState) -> Value {
    let node = protocol.engine.as_ref().map(|engine| host(engine.node()).to_string());
    let calm = protocol.engine.as_ref().map(|engine| engine.calm(protocol.now));
    let counted = protocol.engine.iter().flat_map(|engine| engine.counted().iter());
    let counters: Map<_, _> = counted
        .chain(protocol.counters.iter())
        .map(|(name, count)| (name.to_owned(), count.into()))
        .collect();
    json!({
        "node": node,
        "state": calm,
        "interfaces": interfaces(protocol),
        "neighbours": neighbours(protocol),
        "database": database(protocol),
        "routes": routes(protocol),
        "counters": counters,
    })
}

fn interfaces(protocol: &LinkState) -> Value {
    let state = |state| match state {
        PortState::Closed => "off",
        PortState::Opening(_) => "opening",
        PortState::Open(_) => "on",
        PortState::Failed(_) => "failed",
    };
    let all = protocol.interfaces.iter();
    let line = |(name, interface): (&String, &crate::neighbours::Interface)| {
        json!({
            "name": name,
            "state": state(interface.port.state()),
            "metric": protocol.metric(name),
            "neighbours": protocol.links.on(name).count(),
        })
    };
    all.map(line).collect()
}

fn neighbours(protocol: &LinkState) -> Value {
    let all = protocol.engine.iter().flat_map(|engine| engine.neighbours());
    let line = |one: weft_linkstate::Neighbour| {
        let place = protocol.links.place(one.link);
        json!({
            "xid": protocol.host_of(one.link).map(|xid| xid.to_string()),
            "interface": place.map(|place| place.interface.clone()),
            "link": place.map(|place| place.mac.to_string()),
            "state": one.state.name(),
            "metric": one.metric,
            "seconds": protocol.now.since(one.since).as_secs(),
            "outstanding": one.outstanding,
        })
    };
    all.map(line).collect()
}

fn database(protocol: &LinkState) -> Value {
    let all = protocol.engine.iter().flat_map(|engine| engine.database(protocol.now));
    let line = |entry: weft_linkstate::Advertised| {
        let content = entry.content.unwrap_or_else(|| LsaRepr {
            id: entry.id,
            sequence: entry.sequence,
            lifetime: 0,
            links: Vec::new(),
            destinations: Vec::new(),
        });
        let links = content.links.iter();
        let links: Value = links
            .map(|(node, metric)| json!({ "xid": host(*node).to_string(), "metric": metric }))
            .collect();
        let names = content.destinations.iter();
        let names: Value =
            names.filter_map(|(name, _)| xid(name)).map(|xid: Xid| xid.to_string()).collect();
        json!({
            "node": host(entry.id.origin).to_string(),
            "fragment": entry.id.fragment,
            "sequence": entry.sequence,
            "seconds-left": entry.left.as_secs(),
            "withdrawn": content.lifetime == 0,
            "links": links,
            "destinations": names,
        })
    };
    all.map(line).collect()
}

fn routes(protocol: &LinkState) -> Value {
    let all = protocol.engine.iter().flat_map(|engine| engine.routes());
    let hop = |hop: &NextHop| {
        let interface = protocol.links.place(hop.link).map(|place| place.interface.clone());
        json!({ "xid": host(hop.node).to_string(), "interface": interface })
    };
    let line = |(name, route): (_, &weft_linkstate::Route)| {
        Some(json!({
            "xid": xid(name)?.to_string(),
            "distance": route.distance,
            "via": route.next_hops.iter().map(hop).collect::<Value>(),
        }))
    };
    all.filter_map(line).collect()
}
