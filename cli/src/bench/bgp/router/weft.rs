//! weft: a node with the RIB, the FEA and the process of BGP.

use std::process::Command;

use super::super::network::Peer;
use super::{ROUTER_AS, Router};

/// Its run directory.
pub(super) const RUN: &str = "run";

pub(super) fn start(router: &mut Router, peers: &[Peer]) -> Result<(), String> {
    router.write("node.conf", &configuration(peers))?;
    // The processes of the node, which have users of their own, pass the directory.
    router.open_to_all(false)?;
    router.run(program()?.args(["run", "node.conf", "--run-dir", RUN]))
}

/// This program.
pub(super) fn program() -> Result<Command, String> {
    std::env::current_exe().map(Command::new).map_err(|error| error.to_string())
}

fn configuration(peers: &[Peer]) -> String {
    let mut text = format!(
        "version 1;\nnode bench;\nrib;\nbgp {{\n    as {ROUTER_AS};\n    router-id 10.255.0.1;\n"
    );
    for Peer { router, address, autonomous_system, is_told } in peers {
        let export = if *is_told { "all" } else { "none" };
        text += &format!(
            "    peer {address} {{ as {autonomous_system}; local-address {router}; passive on; \
             import all; export {export}; }}\n"
        );
    }
    text + "}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_one() {
        let peers = [Peer::behind(1, true), Peer::behind(2, false)];
        crate::node::file::parse("node.conf", &configuration(&peers)).unwrap().check().unwrap();
    }
}
