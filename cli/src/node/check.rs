//! `weft run --check`: what can be said of a node file without starting anything.
//!
//! Each component that the file configures is made in this process and asked what the manager would ask it, so that what a
//! node would refuse is refused here. Programs of others are not asked: they are not part of this binary.

use std::path::Path;

use weft_base::Instant;
use weft_config::{Errors, Schema, Tree};
use weft_manager::{Class, check_statements};
use weft_runtime::Level;
use weft_xrl::configurable::Check;
use weft_xrl::frame::Secret;
use weft_xrl::{Called, Input, Output};

use super::component::{Node, wall};
use crate::registry;

/// Asks the components whether they would take their statements.
///
/// # Errors
/// Mistakes with their places.
pub(super) fn components(name: &str, configuration: &Tree, schema: &Schema) -> Result<(), Errors> {
    let node = node(name);
    check_statements(configuration, schema, &registry::classes(), |class, check| {
        ask(class, check, &node)
    })
}

/// Asks one of them.
fn ask(class: &Class, check: Check, node: &Node) -> Result<(), String> {
    // The stack's statement was read when the node was made, with the keys that it names.
    if class.statement == Some(weft_xia_component::STATEMENT) {
        return Ok(());
    }
    let (_, mut component) = registry::make(&class.name, node, Secret::default())?;
    let mut out = Vec::new();
    component.handle(Instant::ZERO, Input::Called(Called::directly(check)), &mut out);
    let answer = out.into_iter().find_map(|output| match output {
        Output::Answer { result, .. } => Some(result),
        _ => None,
    });
    match answer {
        Some(Err(error)) => Err(error.note),
        // Whoever does not answer at once has nothing against it now.
        Some(Ok(_)) | None => Ok(()),
    }
}

/// A node that never runs.
fn node(name: &str) -> Node {
    Node {
        name: name.to_owned(),
        directory: Path::new("/").to_owned(),
        operator: 0,
        identity: None,
        key: None,
        seed: [0; 32],
        wall: wall(),
        level: Level::Info,
        clock: None,
    }
}
