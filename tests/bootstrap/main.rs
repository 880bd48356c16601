//! `scripts/bootstrap.sh` on machines that lack something: what it installs, and what it says when
//! it cannot.
//!
//! The machines are made up: a directory of small stand-ins is all that the script finds in PATH,
//! and a stand-in for apt-get writes down what it was asked for.
#![allow(clippy::unwrap_used, reason = "what helpers of a test cannot do fails the test")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// What the script itself is written with; every machine has it.
const TOOLS: &[&str] =
    &["bash", "cat", "chmod", "cut", "dirname", "env", "grep", "head", "paste", "sed", "sort"];

/// The packages of the group `build`.
const BUILD: &str = "ca-certificates clang gcc libbpf-dev libc6-dev linux-libc-dev";

/// A made-up machine.
struct Machine {
    folder: TempDir,
}

impl Machine {
    /// A machine with every package that the groups ask for and no Rust, used by root.
    fn new() -> Self {
        let machine = Self { folder: TempDir::new().unwrap() };
        fs::create_dir(machine.bin()).unwrap();
        for tool in TOOLS {
            let real = real_path(tool);
            symlink(&real, machine.bin().join(tool)).unwrap();
        }
        machine.command("id", "echo 0");
        machine.command("dpkg-query", "echo installed");
        machine.command("apt-cache", "exit 0");
        let log = machine.folder.path().join("apt.log");
        machine.command("apt-get", &format!("echo \"$*\" >>'{}'", log.display()));
        machine
    }

    fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    /// Puts a command in the machine's PATH that runs a line of shell.
    fn command(&self, name: &str, line: &str) {
        write_script(&self.bin().join(name), line);
    }

    /// Gives the machine a plain cargo and rustc of a version.
    fn with_cargo(self, version: &str) -> Self {
        self.command("cargo", &format!("echo 'cargo {version} (0123456 2026-01-01)'"));
        self.command("rustc", "exit 0");
        self
    }

    /// Takes all packages away.
    fn without_packages(self) -> Self {
        self.command("dpkg-query", "exit 1");
        self
    }

    /// The user is not root, and there is no sudo.
    fn used_by_nobody(self) -> Self {
        self.command("id", "echo 65534");
        self
    }

    fn bootstrap(&self, groups: &[&str]) -> Output {
        Command::new(self.bin().join("bash"))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/bootstrap.sh"))
            .args(groups)
            .env_clear()
            .env("PATH", self.bin())
            .output()
            .unwrap()
    }

    /// What apt-get was asked for, a call a line.
    fn apt_calls(&self) -> String {
        fs::read_to_string(self.folder.path().join("apt.log")).unwrap_or_default()
    }
}

/// A stand-in for rustup that knows the pinned toolchain and its linters.
const RUSTUP: &str = "for part in rustc clippy rustfmt; do echo \"$part-x86_64 (installed)\"; done";

fn write_script(path: &Path, line: &str) {
    fs::write(path, format!("#!/usr/bin/env bash\n{line}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn real_path(tool: &str) -> PathBuf {
    ["/usr/bin", "/bin"]
        .iter()
        .map(|folder| Path::new(folder).join(tool))
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("this machine has no {tool}"))
}

#[track_caller]
fn expect_success(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

/// The script failed, and its last line is the one that says why.
#[track_caller]
fn expect_failure(output: &Output, last_line: &str) {
    assert!(!output.status.success(), "the script should fail");
    let said = said(output);
    assert_eq!(said.lines().last().unwrap_or_default(), last_line, "of:\n{said}");
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_complete_machine_is_left_alone() {
    let machine = Machine::new().with_cargo("1.95.0");
    let output = machine.bootstrap(&["build", "demo", "test"]);
    expect_success(&output);
    assert_eq!(said(&output), "");
    assert_eq!(machine.apt_calls(), "");
}

#[test]
fn a_newer_cargo_is_as_good() {
    expect_success(&Machine::new().with_cargo("1.100.1").bootstrap(&["build"]));
}

#[test]
fn missing_packages_are_named_and_installed() {
    let machine = Machine::new().with_cargo("1.95.0").without_packages();
    let output = machine.bootstrap(&["build"]);
    expect_success(&output);
    assert!(said(&output).contains(&format!("missing system packages: {BUILD}\n")));
    let calls = machine.apt_calls();
    let last = calls.lines().last().unwrap();
    assert!(calls.starts_with("update"), "{calls}");
    assert!(last.starts_with("install") && last.ends_with(BUILD), "{calls}");
}

#[test]
fn a_command_counts_however_it_came_there() {
    let machine = Machine::new().with_cargo("1.95.0").without_packages();
    machine.command("cc", "exit 0");
    expect_success(&machine.bootstrap(&["build"]));
    assert!(machine.apt_calls().lines().last().unwrap().ends_with(&BUILD.replace(" gcc", "")));
}

#[test]
fn programs_to_measure_are_installed_and_their_services_stay_off() {
    let machine = Machine::new().with_cargo("1.95.0").without_packages();
    let log = machine.folder.path().join("apt.log");
    let note = |name| format!("echo \"{name} $* ${{SYSTEMD_OFFLINE-}}\" >>'{}'", log.display());
    machine.command("apt-get", &note("apt-get"));
    machine.command("systemctl", &note("systemctl"));
    expect_success(&machine.bootstrap(&["bench"]));
    let calls = machine.apt_calls();
    let calls: Vec<&str> = calls.lines().collect();
    assert!(calls[1].ends_with(" smcroute util-linux 1"), "{calls:?}");
    let disable = "systemctl --quiet disable frr.service gobgpd.service smcroute.service \
                   smcroute-helper.service 1";
    assert_eq!(calls[2..], [disable]);
}

#[test]
fn services_of_packages_that_were_there_are_left_alone() {
    let machine = Machine::new().with_cargo("1.95.0");
    machine.command("systemctl", "exit 1");
    let output = machine.bootstrap(&["bench"]);
    expect_success(&output);
    assert_eq!((said(&output).as_str(), machine.apt_calls().as_str()), ("", ""));
}

// In a folder of its own, with nothing of the machine but three programs.
#[test]
fn cleaning_needs_no_cargo() {
    let folder = TempDir::new().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::copy(root.join("Makefile"), folder.path().join("Makefile")).unwrap();
    let (bin, built) = (folder.path().join("bin"), folder.path().join("target/release"));
    fs::create_dir(&bin).unwrap();
    for tool in ["make", "rm", "sh"] {
        symlink(real_path(tool), bin.join(tool)).unwrap();
    }
    fs::create_dir_all(&built).unwrap();
    let mut make = Command::new(bin.join("make"));
    make.arg("clean").current_dir(folder.path()).env_clear().env("PATH", &bin);
    expect_success(&make.env("HOME", folder.path()).output().unwrap());
    assert!(!built.exists());
}

#[test]
fn without_root_it_stops_with_the_command_to_run() {
    let machine = Machine::new().with_cargo("1.95.0").without_packages().used_by_nobody();
    expect_failure(
        &machine.bootstrap(&["build"]),
        &format!(
            "error: this needs root: run `apt-get update && apt-get install -y {BUILD}` as root, \
             then try again"
        ),
    );
    assert_eq!(machine.apt_calls(), "");
}

#[test]
fn without_root_packages_and_rust_are_asked_for_at_once() {
    let machine = Machine::new().without_packages().used_by_nobody();
    expect_failure(
        &machine.bootstrap(&["build"]),
        &format!(
            "error: this needs root: run `apt-get update && apt-get install -y {BUILD} rustup` as \
             root, then try again"
        ),
    );
}

#[test]
fn without_rust_the_packaged_rustup_is_installed() {
    let machine = Machine::new();
    let rustup = machine.bin().join("rustup");
    let log = machine.folder.path().join("apt.log");
    // Installing the package is what makes the command appear.
    machine.command(
        "apt-get",
        &format!(
            "echo \"$*\" >>'{log}'\ncase $* in -*|*-s*|update*) exit;; esac\n\
             printf '#!/usr/bin/env bash\\n%s\\n' '{RUSTUP}' >'{rustup}'\nchmod +x '{rustup}'",
            log = log.display(),
            rustup = rustup.display()
        ),
    );
    let output = machine.bootstrap(&["build"]);
    expect_success(&output);
    assert!(machine.apt_calls().lines().last().unwrap().ends_with(" rustup"), "{}", said(&output));
}

#[test]
fn without_a_package_rustup_one_line_says_what_to_install() {
    for machine in [Machine::new(), Machine::new().with_cargo("1.63.0")] {
        machine.command("apt-cache", "exit 100");
        expect_failure(
            &machine.bootstrap(&["build"]),
            "error: this distribution has no package rustup: install rustup from \
             https://rustup.rs, then try again",
        );
    }
}

#[test]
fn without_root_rust_is_asked_for_by_one_command_too() {
    let machine = Machine::new().used_by_nobody();
    let output = machine.bootstrap(&["build"]);
    expect_failure(
        &output,
        "error: this needs root: run `apt-get update && apt-get install -y rustup` as root, then \
         try again",
    );
}

#[test]
fn other_packages_are_not_removed_for_rustup() {
    let machine = Machine::new().with_cargo("1.85.0");
    machine.command("apt-get", "echo 'Remv cargo [1.85]'; echo 'Remv debcargo [2.7]'");
    expect_failure(
        &machine.bootstrap(&["build"]),
        "error: installing the package rustup would remove debcargo: install it yourself, or \
         rustup from https://rustup.rs",
    );
}

#[test]
fn a_missing_toolchain_is_installed_with_its_linters() {
    let machine = Machine::new();
    let log = machine.folder.path().join("rustup.log");
    machine.command("rustup", &format!("echo \"$*\" >>'{}'", log.display()));
    expect_success(&machine.bootstrap(&["build"]));
    let calls = fs::read_to_string(log).unwrap();
    let install = calls.lines().last().unwrap();
    assert!(install.starts_with("toolchain install 1.95"), "{install}");
    assert!(install.ends_with("-c clippy -c rustfmt"), "{install}");
}
