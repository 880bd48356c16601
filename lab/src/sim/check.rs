//! What the simulator cannot do, told before anything is built.

use weft_config::{Errors, gather};

use crate::file::{Action, CommandLine, NodeKind, Scenario};
use crate::plan::{PROGRAM, Plan};

/// Checks that nodes and commands are the host program's own.
pub(super) fn check(plan: &Plan<'_>, scenario: &Scenario) -> Result<(), Errors> {
    let nodes = plan.lab.nodes.iter().enumerate().map(|(place, node)| match &node.kind {
        NodeKind::Weft(_) => check_node(plan, place),
        NodeKind::Linux => Ok(()),
        NodeKind::Command { .. } => Err(node
            .name
            .error(format!(
                "node `{}` runs a program of its own, which the simulator cannot run: use the \
                 engine netns, or make it a `weft` or `linux` node",
                node.name.value
            ))
            .into()),
        NodeKind::Router(router) => Err(node
            .name
            .error(format!(
                "node `{}` is a router of kind `{}`, which the simulator cannot run: use the engine \
                 netns, or make it a `weft` node",
                node.name.value,
                router.kind.word()
            ))
            .into()),
    });
    let addresses = plan.lab.links.iter().flat_map(|link| &link.ends).filter_map(|end| {
        let address = end.address6.as_ref()?;
        let sentence = "simulated links have no addresses of IPv6: use the engine netns";
        Some(Err(address.error(sentence).into()))
    });
    let steps = scenario.steps.iter().map(|step| match &step.action {
        Action::Run { command, .. }
        | Action::Exec { command, .. }
        | Action::Until { command, .. } => check_command(plan, command),
        _ => Ok(()),
    });
    gather(nodes.chain(addresses).chain(steps)).map(drop)
}

fn check_node(plan: &Plan<'_>, node: usize) -> Result<(), Errors> {
    let name = &plan.lab.nodes[node].name;
    let config = plan.config(node).unwrap_or_default();
    plan.host.check_simulated(plan.node_name(node), config).map_err(|reason| {
        let sentence =
            format!("node `{}` cannot be simulated: {reason}; use the engine netns", name.value);
        name.error(sentence).into()
    })
}

fn check_command(plan: &Plan<'_>, command: &CommandLine) -> Result<(), Errors> {
    let words = plan.words(command);
    let program = words.first().map_or("", String::as_str);
    if program == PROGRAM {
        return Ok(());
    }
    let sentence = format!(
        "the simulator runs only `{PROGRAM}` commands, not `{program}`: use the engine netns"
    );
    Err(command.text.error(sentence).into())
}
