//! `weft show protocol`: `protocol/1.0/views` and `show`, which every routing protocol answers alike.

use serde_json::{Value, json};
use weft_protocol::interface::{Show, ShowReply, View, Views, ViewsReply};

use super::pages::{PAGE, Page, parse, print, text};
use super::table::{Align, lines};
use super::{Asker, ProtocolArgs};
use crate::output::{Outcome, json_lines, print_lines};

pub(super) fn run(args: &ProtocolArgs) -> Outcome {
    let asker = Asker::new(&args.view_args.node)?;
    match &args.protocol {
        Some(protocol) => table(&asker, protocol, args),
        None => list(&asker, args.view_args.json),
    }
}

/// Prints all pages of a view.
fn table(asker: &Asker, protocol: &str, args: &ProtocolArgs) -> Outcome {
    let view = match &args.view {
        Some(view) => view.clone(),
        None => first(asker, protocol)?,
    };
    let ask = |from| {
        let request = Show { view: view.clone(), from, at_most: Some(PAGE) };
        let ShowReply { columns, rows, next } = asker.ask(protocol, request)?;
        match parse(protocol, &rows)? {
            Value::Array(items) => Ok(Page { columns, items, next }),
            _ => Err(format!("{protocol}: its answer has no rows")),
        }
    };
    let table = |page: &Page| {
        let names = || page.columns.iter().map(String::as_str);
        let titles: Vec<_> = names().map(|name| (name, Align::Left)).collect();
        let cells = |row: &Value| names().map(|name| text(&row[name])).collect();
        let rows: Vec<_> = page.items.iter().map(cells).collect();
        lines(&titles, &rows)
    };
    print(&view, args.view_args.json, table, ask)
}

/// The view that people want to see most.
fn first(asker: &Asker, protocol: &str) -> Result<String, String> {
    let first = asker.ask(protocol, Views)?.views.into_iter().next();
    Ok(first.ok_or_else(|| format!("{protocol}: it has nothing to show"))?.name)
}

/// Prints which protocols there are, and what each has to show.
fn list(asker: &Asker, is_json: bool) -> Outcome {
    let mut all = Vec::new();
    for target in asker.targets()? {
        // Others cannot be shown in this way.
        if let Ok(ViewsReply { views }) = asker.try_ask(&target.instance, Views) {
            all.extend(views.into_iter().map(|view| (target.instance.clone(), view)));
        }
    }
    if is_json {
        let view = |(protocol, View { name, help }): &(String, View)| json!({ "protocol": protocol, "view": name, "help": help });
        let all: Vec<_> = all.iter().map(view).collect();
        print_lines(json_lines(&json!({ "views": all })))?;
        return Ok(0);
    }
    let columns = [("protocol", Align::Left), ("view", Align::Left), ("shows", Align::Left)];
    let rows: Vec<_> =
        all.into_iter().map(|(protocol, View { name, help })| vec![protocol, name, help]).collect();
    print_lines(lines(&columns, &rows))?;
    Ok(0)
}
