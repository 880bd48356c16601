//! `weft xip`: the commands of the Linux tool at a running node, what they print, and how they end.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use weft_port::testing::privileged;

use crate::processes::Node;
use crate::support::{Done, finish, weft};

const ID: &str = "00000000000000000000000000000000000000ad";
const HOST: &str = "hid-000000000000000000000000000000000000000b";

fn node() -> Node {
    Node::with(
        "interface eth7; principal hid; principal ad; principal lpm; principal u4id; principal xdp; \
         principal zf;",
    )
}

fn xip(node: &Node, line: &str) -> Done {
    let run = node.run_directory();
    let mut command = weft(["xip", "--run-dir"]);
    command.arg(&run).arg("--hid-dir").arg(run.with_file_name("keys"));
    command.args(line.split(' ')).current_dir(run.parent().unwrap());
    finish(command)
}

/// What a command prints that must succeed.
fn printed(node: &Node, line: &str) -> String {
    let done = xip(node, line);
    assert!(done.status == Some(0) && done.stderr.is_empty(), "{line}: {done:?}");
    done.stdout
}

fn quietly(node: &Node, line: &str) {
    assert_eq!(printed(node, line), "", "{line}");
}

fn fails(node: &Node, line: &str, status: i32, why: &str) {
    let done = xip(node, line);
    assert!(done.status == Some(status) && done.stderr.contains(why), "{line}: {done:?}");
    assert_eq!(done.stdout, "", "{line}");
}

#[test]
fn tables_are_changed_and_printed_as_by_the_linux_tool() {
    if !privileged() {
        return;
    }
    let node = node();
    let other = "00000000000000000000000000000000000000ae";
    for ppal in ["ad", "zf"] {
        assert_eq!(printed(&node, &format!("{ppal} show locals")), "");
        quietly(&node, &format!("{ppal} addlocal {ID}"));
        fails(&node, &format!("{ppal} addlocal {ID}"), 2, "File exists");
        quietly(&node, &format!("{ppal} addroute {other} gw {HOST}"));
        fails(&node, &format!("{ppal} addroute {other} gw {HOST}"), 2, "File exists");
        let locals = format!("to {ppal}-{ID}\n flags []\n\n");
        assert_eq!(printed(&node, &format!("{ppal} show locals")), locals);
        let routes = format!("to {ppal}-{other}\ngw {HOST} flags []\n\n");
        assert_eq!(printed(&node, &format!("{ppal} sh r")), routes);
        quietly(&node, &format!("{ppal} dellocal {ID}"));
        quietly(&node, &format!("{ppal} delroute {other}"));
        fails(&node, &format!("{ppal} delroute {other}"), 2, "the node answers: ");
        assert_eq!(printed(&node, &format!("{ppal} show routes")), "");
    }
    quietly(&node, "lpm addlocal 10.1.0.0 16");
    quietly(&node, &format!("lpm addroute 0x0a 8 gw {HOST}"));
    fails(&node, &format!("lpm addroute 10.0.0.0 8 gw {HOST}"), 2, "File exists");
    let zeros = "0".repeat(32);
    let locals = format!("to lpm-0a010000{zeros}/16\n flags []\n\n");
    assert_eq!(printed(&node, "lpm show locals"), locals);
    let routes = format!("to lpm-0a000000{zeros}/8\ngw {HOST} flags []\n\n");
    assert_eq!(printed(&node, "lpm show routes"), routes);
    quietly(&node, "lpm delroute 10.0.0.0 8");
    quietly(&node, "lpm dellocal 0x0a01 16");
    quietly(&node, &format!("xdp addroute {ID} gw {HOST}"));
    let routes = format!("to xdp-{ID}\ngw {HOST} flags []\n\n");
    assert_eq!(printed(&node, "xdp showroutes"), routes);
    // A route that has several gateways otherwise is there once for each.
    let other_host = HOST.replace('b', "c");
    let both = format!("set xdp route xdp-{ID} via {HOST} {other_host}");
    assert_eq!(node.run("xia", &both.split(' ').collect::<Vec<_>>()).status, Some(0));
    let line = |via: &str| format!("to xdp-{ID}\ngw {via} flags []\n\n");
    assert_eq!(printed(&node, "xdp showroutes"), line(HOST) + &line(&other_host));
    // weft's own commands see the same.
    assert!(node.run("xia", &["route"]).stdout.contains(&format!("xdp-{ID}")));
    quietly(&node, &format!("xdp delroute {ID}"));
    // The echo responder is a socket, too; nothing else is bound.
    for entry in printed(&node, "xdp showsockets").split_terminator("\n\n") {
        assert!(entry.starts_with("local xdp-") && entry.ends_with("\nflags []"), "{entry}");
    }
    assert_eq!(printed(&node, "dst show"), "");
    quietly(&node, "dst flush");
}

#[test]
fn hosts_have_keys_addresses_and_neighbours() {
    if !privileged() {
        return;
    }
    let node = node();
    quietly(&node, "hid new r1");
    let path = node.run_directory().with_file_name("keys").join("prv/r1");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    fails(&node, "hid new r1", 1, "exists already");
    fails(&node, "hid getpub r2", 1, "there is no key");
    fails(&node, "hid new ../r1", 1, "Invalid name");
    let public = printed(&node, "hid getpub r1");
    let (hid, pem) = public.split_once("\n\n").unwrap();
    assert!(hid.starts_with("hid-") && pem.starts_with("-----BEGIN PUBLIC KEY-----\n"), "{public}");
    let id = finish({
        let mut command = weft(["xia", "id", "verify", hid]);
        command.arg(&path);
        command
    });
    assert_eq!(id.status, Some(0), "{id:?}");

    let rsa = path.with_file_name("old");
    let label = "RSA PRIVATE KEY-----";
    fs::write(&rsa, format!("hid-0\n\n-----BEGIN {label}\nAAAA\n-----END {label}\n")).unwrap();
    fs::set_permissions(&rsa, fs::Permissions::from_mode(0o600)).unwrap();
    fails(&node, "hid addaddr old", 1, "the keys of Linux XIA are RSA");

    quietly(&node, "hid addaddr r1");
    fails(&node, "hid addaddr r1", 2, "File exists");
    assert_eq!(printed(&node, "hid showaddrs"), format!("to {hid}\nflags []\n\n"));
    quietly(&node, "hid deladdr r1");
    fails(&node, "hid deladdr r1", 2, "no such statement");
    assert_eq!(printed(&node, "hid showaddrs"), "");

    let at = |verb: &str, mac: &str| format!("hid {verb} {ID} lladdr {mac} dev eth7");
    quietly(&node, &at("addneigh", "2:0:0:0:0:1"));
    quietly(&node, &at("addneigh", "02:00:00:00:00:02"));
    fails(&node, &at("addneigh", "02:00:00:00:00:01"), 2, "File exists");
    let nowhere = format!("hid addneigh {ID} lladdr 02:00:00:00:00:01 dev eth8");
    fails(&node, &nowhere, 1, "Cannot find device 'eth8'");
    let expected = format!(
        "to hid-{ID}\nlladdr: 02:00:00:00:00:01\tdev: eth7\nlladdr: 02:00:00:00:00:02\tdev: eth7\n\
         flags []\n\n"
    );
    assert_eq!(printed(&node, "hid showneighs"), expected);
    quietly(&node, &at("delneigh", "02:00:00:00:00:01"));
    quietly(&node, &at("delneigh", "02:00:00:00:00:02"));
    assert_eq!(printed(&node, "hid showneighs"), "");
}

#[test]
fn tunnels_have_ends() {
    if !privileged() {
        return;
    }
    let node = node();
    let xid = format!("7f000001d0a5{}", "0".repeat(28));
    quietly(&node, "u4id add 127.0.0.1 0xd0a5 -tunnel");
    fails(&node, "u4id add 127.0.0.1 53413", 2, "File exists");
    fails(&node, "u4id add 127.0.0.1 53414 -tunnel", 2, "a node has one such address");
    fails(&node, "u4id add 127.0.0.1 53414 -t -d", 1, "leave out -disable_checksum");
    let shown = format!(
        "to u4id-{xid}\n using IP socket: 127.0.0.1:53413\n tunnel socket: yes (checksumming enabled)\n \
         flags []\n\n"
    );
    assert_eq!(printed(&node, "u4id show"), shown);
    // Both roles go at once: the tool knows one entry.
    assert_eq!(node.run("xia", &["set", "u4id", "local", "127.0.0.1:53413"]).status, Some(0));
    quietly(&node, &format!("u4id del {xid}"));
    assert_eq!(printed(&node, "u4id show"), "");
    fails(&node, "u4id del 127.0.0.1 53413", 2, "is not set so here");
    quietly(&node, "u4id add 127.0.0.1 53413");
    assert!(printed(&node, "u4id show").contains(" tunnel socket: no\n"));
}

#[test]
fn batches_go_on_only_if_they_are_forced() {
    if !privileged() {
        return;
    }
    let node = node();
    let path = node.run_directory().with_file_name("batch");
    let batch = format!(
        "# a domain\nad addlocal {ID}\nad addlocal {ID} # again\n\nad \\\n show \\\n locals\n"
    );
    fs::write(&path, batch).unwrap();
    let done = xip(&node, "-batch batch");
    assert_eq!((done.status, done.stdout.as_str()), (Some(1), ""), "{done:?}");
    assert!(done.stderr.ends_with("Command failed batch:3\n"), "{done:?}");
    quietly(&node, &format!("ad dellocal {ID}"));
    let done = xip(&node, "-force -b batch");
    let shown = format!("to ad-{ID}\n flags []\n\n");
    assert_eq!((done.status, done.stdout), (Some(1), shown));
}

#[test]
fn names_of_principals_come_from_a_map() {
    if !privileged() {
        return;
    }
    let node = node();
    let map = node.run_directory().with_file_name("principals");
    fs::write(map, "# ours\nchat 0x1000\n").unwrap();
    let add = format!("ad addroute {ID} gw chat-{ID}");
    fails(&node, &add, 1, "Invalid XID");
    quietly(&node, &format!("--ppal-map principals {add}"));
    let named = printed(&node, "-ppal principals ad show routes");
    assert_eq!(named, format!("to ad-{ID}\ngw chat-{ID} flags []\n\n"));
    assert!(printed(&node, "ad show routes").contains(&format!("gw 0x1000-{ID}")));
}

#[test]
fn mistakes_end_with_the_status_of_the_linux_tool() {
    if !privileged() {
        return;
    }
    let node = node();
    for (line, status, why) in [
        ("nonsense", 255, "Object \"nonsense\" is unknown, try \"xip help\"."),
        ("ad nonsense", 255, "Command \"nonsense\" is unknown, try \"xip ad help\"."),
        ("ad addlocal", 255, "Wrong number of parameters\nUsage: xip ad"),
        ("ad show tables", 255, "Unknown routing table 'tables'"),
        ("ad addlocal 12", 1, "Invalid ID '12'"),
        ("lpm addlocal 10.0.0.0 161", 255, "Prefix length must be in range 0 - 160"),
        ("lpm addlocal 10.1.0.0 8", 2, "bits behind the first 8"),
        ("help", 1, "Usage: weft xip"),
        ("zf help", 1, "Usage: xip zf"),
        ("-nonsense", 1, "Option \"-nonsense\" is unknown"),
        ("serval showsockets service", 2, "weft has no principal `serval`"),
        ("ether show interfaces", 2, "the node has no principal `ether`"),
    ] {
        fails(&node, line, status, why);
    }
    assert!(printed(&node, "-V").starts_with("xip utility, weft "));
    // A principal that weft has and this node has not.
    assert_eq!(node.run("xia", &["principal", "remove", "zf"]).status, Some(0));
    fails(&node, "zf show locals", 2, "the node has no principal `zf`");
}

#[test]
fn a_batch_knows_what_it_has_added_and_deleted_itself() {
    if !privileged() {
        return;
    }
    let node = node();
    let path = node.run_directory().with_file_name("batch");
    let prefix = |index: usize| format!("0x{index:08x}");
    let add = |index: usize| format!("lpm addroute {} 32 gw {HOST}\n", prefix(index));
    let mut batch: String = (0..500).map(add).collect();
    batch += &format!("{}lpm delroute {} 32\n{}", add(7), prefix(8), add(8));
    fs::write(&path, batch).unwrap();
    let done = xip(&node, "-force -batch batch");
    assert_eq!(done.status, Some(1), "{done:?}");
    assert!(done.stderr.ends_with("Command failed batch:501\n"), "{done:?}");
    assert_eq!(done.stderr.lines().count(), 2, "{done:?}");
    let routes = printed(&node, "lpm show routes");
    assert_eq!(routes.matches("gw ").count(), 500);
}
