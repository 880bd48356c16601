//! `weft show programs`: `fea/1.0/list_programs`.

use serde_json::json;
use weft_xrl::fea;

use super::table::{Align, lines};
use super::{Asker, Shown};

pub(super) fn show(asker: &Asker, interface: Option<&str>) -> Result<Shown, String> {
    let request = fea::ListPrograms { interface: interface.map(str::to_owned) };
    let fea::ListProgramsReply { programs, counters } = asker.ask("fea", request)?;
    let counted = |id: u32| {
        let its = counters.iter().filter(move |one| one.id == id);
        its.map(|one| (one.name.clone(), one.value))
    };
    // The FEA may not know every name; whoever runs this command perhaps may.
    let name = |one: &fea::Program| match one.name.is_empty() {
        true => weft_ebpf::name(one.id),
        false => Some(one.name.clone()),
    };
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    let json: Vec<_> = programs
        .iter()
        .map(|one| {
            let counters: serde_json::Map<_, _> =
                counted(one.id).map(|(name, value)| (name, value.into())).collect();
            json!({
                "interface": one.interface,
                "hook": one.hook,
                "id": one.id,
                "name": name(one),
                "owner": one.owner,
                "program": some(&one.program),
                "parameters": some(&one.parameters),
                "counters": counters,
            })
        })
        .collect();
    let row = |one: &fea::Program| {
        let dash = || "-".to_owned();
        let counters: Vec<_> =
            counted(one.id).map(|(name, value)| format!("{name} {value}")).collect();
        let program = format!("{} {}", one.program, one.parameters);
        vec![
            one.interface.clone(),
            one.hook.clone(),
            one.id.to_string(),
            name(one).unwrap_or_else(dash),
            one.owner.clone(),
            some(&program.trim().to_owned()).unwrap_or_else(dash),
            some(&counters.join(" ")).unwrap_or_else(dash),
        ]
    };
    let columns = [
        ("interface", Align::Left),
        ("hook", Align::Left),
        ("id", Align::Right),
        ("name", Align::Left),
        ("owner", Align::Left),
        ("program", Align::Left),
        ("counters", Align::Left),
    ];
    let rows: Vec<_> = programs.iter().map(row).collect();
    Ok(Shown { json: json!({ "programs": json }), lines: lines(&columns, &rows) })
}
