//! A small network with every way that a packet can take, and scenarios in it.
//!
//! ```text
//! server ── ip ── r ──┬── client1
//!         (IPv4)      ├── client2
//!                     └── client3
//! ```
//!
//! The server's packets cross `ip` in a tunnel; from `r` on they are Ethernet frames.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::support::{assert_gone, succeeded, text, weft};

/// What `weft xia push` is told to send to, in words of the lab file.
pub(crate) const TO: &str = "@tunnel-1:@tree-2:@files-0";

const NETWORK: &str = "
    seed 1;
    alias files xdp files;
    alias tunnel u4id 10.0.2.2:13781;
    alias tree zf r-client1 r-client2 r-client3 here;
    node server {
        kind weft;
        config {
            xia { principal hid; principal u4id { tunnel 10.0.1.1:13781; } principal xdp; }
        }
    }
    node ip { kind linux; }
    node r {
        kind weft;
        config {
            xia {
                interface c1 c2 c3;
                principal hid;
                principal u4id { tunnel 10.0.2.2:13781; }
                principal zf {
                    route link r-client1 via @client1;
                    route link r-client2 via @client2;
                    route link r-client3 via @client3;
                }
                principal xdp;
            }
        }
    }
    link server:eth0 ip:eth0 { address 10.0.1.1/24 10.0.1.2/24; }
    link ip:eth1 r:ip { address 10.0.2.1/24 10.0.2.2/24; }
    route server 10.0.2.0/24 via 10.0.1.2;
    route r 10.0.1.0/24 via 10.0.2.1;
    file payload size 2000000B;
";

/// The lab called `name` with one scenario.
pub(crate) fn lab(name: &str, scenario: &str) -> String {
    let client = |number: u32| {
        format!(
            "node client{number} {{
                kind weft;
                config {{
                    xia {{
                        interface eth0;
                        principal hid;
                        principal zf {{ local link here; }}
                        principal xdp;
                    }}
                }}
            }}
            link r:c{number} client{number}:eth0 {{ loss 1%; }}\n"
        )
    };
    let clients: String = [1, 2, 3].map(client).concat();
    format!("version 1;\nlab {name} {{{NETWORK}{clients}scenario default {{ {scenario} }}\n}}\n")
}

/// The step that starts a receiver on a client, in a directory called after it, and the one that
/// waits until it listens.
pub(crate) fn receive(client: &str, process: &str) -> String {
    format!(
        "run {client} \"weft xia receive {client} --bind @files --count 1 --json\" as {process};
         wait-output {process} \"ready to receive\";\n"
    )
}

/// The step that starts the sender, which goes on until it is stopped.
pub(crate) fn push() -> String {
    format!("run server \"weft xia push payload --to {TO} --rate 20Mbit/s --json\" as sender;\n")
}

/// The step that waits until a shell on a node finds `condition` fulfilled.
pub(crate) fn wait_until(node: &str, condition: &str) -> String {
    format!("exec {node} \"sh -c 'until {condition}; do sleep 0.05; done'\";\n")
}

/// The steps after which a link to a client loses so much that a file takes a minute to arrive.
pub(crate) fn almost_cut(client: &str, end: &str) -> String {
    // The router has to find its neighbour before.
    wait_until("r", &format!("weft xia ping @{client} --count 1 --quiet"))
        + &format!("loss {end} 98%;\n")
}

/// A lab that has run, with all that it left.
pub(crate) struct Ran {
    directory: TempDir,
    pub(crate) stderr: String,
}

impl Ran {
    /// A file in the directory in which the lab's commands ran.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("out").join(name)
    }

    /// What a process wrote to standard error.
    pub(crate) fn said(&self, process: &str) -> String {
        fs::read_to_string(self.path(&format!("logs/{process}.stderr"))).unwrap()
    }

    /// What a receiver reported of its file.
    pub(crate) fn report(&self, process: &str) -> serde_json::Value {
        let printed = fs::read_to_string(self.path(&format!("logs/{process}.stdout"))).unwrap();
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
    }

    /// The names of the files in a directory.
    pub(crate) fn files(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// Runs the lab called `name`, whose scenario must succeed and leave nothing but its files.
/// `beside` are files that its commands find in the directory above theirs.
pub(crate) fn run(name: &str, lab: &str, beside: &[(&str, &str)], options: &[&str]) -> Ran {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in beside.iter().chain(&[("test.lab", lab)]) {
        fs::write(directory.path().join(name), content).unwrap();
    }
    let arguments = [&["lab", "run", "test.lab", "--output", "out"], options].concat();
    let output = weft(directory.path(), &arguments);
    assert_gone(name, directory.path());
    succeeded(&output);
    Ran { directory, stderr: text(&output.stderr) }
}
