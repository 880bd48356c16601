//! `weft show interfaces`: `fea/1.0/interfaces`.

use serde_json::json;
use weft_xrl::{Mac, fea};

use super::table::{Align, lines};
use super::{Asker, Shown};

pub(super) fn show(asker: &Asker) -> Result<Shown, String> {
    let fea::InterfacesReply { interfaces, addresses } = asker.interfaces()?;
    let addresses = |index: u32| -> Vec<String> {
        let of = addresses.iter().filter(|one| one.interface == index);
        of.map(|one| one.address.to_string()).collect()
    };
    // Numbers of interfaces are positive; a master may be in another namespace.
    let master = |index: u32| -> Option<String> {
        let found = interfaces.iter().find(|one| one.index == index);
        (index != 0).then(|| found.map_or_else(|| index.to_string(), |one| one.name.clone()))
    };
    let mac = |mac: Mac| (mac != Mac([0; 6])).then(|| mac.to_string());
    let json: Vec<_> = interfaces
        .iter()
        .map(|one| {
            json!({
                "name": one.name,
                "index": one.index,
                "kind": one.kind,
                "mac": mac(one.mac),
                "mtu": one.mtu,
                "up": one.up,
                "running": one.running,
                "master": master(one.master),
                "addresses": addresses(one.index),
            })
        })
        .collect();
    let row = |one: &fea::Interface| {
        let state = match (one.up, one.running) {
            (false, _) => "down",
            (true, false) => "no carrier",
            (true, true) => "running",
        };
        let dash = || "-".to_owned();
        vec![
            one.name.clone(),
            one.index.to_string(),
            one.kind.clone(),
            state.to_owned(),
            one.mtu.to_string(),
            mac(one.mac).unwrap_or_else(dash),
            master(one.master).unwrap_or_else(dash),
            addresses(one.index).join(" "),
        ]
    };
    let columns = [
        ("interface", Align::Left),
        ("index", Align::Right),
        ("kind", Align::Left),
        ("state", Align::Left),
        ("mtu", Align::Right),
        ("mac", Align::Left),
        ("master", Align::Left),
        ("addresses", Align::Left),
    ];
    let rows: Vec<_> = interfaces.iter().map(row).collect();
    Ok(Shown { json: json!({ "interfaces": json }), lines: lines(&columns, &rows) })
}
