//! GoBGP, which tells nobody but its peers.

use std::process::Command;

use super::super::super::measure;
use super::super::network::Peer;
use super::{ROUTER_AS, Router};

/// What has to be installed.
pub(super) const GOBGP: measure::Program = measure::Program { name: "gobgpd", package: "gobgpd" };

pub(super) fn start(router: &mut Router, peers: &[Peer]) -> Result<(), String> {
    router.write("gobgpd.toml", &configuration(peers))?;
    let words = ["-t", "toml", "-f", "gobgpd.toml", "--log-level", "warn"];
    let interface = ["--api-hosts", "127.0.0.1:50051", "--pprof-disable"];
    router.run(Command::new("gobgpd").args(words).args(interface))
}

fn configuration(peers: &[Peer]) -> String {
    let mut text = format!("[global.config]\nas = {ROUTER_AS}\nrouter-id = \"10.255.0.1\"\n");
    let untold: Vec<_> = peers.iter().filter(|peer| !peer.is_told).collect();
    if !untold.is_empty() {
        text += "[global.apply-policy.config]\nexport-policy-list = [\"untold\"]\n\
                 default-export-policy = \"accept-route\"\n";
    }
    for Peer { router, address, autonomous_system, .. } in peers {
        text += &format!(
            "[[neighbors]]\n[neighbors.config]\nneighbor-address = \"{address}\"\n\
             peer-as = {autonomous_system}\n[neighbors.transport.config]\npassive-mode = true\n\
             local-address = \"{router}\"\n[[neighbors.afi-safis]]\n\
             [neighbors.afi-safis.config]\nafi-safi-name = \"ipv4-unicast\"\n"
        );
    }
    if !untold.is_empty() {
        let addresses: Vec<_> = untold.iter().map(|peer| format!("\"{}\"", peer.address)).collect();
        text += &format!(
            "[[defined-sets.neighbor-sets]]\nneighbor-set-name = \"untold\"\n\
             neighbor-info-list = [{}]\n[[policy-definitions]]\nname = \"untold\"\n\
             [[policy-definitions.statements]]\n\
             [policy-definitions.statements.conditions.match-neighbor-set]\n\
             neighbor-set = \"untold\"\n[policy-definitions.statements.actions]\n\
             route-disposition = \"reject-route\"\n",
            addresses.join(", ")
        );
    }
    text
}
