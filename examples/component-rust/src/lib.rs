//! An example: a component of a node, with a statement in the configuration and an interface of its own.
//!
//! `README.md` beside this file says what else it takes to make it part of a node.

use std::collections::BTreeSet;

use weft_base::Instant;
use weft_config::{Document, Errors};
use weft_runtime::{Action, Component, Event};
use weft_xrl::{Called, Encoded, Input, Interface, Output, XrlError, configurable};

#[allow(missing_docs, unreachable_pub, dead_code, reason = "made from the interface file")]
mod interface {
    include!(concat!(env!("OUT_DIR"), "/greeter.rs"));
}

/// Its statement in the configuration.
pub const STATEMENT: &str = "greeter";

/// What may be configured.
pub const SCHEMA: &str = r#"
container greeter {
    help "an example: greets who calls it";
    leaf greeting text { default hello; help "what is said in front of the name"; }
}
"#;

/// What can be called.
#[must_use]
pub fn interfaces() -> Vec<&'static Interface> {
    vec![&interface::INTERFACE, &configurable::INTERFACE]
}

/// The component.
#[derive(Default)]
pub struct Greeter {
    /// From the configuration, once there is one.
    greeting: Option<String>,
    present: BTreeSet<String>,
}

impl Greeter {
    fn greet(&self, name: &str) -> Result<Encoded, XrlError> {
        let greeting = self.greeting.as_deref();
        let greeting = greeting.ok_or_else(|| XrlError::failed("there is no configuration yet"))?;
        let present = self.present.iter().cloned().collect();
        Ok(Encoded::new(interface::GreetReply { text: format!("{greeting} {name}"), present }))
    }

    fn manage(&mut self, call: configurable::Call) -> Result<Encoded, XrlError> {
        // Mistakes are told at places of the text under its name, as the manager expects them.
        let read = |source: &str, text: &str| {
            read(source, text).map_err(|errors| XrlError::failed(errors.to_string()))
        };
        match call {
            configurable::Call::Check(request) => drop(read(&request.source, &request.text)?),
            configurable::Call::Configure(request) => {
                self.greeting = Some(read(&request.source, &request.text)?);
            }
            configurable::Call::Schema(_) => {
                return Ok(Encoded::new(configurable::SchemaReply { text: SCHEMA.to_owned() }));
            }
            configurable::Call::Status(_) => {
                let (ready, detail) = (self.greeting.is_some(), String::new());
                return Ok(Encoded::new(configurable::StatusReply { ready, detail }));
            }
        }
        Ok(Encoded::default())
    }

    fn called(&mut self, mut called: Called) -> Output {
        let result = match called.interface.name {
            "greeter" => called.read().and_then(|call| match call {
                interface::Call::Greet(interface::Greet { name }) => self.greet(&name),
            }),
            _ => called.read().and_then(|call| self.manage(call)),
        };
        Output::Answer { id: called.id, result }
    }
}

/// Reads `greeter { greeting "good day,"; }`.
fn read(source: &str, text: &str) -> Result<String, Errors> {
    let document = Document::parse(source, text)?;
    let mut block = document.block();
    let greeting = block.required_one(STATEMENT)?.optional_block()?.read(|block| {
        Ok(block.leaf::<String>("greeting")?.unwrap_or_else(|| "hello".to_owned()))
    })?;
    block.finish()?;
    Ok(greeting)
}

impl Component for Greeter {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, _: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Registered => out.push(Output::Watch { class: None }),
            Input::Born { instance, .. } => drop(self.present.insert(instance)),
            Input::Died { instance, .. } => drop(self.present.remove(&instance)),
            Input::Called(called) => out.push(self.called(called)),
            Input::World(Event::Stop) => out.push(Output::World(Action::Exit { status: 0 })),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}
