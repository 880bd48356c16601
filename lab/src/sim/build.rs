//! From a lab to a world.

use std::path::{Path, PathBuf};

use weft_runtime::sim::{
    InterfaceConfig, InterfaceId, LinkId, NodeId, World, WorldConfig, WorldError,
};

use crate::LabError;
use crate::file::{Content, NodeKind};
use crate::output::random_bytes;
use crate::plan::Plan;

/// The working directory of the commands in the world's file system.
pub(super) const DIRECTORY: &str = "/lab";

/// A lab in a world.
pub(super) struct Built {
    pub(super) world: World,
    pub(super) nodes: Vec<NodeId>,
    pub(super) links: Vec<(LinkId, [InterfaceId; 2])>,
}

/// The run directory of a node in the world's file system.
pub(super) fn run_dir(node: &str) -> PathBuf {
    Path::new("/run").join(node)
}

/// Builds the lab, without processes.
pub(super) fn build(plan: &Plan<'_>) -> Result<Built, LabError> {
    let world = World::new(WorldConfig { seed: plan.lab.seed, ..WorldConfig::default() });
    let mut built = Built { world, nodes: Vec::new(), links: Vec::new() };
    add_files(plan, &mut built.world)?;
    connect(plan, &mut built).map_err(LabError::system("build the simulated network"))?;
    Ok(built)
}

fn connect(plan: &Plan<'_>, built: &mut Built) -> Result<(), WorldError> {
    let Built { world, nodes, links } = built;
    for node in &plan.lab.nodes {
        let id = world.add_node(node.name.value.as_str())?;
        world.set_forwarding(id, matches!(node.kind, NodeKind::Linux));
        nodes.push(id);
    }
    for link in &plan.lab.links {
        let [a, b] = &link.ends;
        let mut interface = |end: &crate::file::End| -> Result<InterfaceId, WorldError> {
            let mut config = InterfaceConfig::new(&end.interface);
            config.mtu = link.properties.mtu as usize;
            let id = world.add_interface(nodes[end.node], config)?;
            if let Some(address) = &end.address {
                world.add_address(id, address.value.address(), address.value.prefix_len())?;
            }
            Ok(id)
        };
        let ends = [interface(a)?, interface(b)?];
        let model = &link.properties.model;
        let id = world.connect((ends[0], model.clone()), (ends[1], model.clone()))?;
        links.push((id, ends));
    }
    for route in &plan.lab.routes {
        let (network, length) = (route.prefix.network(), route.prefix.prefix_len());
        world.add_route(nodes[route.node], network, length, route.gateway)?;
    }
    Ok(())
}

fn add_files(plan: &Plan<'_>, world: &mut World) -> Result<(), LabError> {
    for file in &plan.lab.files {
        let name = file.name.value.as_str();
        let path = Path::new(DIRECTORY).join(name);
        let action = format!("make the file {name}");
        match &file.content {
            Content::Copy(from) => world
                .import_file(&path, Path::new(&plan.expand(&from.value)))
                .map_err(LabError::system(action))?,
            Content::Random(size) => {
                let bytes = random_bytes(*size, plan.file_seed(name)).collect::<Vec<_>>().concat();
                world.import(&path, &bytes, true).map_err(LabError::system(action))?;
            }
        }
    }
    Ok(())
}
