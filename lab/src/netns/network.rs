//! The namespaces, interfaces and routes of a lab, and their removal.

use std::path::Path;

use super::ip::Batch;
use super::links::{self, Abilities, Kind};
use super::namespace::Namespace;
use super::settings;
use super::state::{Directory, NodeState, ProcessId, ProcessState, State};
use super::teardown;
use crate::LabError;
use crate::file::Scenario;
use crate::plan::Plan;

/// A lab's network. Dropping it takes the lab down, unless it is to stay.
pub(crate) struct Network<'p> {
    plan: &'p Plan<'p>,
    directory: Directory,
    state: State,
    namespaces: Vec<Namespace>,
    link_kinds: Vec<Kind>,
    /// Whether it stays when this value is dropped.
    stays: bool,
}

impl<'p> Network<'p> {
    /// Makes the lab's directory and notes what there is going to be, so that it is found if this
    /// process dies. `scenario` tells which links it will cut.
    pub(crate) fn build(
        plan: &'p Plan<'p>,
        scenario: Option<&Scenario>,
        output: &Path,
    ) -> Result<Self, LabError> {
        let (directory, id) = Directory::make(plan.lab.name())?;
        let prefix = format!("weft-{}-{id}", plan.lab.name());
        let state = initial_state(plan, id, &prefix, output);
        let namespaces = state.nodes.iter().map(|node| Namespace::new(&node.namespace)).collect();
        let mut network =
            Self { plan, directory, state, namespaces, link_kinds: Vec::new(), stays: false };
        network.directory.save(&network.state)?;
        network.make_namespaces()?;
        network.make_links(scenario)?;
        network.set_nodes_up()?;
        Ok(network)
    }

    fn make_namespaces(&self) -> Result<(), LabError> {
        let mut batch = Batch::default();
        for name in self.state.namespaces() {
            batch.add(&["netns", "add", name]);
        }
        batch.run(None)?;
        settings::apply(&self.link_namespace(), false)?;
        for (node, namespace) in self.plan.lab.nodes.iter().zip(&self.namespaces) {
            settings::apply(namespace, node.forwards())?;
        }
        Ok(())
    }

    fn make_links(&mut self, scenario: Option<&Scenario>) -> Result<(), LabError> {
        let lossy = links::lossy(self.plan, scenario);
        let far = self.link_namespace();
        let can = Abilities::probe(self.plan, &lossy, &far);
        let mut batch = Batch::default();
        for (index, link) in self.plan.lab.links.iter().enumerate() {
            let kind = links::kind(&link.properties, lossy.contains(&index), can);
            links::add_interfaces(&mut batch, self.plan, index, kind, self.ends(index), &far);
            self.link_kinds.push(kind);
        }
        batch.run(None)?;
        self.set_far_ends_up()?;
        for (index, link) in self.plan.lab.links.iter().enumerate() {
            if self.link_kinds[index] == Kind::Kernel {
                links::limit_rate(self.plan, index, self.ends(index))?;
                if link.properties.model.loss > 0 {
                    let loss = link.properties.model.loss;
                    links::set_loss(self.plan, index, loss, self.ends(index))?;
                }
            }
        }
        Ok(())
    }

    fn set_far_ends_up(&self) -> Result<(), LabError> {
        let mut batch = Batch::default();
        for index in self.user_space_links() {
            for side in [0, 1] {
                batch.add(&["link", "set", "dev", &links::far_end(index, side), "up"]);
            }
        }
        batch.run(Some(&self.link_namespace()))
    }

    /// Gives interfaces their addresses and nodes their routes.
    fn set_nodes_up(&self) -> Result<(), LabError> {
        for (node, namespace) in self.namespaces.iter().enumerate() {
            let ends = || self.plan.lab.links.iter().flat_map(|link| &link.ends);
            let own: Vec<_> = ends().filter(|end| end.node == node).collect();
            let names: Vec<&str> = own.iter().map(|end| end.interface.as_str()).collect();
            settings::switch_off_offloads(namespace, &names)?;
            let with_ipv6 = own.iter().filter(|end| end.address6.is_some());
            let with_ipv6: Vec<_> = with_ipv6.map(|end| end.interface.as_str()).collect();
            settings::switch_ipv6_on(namespace, &with_ipv6, self.plan.lab.nodes[node].forwards())?;
            let mut batch = Batch::default();
            batch.add(&["link", "set", "dev", "lo", "up"]);
            for end in own {
                if let Some(address) = &end.address {
                    let address = address.value.to_string();
                    batch.add(&["address", "add", &address, "dev", &end.interface]);
                }
                if let Some(address) = &end.address6 {
                    let address = address.value.to_string();
                    batch.add(&["address", "add", &address, "dev", &end.interface, "nodad"]);
                }
                // Without `dev` a name such as `up` would be taken for a word of the command.
                batch.add(&["link", "set", "dev", &end.interface, "up"]);
            }
            for route in self.plan.lab.routes.iter().filter(|route| route.node == node) {
                let (prefix, gateway) = (route.prefix.to_string(), route.gateway.to_string());
                batch.add(&["route", "add", &prefix, "via", &gateway]);
            }
            batch.run(Some(namespace))?;
        }
        Ok(())
    }

    /// Where the lab keeps its files.
    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// What others see of it.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// The namespace of a node.
    pub(crate) fn namespace(&self, node: usize) -> &Namespace {
        &self.namespaces[node]
    }

    /// The namespace of the far ends of user-space links.
    pub(crate) fn link_namespace(&self) -> Namespace {
        Namespace::new(self.state.link_namespace.clone().unwrap_or_default())
    }

    /// How a link was made.
    pub(crate) fn link_kind(&self, link: usize) -> Kind {
        self.link_kinds[link]
    }

    /// The links that a process has to join.
    pub(crate) fn user_space_links(&self) -> impl Iterator<Item = usize> {
        let kinds = self.link_kinds.iter().enumerate();
        kinds.filter(|(_, kind)| **kind == Kind::UserSpace).map(|(index, _)| index)
    }

    /// The namespaces of the two ends of a link.
    pub(crate) fn ends(&self, link: usize) -> [&Namespace; 2] {
        let [a, b] = &self.plan.lab.links[link].ends;
        [self.namespace(a.node), self.namespace(b.node)]
    }

    /// Deletes an interface of a node. A kernel link loses its other end, too.
    pub(crate) fn delete_interface(&self, link: usize, side: usize) -> Result<(), LabError> {
        let end = &self.plan.lab.links[link].ends[side];
        let mut batch = Batch::default();
        batch.add(&["link", "delete", "dev", &end.interface]);
        batch.run(Some(self.namespace(end.node)))
    }

    /// Notes a process that was started, for whoever takes the lab down.
    pub(crate) fn note_process(
        &mut self,
        name: &str,
        node: &str,
        pid: u32,
    ) -> Result<(), LabError> {
        let Some(id) = ProcessId::of(pid) else { return Ok(()) };
        self.state.processes.retain(|process| process.name != name);
        self.state.processes.push(ProcessState { name: name.into(), node: node.into(), id });
        self.directory.save(&self.state)
    }

    /// Lets the lab stay when this process ends, until somebody takes it down.
    pub(crate) fn stay(&mut self) -> Result<(), LabError> {
        self.state.owner = None;
        self.directory.save(&self.state)?;
        self.stays = true;
        Ok(())
    }

    /// Takes the lab down and reports what went wrong.
    pub(crate) fn take_down(mut self) -> Result<(), LabError> {
        self.stays = true;
        teardown::take_down(&self.state)
    }
}

impl Drop for Network<'_> {
    fn drop(&mut self) {
        if !self.stays
            && let Err(error) = teardown::take_down(&self.state)
        {
            eprintln!("error: the lab {} was not removed: {error}", self.state.full_name());
        }
    }
}

fn initial_state(plan: &Plan<'_>, id: String, prefix: &str, output: &Path) -> State {
    let nodes = plan.lab.nodes.iter().enumerate().map(|(index, node)| {
        let ends = plan.lab.links.iter().flat_map(|link| &link.ends);
        let name = node.name.value.as_str();
        NodeState {
            name: name.to_owned(),
            kind: node.kind.word().to_owned(),
            namespace: format!("{prefix}-{name}"),
            interfaces: ends
                .filter(|end| end.node == index)
                .map(|end| end.interface.clone())
                .collect(),
        }
    });
    State {
        lab: plan.lab.name().to_owned(),
        id,
        owner: ProcessId::of(std::process::id()),
        output: output.to_owned(),
        nodes: nodes.collect(),
        // No node can be called so: names begin with a letter.
        link_namespace: Some(format!("{prefix}-.links")),
        processes: Vec::new(),
    }
}
