//! The state of Ether for people and programs.

use serde_json::{Value, json};
use weft_wire::MacAddr;
use weft_xip::Xid;

use crate::Ether;
use crate::name::to_xid;

pub(crate) fn show(ether: &Ether) -> Value {
    let stations = ether.neighbours.iter();
    let neighbours: Value = stations
        .flat_map(|(name, macs)| macs.iter().map(|mac| neighbour(ether, name, *mac)))
        .collect();
    json!({
        "interfaces": ether.stated.iter().map(|name| interface(ether, name)).collect::<Value>(),
        "neighbours": neighbours,
        "error": ether.error,
    })
}

/// An interface that was stated; what is not known of it is null.
fn interface(ether: &Ether, name: &str) -> Value {
    json!({
        "name": name,
        "index": ether.interfaces.indexes(name).next(),
        "link": ether.interfaces.link(name).map(|link| link.mac.to_string()),
        "xid": text(ether.own_xids(name).first().copied()),
    })
}

/// A station; it has no XID as long as no packet can be sent to it.
fn neighbour(ether: &Ether, name: &str, mac: MacAddr) -> Value {
    let other = ether.interfaces.link(name).filter(|link| link.mac != mac);
    let xid = other.and_then(|_| to_xid(ether.interfaces.indexes(name).next()?, mac).ok());
    json!({
        "xid": text(xid),
        "link": mac.to_string(),
        "interface": name,
        "origin": "configured",
        "used": xid.is_some(),
    })
}

fn text(xid: Option<Xid>) -> Option<String> {
    xid.map(|xid| xid.to_string())
}
