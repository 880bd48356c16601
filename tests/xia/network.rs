//! Builds simulated networks of nodes from node files, as `weft run` would run them.

use std::path::PathBuf;

use weft_base::Instant;
use weft_runtime::LinkConfig;
use weft_runtime::Process;
use weft_runtime::sim::{InterfaceConfig, NodeId, ProcessId, Spawn, Status, World, WorldConfig};

/// A network under test.
pub(crate) struct Network {
    pub(crate) world: World,
}

impl Network {
    pub(crate) fn new(seed: u64) -> Self {
        Self { world: World::new(WorldConfig { seed, ..WorldConfig::default() }) }
    }

    /// Adds a node with these interfaces; no process runs on it yet.
    pub(crate) fn machine(&mut self, name: &str, interfaces: &[&str]) -> NodeId {
        let node = self.world.add_node(name).unwrap();
        for interface in interfaces {
            self.world.add_interface(node, InterfaceConfig::new(*interface)).unwrap();
        }
        node
    }

    /// Joins two interfaces, given as `node:interface`, by the same link both ways.
    pub(crate) fn link(&mut self, one: &str, other: &str, link: LinkConfig) {
        let end = |text: &str| {
            let (node, interface) = text.split_once(':').unwrap();
            let node = self.world.find_node(node).unwrap();
            self.world.find_interface(node, interface).unwrap()
        };
        let (one, other) = (end(one), end(other));
        self.world.connect((one, link.clone()), (other, link)).unwrap();
    }

    /// Runs a stack with this `xia` block on a machine.
    pub(crate) fn stack(&mut self, name: &str, xia: &str) -> ProcessId {
        let text = format!("version 1; node {name}; xia {{ {xia} }}");
        let random = self.world.random(name);
        let node = weft::read_node_file(name, &text, &run_directory(name), random).unwrap();
        let machine = self.world.find_node(name).unwrap();
        self.world.spawn(machine, Spawn::new("stack", Box::new(node)))
    }

    /// Starts an application on a machine.
    pub(crate) fn start(&mut self, name: &str, process: impl Process + 'static) -> ProcessId {
        let machine = self.world.find_node(name).unwrap();
        self.world.spawn(machine, Spawn::new("application", Box::new(process)))
    }

    /// Runs the world until `process` ends, or fails the test after `seconds` of virtual time.
    pub(crate) fn wait(&mut self, process: ProcessId, seconds: u64) -> u8 {
        let end = self.world.now() + std::time::Duration::from_secs(seconds);
        self.world
            .run_while(|world| world.now() < end && world.status(process) == Status::Running)
            .unwrap();
        match self.world.status(process) {
            Status::Exited(status) => status,
            other => panic!("{other} at {}: {:?}", self.world.now(), self.world.lines(process)),
        }
    }

    pub(crate) fn run_until(&mut self, nanos: u64) {
        self.world.run_until(Instant::from_nanos(nanos)).unwrap();
    }

    /// What a process has printed.
    pub(crate) fn printed(&self, process: ProcessId) -> String {
        let lines = self.world.lines(process).iter().map(|line| line.text.as_str());
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The run directory of a node.
pub(crate) fn run_directory(name: &str) -> PathBuf {
    PathBuf::from("/run/weft").join(name)
}

/// The socket of a node's stack.
pub(crate) fn socket(name: &str) -> PathBuf {
    run_directory(name).join("xia.sock")
}
