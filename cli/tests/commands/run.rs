//! `weft run`: how it fails.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::thread::CapabilitySet;
use weft_port::testing::privileged;

use crate::support::{Done, Running, finish, finish_without, node_file, weft};

/// `weft run FILE --run-dir DIRECTORY`.
fn run(file: &Path, directory: &Path) -> Command {
    weft([Path::new("run"), file, Path::new("--run-dir"), directory])
}

/// `weft run FILE` on a file with `text`, called node.conf.
fn run_text(text: &str) -> Done {
    let directory = crate::support::directory();
    fs::write(directory.path().join("node.conf"), text).unwrap();
    let mut command = weft(["run", "node.conf", "--run-dir", "run"]);
    command.current_dir(directory.path());
    finish(command)
}

#[test]
fn mistakes_in_the_node_file_are_shown_with_their_places() {
    let done = run_text("version 1;\nnode r1;\nxia {\n    principle hid;\n}\n");
    done.expect_failure(&["node.conf:4:5", "principle", "principal", "^"]);
    let done = run_text("version 1;\nnode r1;\nxia {\n    interface eth0\n}\n");
    done.expect_failure(&["node.conf:"]);
    let done = run_text("version 1;\nnode r1;\nxia { identity /nowhere/r1.key; principal hid; }\n");
    done.expect_failure(&["node.conf:3:16", "there is no key /nowhere/r1.key"]);
}

#[test]
fn a_node_file_that_is_not_there_is_named() {
    let done = finish(weft(["run", "/nowhere/node.conf"]));
    done.expect_failure(&["/nowhere/node.conf", "No such file"]);
}

#[test]
fn a_node_file_may_include_others() {
    let directory = crate::support::directory();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    fs::create_dir(directory.path().join("parts")).unwrap();
    write("node.conf", "version 1;\nnode r1;\nxia {\n    include parts/principals.conf;\n}\n");
    let check = || {
        let mut command = weft(["run", "node.conf", "--run-dir", "run", "--check"]);
        command.current_dir(directory.path());
        finish(command)
    };
    check().expect_failure(&["node.conf:4:13", "parts/principals.conf", "No such file"]);
    write("parts/principals.conf", "version 1;\nprincipal hid\n");
    check().expect_failure(&["parts/principals.conf:"]);
    write("parts/principals.conf", "version 1;\nprinciple hid;\n");
    check().expect_failure(&["parts/principals.conf:2:1: ", "did you mean `principal`", "^"]);
    write("parts/principals.conf", "version 1;\nprincipal hid;\n");
    let done = check();
    assert_eq!(done.status, Some(0), "{done:?}");
    // Statements of components that are not there to be asked.
    write("node.conf", "version 1;\nnode r1;\nxia {}\ngreeter {\n    greet hello;\n}\n");
    check().expect_failure(&["node.conf:5:5: unknown statement `greet`"]);
}

/// `weft run FILE --check` on a file with `text`, called node.conf.
fn check_text(text: &str) -> Done {
    let directory = crate::support::directory();
    fs::write(directory.path().join("node.conf"), text).unwrap();
    let mut command = weft(["run", "node.conf", "--run-dir", "run", "--check"]);
    command.current_dir(directory.path());
    finish(command)
}

#[test]
fn checking_says_what_components_would_refuse() {
    let peer = "peer 10.0.1.2 { as 65001; import nosuch; }";
    let text =
        format!("version 1;\nnode r1;\nrib;\nbgp {{ as 65000; router-id 10.0.1.1;\n{peer} }}\n");
    let done = check_text(&text);
    done.expect_failure(&["node.conf:5:34: bgp refuses this: ", "nosuch", "^"]);
    let done = check_text(&text.replace("import nosuch", "import all"));
    assert_eq!(done.status, Some(0), "{done:?}");
    assert!(done.stderr.is_empty(), "{done:?}");
    let done = check_text(
        "version 1; node r1; rib; ripng { interface eth0; redistribute ebgp { policy no; } }",
    );
    done.expect_failure(&["node.conf:1:", "ripng refuses this: "]);
}

#[test]
fn checking_warns_of_what_has_no_effect_without_the_rib() {
    let done = check_text("version 1; node r1; static { route 10.0.0.0/8 { blackhole; } }");
    assert_eq!(done.status, Some(0), "{done:?}");
    assert_eq!(done.stderr, "node.conf: warning: `static` needs the RIB: add `rib;`\n");
    assert_eq!(done.stdout, "node.conf: no mistakes found\n");
    let done = check_text("version 1; node r1; log { level info; }");
    done.expect_failure(&["nothing to run", "`rib;`"]);
}

#[test]
fn checking_makes_no_run_directory() {
    let directory = crate::support::directory();
    let file = node_file(directory.path(), "r1", "interface eth0; principal hid;");
    let run_directory = directory.path().join("run");
    let mut command = run(&file, &run_directory);
    command.arg("--check");
    let done = finish(command);
    assert_eq!(done.status, Some(0), "{done:?}");
    assert!(!run_directory.exists());
}

#[test]
fn a_node_that_may_not_open_interfaces_says_so_and_ends() {
    let directory = crate::support::directory();
    let file = node_file(directory.path(), "r1", "interface lo; principal hid;");
    let run_directory = directory.path().join("run");
    let done = finish_without(CapabilitySet::NET_RAW, run(&file, &run_directory));
    done.expect_failure(&["node r1", "lo", "CAP_NET_RAW", "sudo weft run", "weft doctor"]);
    assert!(!run_directory.exists());
}

#[test]
fn a_node_without_interfaces_needs_no_capability() {
    let directory = crate::support::directory();
    let file = node_file(directory.path(), "r1", "principal xdp;");
    let mut command = run(&file, &directory.path().join("run"));
    command.arg("--check");
    let done = finish_without(CapabilitySet::NET_RAW, command);
    assert_eq!(done.status, Some(0), "{done:?}");
}

#[test]
fn a_node_waits_for_an_interface_that_is_not_there_yet() {
    if !privileged() {
        return;
    }
    let directory = crate::support::directory();
    let file = node_file(directory.path(), "r1", "interface weft-nowhere; principal hid;");
    let mut node = Running::start(run(&file, &directory.path().join("run")));
    let line = node.wait_for("weft-nowhere");
    assert!(line.contains("there is no interface `weft-nowhere`"), "{line}");
    assert!(node.is_running());
}

#[test]
fn a_node_whose_tunnel_address_is_taken_says_so_and_ends() {
    let holder = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let directory = crate::support::directory();
    let statements = format!("principal u4id {{ tunnel {address}; }} principal xdp;");
    let file = node_file(directory.path(), "r1", &statements);
    let run_directory = directory.path().join("run");
    let done = finish(run(&file, &run_directory));
    done.expect_failure(&["node r1", &address.to_string(), "is in use", "ss -ulpn"]);
    assert!(!run_directory.exists());
    drop(holder);
    Running::start(run(&file, &run_directory)).wait_for("node r1 is ready");
}

#[test]
fn a_run_directory_belongs_to_one_node() {
    let directory = crate::support::directory();
    let file = node_file(directory.path(), "r1", "principal xdp;");
    let run_directory = directory.path().join("run");
    let mut first = Running::start(run(&file, &run_directory));
    first.wait_for("node r1 is ready");
    let process = format!("process {}", first.pid());
    let done = finish(run(&file, &run_directory));
    done.expect_failure(&[&run_directory.display().to_string(), &process, "--run-dir"]);
    assert!(first.is_running());
    // The first one still answers, and its death makes room.
    let show =
        || weft([Path::new("xia"), Path::new("show"), Path::new("--run-dir"), &run_directory]);
    assert_eq!(finish(show()).status, Some(0));
    drop(first);
    // Its processes end with it, and the kernel takes a moment for that.
    while finish(show()).status == Some(0) {}
    Running::start(run(&file, &run_directory)).wait_for("node r1 is ready");
}

/// A place in the usual folder of run directories, removed when dropped.
struct UsualPlace {
    name: String,
    /// For those who are not root.
    runtime: tempfile::TempDir,
}

impl UsualPlace {
    fn new() -> Self {
        let name = format!("test-{}", std::process::id());
        Self { name, runtime: crate::support::directory() }
    }

    fn run(&self, file: &Path) -> Command {
        let mut command = weft([Path::new("run"), file]);
        command.env("XDG_RUNTIME_DIR", self.runtime.path());
        command
    }

    fn directory(&self) -> PathBuf {
        let root = crate::support::is_root();
        let base = if root { PathBuf::from("/run") } else { self.runtime.path().to_owned() };
        base.join("weft").join(&self.name)
    }
}

impl Drop for UsualPlace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.directory());
    }
}

#[test]
fn two_nodes_of_one_name_cannot_run_side_by_side() {
    let directory = crate::support::directory();
    let place = UsualPlace::new();
    let file = node_file(directory.path(), &place.name, "principal xdp;");
    let first = Running::start(place.run(&file));
    first.wait_for("is ready");
    let done = finish(place.run(&file));
    let (name, process) = (&place.name, format!("process {}", first.pid()));
    done.expect_failure(&[&format!("a node called {name} runs already"), &process, "--run-dir"]);
    drop(first);
}

#[test]
fn a_run_directory_that_cannot_be_made_is_named() {
    let directory = crate::support::directory();
    let file = node_file(directory.path(), "r1", "principal xdp;");
    let impossible = file.join("run");
    finish(run(&file, &impossible)).expect_failure(&[
        "cannot make the run directory",
        &impossible.display().to_string(),
        "--run-dir",
    ]);
}

#[test]
fn a_run_directory_that_cannot_be_written_is_named() {
    let directory = crate::support::directory();
    let file = node_file(directory.path(), "r1", "principal xdp;");
    let closed = directory.path().join("run");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    finish_without(CapabilitySet::DAC_OVERRIDE, run(&file, &closed)).expect_failure(&[
        "cannot write to the run directory",
        &closed.display().to_string(),
        "--run-dir",
    ]);
}
