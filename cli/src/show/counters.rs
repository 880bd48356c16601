//! `weft show counters`: `monitor/1.0/counters` of each component.

use serde_json::{Value, json};
use weft_xrl::{ErrorCode, FINDER, monitor};

use super::table::{Align, lines};
use super::{Asker, Shown};

/// What one component has counted.
pub(crate) struct Counted {
    pub(crate) component: String,
    pub(crate) reply: monitor::CountersReply,
}

/// Asks one component, or all.
pub(super) fn ask(asker: &Asker, component: Option<&str>) -> Result<Vec<Counted>, String> {
    if let Some(component) = component {
        let reply = asker.ask(component, monitor::Counters)?;
        return Ok(vec![Counted { component: component.to_owned(), reply }]);
    }
    let mut names: Vec<_> = asker.targets()?.into_iter().map(|target| target.instance).collect();
    names.push(FINDER.to_owned());
    names.sort();
    let mut all = Vec::new();
    for component in names {
        match asker.try_ask(&component, monitor::Counters) {
            Ok(reply) => all.push(Counted { component, reply }),
            // A program of others need not count, and one that died just now cannot tell.
            Err(error)
                if matches!(error.code, ErrorCode::NoSuchMethod | ErrorCode::ResolveFailed) => {}
            // One that hangs does not keep the others from being seen.
            Err(error) if matches!(error.code, ErrorCode::NoFinder | ErrorCode::ReplyTimedOut) => {
                eprintln!("{component}: {error}");
            }
            Err(error) => return Err(format!("{component}: {error}")),
        }
    }
    Ok(all)
}

pub(super) fn show(asker: &Asker, component: Option<&str>, all: bool) -> Result<Shown, String> {
    let counted = asker.counters(component)?;
    let columns = [
        ("component", Align::Left),
        ("counter", Align::Left),
        ("of", Align::Left),
        ("reason", Align::Left),
        ("count", Align::Right),
    ];
    let rows: Vec<_> = counted
        .iter()
        .flat_map(|one| one.reply.counts.iter().map(move |count| (&one.component, count)))
        .filter(|(_, count)| all || count.value != 0)
        .map(|(component, count)| {
            let or_dash = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
            vec![
                component.clone(),
                count.group.clone(),
                or_dash(&count.of),
                or_dash(&count.reason),
                count.value.to_string(),
            ]
        })
        .collect();
    let json: Vec<_> = counted.iter().map(object).collect();
    Ok(Shown { json: json!({ "components": json }), lines: lines(&columns, &rows) })
}

fn object(one: &Counted) -> Value {
    let counts = |group: &str| -> Vec<Value> {
        let of_group = one.reply.counts.iter().filter(|count| count.group == group);
        let count = |count: &monitor::Count| {
            json!({
                "of": some(&count.of), "reason": some(&count.reason), "help": some(&count.help),
                "count": count.value,
            })
        };
        of_group.map(count).collect()
    };
    let group = |group: &monitor::Group| {
        json!({
            "name": group.name, "help": group.help, "label": some(&group.label),
            "counts": counts(&group.name),
        })
    };
    json!({
        "component": one.component,
        "counters": one.reply.groups.iter().map(group).collect::<Vec<_>>(),
    })
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
