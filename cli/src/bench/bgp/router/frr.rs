//! FRR: bgpd, and zebra for the kernel.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::super::super::measure;
use super::super::network::Peer;
use super::{ROUTER_AS, Router};

/// What has to be installed.
pub(super) const FRR: measure::Program = measure::Program { name: "vtysh", package: "frr" };
/// Where the package of Debian has the daemons.
const DAEMONS: &str = "/usr/lib/frr";
/// How often one looks whether zebra is there, and how long at most.
const GLANCE: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn start(router: &mut Router, peers: &[Peer]) -> Result<(), String> {
    router.write("zebra.conf", "hostname bench\nzebra work-queue 0\n")?;
    router.write("bgpd.conf", &configuration(peers))?;
    // The daemons become a user of their own.
    router.open_to_all(true)?;
    let zebra = ["-f", "zebra.conf", "-i", "zebra.pid", "-s", "90000000"];
    let zserv = daemon(router, "zebra", &zebra)?;
    let until = Instant::now() + PATIENCE;
    while !Path::new(&zserv).exists() {
        if Instant::now() > until {
            return Err(format!("zebra does not start:\n{}", router.said()));
        }
        thread::sleep(GLANCE);
    }
    daemon(router, "bgpd", &["-f", "bgpd.conf", "-i", "bgpd.pid"]).map(drop)
}

/// Starts a daemon; where zebra is talked to.
fn daemon(router: &mut Router, name: &str, words: &[&str]) -> Result<String, String> {
    let directory = router.path().display().to_string();
    let zserv = format!("{directory}/zserv");
    let mut command = Command::new(format!("{DAEMONS}/{name}"));
    command.args(words).args(["-z", &zserv, "--vty_socket", &directory]);
    router.run(command.args(["-A", "127.0.0.1", "-P", "0"]))?;
    Ok(zserv)
}

/// Neither updates nor sessions are gathered for a while, which it does otherwise.
fn configuration(peers: &[Peer]) -> String {
    let mut text = format!(
        "frr defaults traditional\nhostname bench\nroute-map NONE deny 10\nexit\n\
         router bgp {ROUTER_AS}\n bgp router-id 10.255.0.1\n no bgp ebgp-requires-policy\n \
         no bgp network import-check\n coalesce-time 0\n"
    );
    for Peer { address, autonomous_system, .. } in peers {
        text += &format!(
            " neighbor {address} remote-as {autonomous_system}\n neighbor {address} passive\n \
             neighbor {address} advertisement-interval 0\n"
        );
    }
    text += " address-family ipv4 unicast\n";
    for Peer { address, is_told, .. } in peers {
        text += &format!("  neighbor {address} activate\n");
        if !is_told {
            text += &format!("  neighbor {address} route-map NONE out\n");
        }
    }
    text + " exit-address-family\nexit\n"
}
