//! Shows what can be called.

use weft_base::Instant;
use weft_runtime::{Action, Component, Event, Level};
use weft_xif::{Field, Interface};
use weft_xrl::{Call, FINDER, Input, Output, finder};

/// Asks the Finder for interfaces and prints them; see the module's text.
pub(super) struct List {
    target: Option<String>,
}

impl List {
    /// A list of one target's interfaces, or of all.
    pub(super) fn new(target: Option<String>) -> Self {
        Self { target }
    }

    fn show(reply: finder::InterfacesReply, out: &mut Vec<Output>) -> Result<(), String> {
        for finder::Interface { class, text } in reply.interfaces {
            let interface = Interface::parse(&text).map_err(|error| format!("{class}: {error}"))?;
            for line in lines(&class, &interface) {
                out.push(Output::World(Action::Print { line }));
            }
        }
        Ok(())
    }
}

/// An interface for people: each method as the XRL that calls it, and below it what is known of it.
fn lines(class: &str, interface: &Interface) -> Vec<String> {
    let mut lines = Vec::new();
    for line in interface.doc.lines() {
        lines.push(format!("# {line}"));
    }
    for record in &interface.records {
        let fields: Vec<_> = record.fields.iter().map(ToString::to_string).collect();
        lines.push(format!("record {} ({})", record.name, fields.join(";")));
    }
    for method in &interface.methods {
        lines.push(String::new());
        lines.push(format!("finder://{class}/{interface}/{method}"));
        lines.extend(method.doc.lines().map(|line| format!("    {line}")));
        let documented = |field: &&Field| !field.doc.is_empty();
        for field in method.args.iter().chain(&method.returns).filter(documented) {
            lines.push(format!("    {}: {}", field.name, field.doc));
        }
    }
    lines.push(String::new());
    lines
}

impl Component for List {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, _: Instant, input: Input, out: &mut Vec<Output>) {
        let failed = match input {
            Input::World(Event::Start) => {
                let request = finder::Interfaces { target: self.target.clone() };
                out.push(Call::new(0, FINDER, request).into());
                return;
            }
            Input::Replied { result, .. } => result
                .and_then(|reply| reply.read::<finder::Interfaces>())
                .map_err(|error| error.to_string())
                .and_then(|reply| Self::show(reply, out)),
            Input::NotRegistered(why) => Err(why),
            Input::World(Event::Stop) => Err("stopped".to_owned()),
            _ => return,
        };
        let status = u8::from(failed.is_err());
        if let Err(error) = failed {
            let line = error;
            out.push(Output::World(Action::Report { level: Level::Error, line }));
        }
        out.push(Output::World(Action::Exit { status }));
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}
