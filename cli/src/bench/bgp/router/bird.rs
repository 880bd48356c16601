//! BIRD 2.

use std::process::Command;

use super::super::super::measure;
use super::super::network::Peer;
use super::{ROUTER_AS, Router};

/// What has to be installed.
pub(in super::super::super) const BIRD: measure::Program =
    measure::Program { name: "bird", package: "bird2" };

pub(super) fn start(router: &mut Router, peers: &[Peer], has_kernel: bool) -> Result<(), String> {
    router.write("bird.conf", &configuration(peers, has_kernel))?;
    router.run(Command::new("bird").args(["-f", "-c", "bird.conf", "-s", "ctl", "-P", "pid"]))
}

fn configuration(peers: &[Peer], has_kernel: bool) -> String {
    let mut text = "router id 10.255.0.1;\nprotocol device { }\n".to_owned();
    if has_kernel {
        // Once an hour it compares the whole table: not while it is measured.
        text += "protocol kernel { scan time 3600; ipv4 { import none; export all; }; }\n";
    }
    let mut import = "import all";
    if let Some(address) = Peer::cache(peers) {
        let port = Peer::CACHE_PORT;
        text += &format!(
            "roa4 table payloads4;\nroa6 table payloads6;\nprotocol rpki cache {{ \
             roa4 {{ table payloads4; }}; roa6 {{ table payloads6; }}; \
             remote {address} port {port}; retry keep 1; refresh keep 3600; expire keep 7200; }}\n"
        );
        import = "import table; import filter \
                  { if roa_check(payloads4, net, bgp_path.last) = ROA_INVALID then reject; accept; }";
    }
    for (number, peer) in peers.iter().filter(|peer| !peer.tells_payloads).enumerate() {
        let Peer { router, address, autonomous_system, is_told, has_policy, hears_paths, .. } =
            peer;
        let paths = if *hears_paths { "add paths tx; " } else { "" };
        let export = match (is_told, has_policy) {
            (false, _) => "none".to_owned(),
            (true, false) => "all".to_owned(),
            (true, true) => format!(
                "filter {{ if ({ROUTER_AS}, 0, {autonomous_system}) ~ bgp_large_community then reject; accept; }}"
            ),
        };
        text += &format!(
            "protocol bgp p{number} {{ local {router} as {ROUTER_AS}; \
             neighbor {address} as {autonomous_system}; passive on; \
             ipv4 {{ {paths}{import}; export {export}; }}; }}\n"
        );
    }
    text
}
