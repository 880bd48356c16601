//! `weft show interfaces`: `fea/1.0/interfaces`, and `tuning` for how packets are taken from them.

use std::time::Duration;

use serde_json::{Value, json};
use weft_xrl::{Mac, fea};

use super::table::{Align, lines};
use super::{Asker, Shown};

pub(super) fn show(asker: &Asker) -> Result<Shown, String> {
    let fea::InterfacesReply { interfaces, addresses } = asker.interfaces()?;
    let tuning = asker.ask("fea", fea::Tuning)?;
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
                "tuning": tuning_json(&tuning, &one.name),
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
    let mut lines = lines(&columns, &rows);
    lines.extend(tuning.interfaces.iter().flat_map(|one| tuning_lines(&tuning, one)));
    Ok(Shown { json: json!({ "interfaces": json }), lines })
}

/// How packets are taken from an interface, if the configuration says so.
fn tuning_json(tuning: &fea::TuningReply, interface: &str) -> Option<Value> {
    let own = tuning.interfaces.iter().find(|one| one.interface == interface)?;
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let napis = tuning.napis.iter().filter(|one| one.interface == interface).map(|one| {
        json!({
            "id": one.id,
            "thread": (one.thread != 0).then_some(one.thread),
            "priority": text(&one.priority),
            "processors": text(&one.processors),
            "defer-interrupts": one.defer_interrupts,
            "flush-timeout-ns": one.flush_timeout,
        })
    });
    let refused = tuning.refusals.iter().filter(|one| one.interface == interface);
    Some(json!({
        "gro": own.gro,
        "napis": napis.collect::<Vec<_>>(),
        "refused": refused.map(|one| one.error.clone()).collect::<Vec<_>>(),
    }))
}

fn tuning_lines(tuning: &fea::TuningReply, own: &fea::Tuned) -> Vec<String> {
    let interface = &own.interface;
    let mut lines = vec![format!("{interface}: gro {}", if own.gro { "on" } else { "off" })];
    lines.extend(tuning.napis.iter().filter(|one| one.interface == *interface).map(|one| {
        let thread = match one.thread {
            0 => "no thread".to_owned(),
            thread => {
                format!("thread {thread} with {} on processors {}", one.priority, one.processors)
            }
        };
        let time = Duration::from_nanos(one.flush_timeout);
        format!(
            "{interface}: NAPI {}: {thread}, defer-interrupts {}, flush-timeout {time:?}",
            one.id, one.defer_interrupts
        )
    }));
    let refused = tuning.refusals.iter().filter(|one| one.interface == *interface);
    lines.extend(refused.map(|one| format!("{interface}: {}", one.error)));
    lines
}
