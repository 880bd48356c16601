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
    let mut text = "version 1;\nnode bench;\nrib;\npolicy {\n".to_owned();
    for Peer { autonomous_system, .. } in peers.iter().filter(|peer| peer.has_policy) {
        text += &format!(
            "    policy-statement for-{autonomous_system} {{\n        term asked {{ from {{ \
             large-community has {ROUTER_AS}:0:{autonomous_system}; }} then {{ reject; }} }}\n        \
             then {{ accept; }}\n    }}\n"
        );
    }
    let cache = Peer::cache(peers);
    let import = if cache.is_some() { "origins rest" } else { "all" };
    if let Some(address) = cache {
        let port = Peer::CACHE_PORT;
        text += &format!(
            "    policy-statement origins {{ from {{ origin-validation invalid; }} then {{ reject; }} }}\n    \
             policy-statement rest {{ then {{ accept; }} }}\n}}\nrpki {{\n    \
             cache bench {{ address {address}; port {port}; }}\n"
        );
    }
    text += &format!("}}\nbgp {{\n    as {ROUTER_AS};\n    router-id 10.255.0.1;\n");
    for Peer { router, address, autonomous_system, is_told, has_policy, hears_paths, .. } in
        peers.iter().filter(|peer| !peer.tells_payloads)
    {
        let paths = if *hears_paths { "add-path send; " } else { "" };
        let export = match (is_told, has_policy) {
            (false, _) => "none".to_owned(),
            (true, false) => "all".to_owned(),
            (true, true) => format!("for-{autonomous_system}"),
        };
        text += &format!(
            "    peer {address} {{ as {autonomous_system}; local-address {router}; passive on; \
             {paths}import {import}; export {export}; }}\n"
        );
    }
    text + "}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_one() {
        let with_policy = Peer { has_policy: true, hears_paths: true, ..Peer::of_crowd(0) };
        let cache = Peer { tells_payloads: true, ..Peer::behind(3, false) };
        let peers = [Peer::behind(1, true), Peer::behind(2, false), with_policy, cache];
        for peers in [&peers[..3], &peers] {
            crate::node::file::parse("node.conf", &configuration(peers)).unwrap().check().unwrap();
        }
    }
}
