//! Labs without root.
//!
//! The test process is root and starts a copy of itself as an ordinary user.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::support::{ARGUMENTS, is_root};

/// The user `nobody` of Debian.
const USER: &str = "65534";

const LAB: &str = "version 1;
lab rootless {
    node a { kind linux; }
    node r { kind linux; }
    node s { kind weft; config { } }
    link a:eth0 r:eth0 { address 10.0.1.1/24 10.0.1.2/24; loss 1%; }
    link r:eth1 s:eth0 { address 10.0.2.2/24 10.0.2.1/24; delay 1ms; rate 100Mbit/s; }
    route a 10.0.2.0/24 via 10.0.1.2;
    route s 10.0.1.0/24 via 10.0.2.2;
    scenario default {
        run s \"weft echo 10.0.2.1:7\" as echo;
        wait-output echo \"echo is ready\";
        exec a \"weft reach 10.0.2.1:7\";
        cut a:eth0;
        exec a \"weft no-ping 10.0.2.1:7 1\" as cut;
        expect-output cut \"answers 0 of 1\";
    }
}";

#[test]
fn labs_run_in_a_user_namespace() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // The folder of the test binary may be closed to other users.
    fs::copy(std::env::current_exe().unwrap(), path("test")).unwrap();
    fs::set_permissions(path("test"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(path("a.lab"), LAB).unwrap();
    let script = format!(
        "#!/bin/sh\n{ARGUMENTS}=\"$(printf '%s\\n' \"$@\")\" exec {} child::entry --exact --nocapture\n",
        path("test").display()
    );
    fs::write(path("weft"), script).unwrap();
    fs::set_permissions(path("weft"), fs::Permissions::from_mode(0o755)).unwrap();
    let arguments = ["lab", "a.lab", "out", "./weft"];
    let arguments = arguments.map(|name| match name.strip_prefix("./") {
        Some(name) => path(name).display().to_string(),
        None => name.to_owned(),
    });
    let user = ["--reuid", USER, "--regid", USER, "--clear-groups", "--"];
    // The second time finds what the first has left.
    for _ in 0..2 {
        let output = Command::new("setpriv")
            .args(user)
            .arg(path("test"))
            .args(["child::entry", "--exact", "--nocapture"])
            .env(ARGUMENTS, arguments.join("\n"))
            .env("TMPDIR", directory.path())
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        if text.contains("lets only root make namespaces") {
            return weft_port::testing::not_run("this system lets only root make user namespaces");
        }
        assert!(text.contains("error None"), "{text}");
        assert!(output.status.success());
    }
    let left = fs::read_dir(path(&format!("weft-lab-{USER}"))).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".lock"]);
}
