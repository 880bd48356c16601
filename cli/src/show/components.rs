//! `weft show components`: `finder/1.0/targets`, `finder/1.0/interfaces`, and of each component that is
//! configured `component/1.0/status`.

use serde_json::{Value, json};
use weft_xif::Interface;
use weft_xrl::{FINDER, configurable, finder};

use super::table::{Align, lines};
use super::{Asker, Shown};

/// A component and what can be called of it.
struct Component {
    instance: String,
    class: String,
    address: String,
    interfaces: Vec<Interface>,
    /// Whether it works, and more for people; unknown of those that are not configured.
    status: Option<(bool, String)>,
}

pub(super) fn show(asker: &Asker) -> Result<Shown, String> {
    let mut components = vec![finder(asker)?];
    for target in asker.targets()? {
        // One that has gone meanwhile is not shown.
        if let Ok(interfaces) = interfaces(asker, &target.instance) {
            let status = asker.try_ask(&target.instance, configurable::Status).ok();
            let finder::Target { class, instance, address } = target;
            let status = status.map(|status| (status.ready, status.detail));
            components.push(Component { instance, class, address, interfaces, status });
        }
    }
    components.sort_by(|a, b| a.instance.cmp(&b.instance));
    let columns = [
        ("component", Align::Left),
        ("class", Align::Left),
        ("ready", Align::Left),
        ("interfaces", Align::Left),
        ("address", Align::Left),
    ];
    let rows: Vec<_> = components.iter().map(row).collect();
    let json: Vec<_> = components.iter().map(object).collect();
    Ok(Shown { json: json!({ "components": json }), lines: lines(&columns, &rows) })
}

/// The Finder, who is registered nowhere.
fn finder(asker: &Asker) -> Result<Component, String> {
    Ok(Component {
        instance: FINDER.to_owned(),
        class: FINDER.to_owned(),
        address: String::new(),
        interfaces: interfaces(asker, FINDER)?,
        status: None,
    })
}

fn interfaces(asker: &Asker, target: &str) -> Result<Vec<Interface>, String> {
    let request = finder::Interfaces { target: Some(target.to_owned()) };
    let texts = asker.ask(FINDER, request)?.interfaces.into_iter().map(|one| one.text);
    let parse = |text: String| {
        Interface::parse(&text).map_err(|error| format!("an interface of {target}: {error}"))
    };
    texts.map(parse).collect()
}

fn row(one: &Component) -> Vec<String> {
    let ready = match &one.status {
        None => "-",
        Some((true, _)) => "yes",
        Some((false, _)) => "no",
    };
    let names: Vec<_> = one.interfaces.iter().map(ToString::to_string).collect();
    let address = if one.address.is_empty() { "-" } else { &one.address };
    vec![
        one.instance.clone(),
        one.class.clone(),
        ready.to_owned(),
        names.join(" "),
        address.to_owned(),
    ]
}

fn object(one: &Component) -> Value {
    let interface = |interface: &Interface| {
        let methods: Vec<_> = interface.methods.iter().map(|method| &method.name).collect();
        json!({
            "name": interface.name, "version": interface.version.to_string(), "methods": methods,
        })
    };
    json!({
        "instance": one.instance,
        "class": one.class,
        "address": (!one.address.is_empty()).then_some(&one.address),
        "ready": one.status.as_ref().map(|(ready, _)| ready),
        "detail": one.status.as_ref().map(|(_, detail)| detail),
        "interfaces": one.interfaces.iter().map(interface).collect::<Vec<_>>(),
    })
}
