//! Running the program in a directory of its own, and what must not be left of a lab.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

/// The program that these tests are about.
pub(crate) const WEFT: &str = env!("CARGO_BIN_EXE_weft");

/// The user and group `nobody` of every Linux system.
const NOBODY: u32 = 65_534;

/// Whether this process may build labs on real interfaces; says so if not.
pub(crate) use weft_port::testing::privileged as is_root;
use weft_port::testing::runnable_by_all;

pub(crate) fn weft(directory: &Path, arguments: &[&str]) -> Output {
    run(WEFT, directory, arguments)
}

/// Runs a program, which finds `weft` on its path and no settings of whoever runs the tests.
pub(crate) fn run(program: &str, directory: &Path, arguments: &[&str]) -> Output {
    output(&mut command(program, directory, arguments))
}

/// The same, as a user who may do nothing if this one is root. The files in `directory` must not be
/// private.
pub(crate) fn run_as_nobody(program: &str, directory: &Path, arguments: &[&str]) -> Output {
    if !weft_lab::is_root() {
        return run(program, directory, arguments);
    }
    fs::set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
    let own = runnable_by_all(Path::new(WEFT), directory);
    let program = if program == WEFT { own.to_str().unwrap() } else { program };
    let mut command = command(program, directory, arguments);
    command.env("PATH", path(&own)).uid(NOBODY).gid(NOBODY);
    output(&mut command)
}

fn command(program: &str, directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).env("PATH", path(Path::new(WEFT)));
    command.env_remove("WEFT_RUN_DIR").env("WIRESHARK_CONFIG_DIR", directory);
    command
}

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| {
        let program = command.get_program().display();
        panic!("this test needs the program `{program}`, which cannot be run: {error}")
    })
}

/// The usual path, with the folder of this program in front.
fn path(weft: &Path) -> OsString {
    let folder = weft.parent().unwrap().to_owned();
    let usual = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&usual))).unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Fails with everything that was said, unless the command succeeded.
pub(crate) fn succeeded(output: &Output) -> String {
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}\n{said}\n{}", output.status, text(&output.stderr));
    said
}

/// Nothing is left of the labs called `lab`, whose commands ran below `directory`.
pub(crate) fn assert_gone(lab: &str, directory: &Path) {
    // Four digits say which run it is; other labs may have longer names that begin like this one.
    let is_of_run = |rest: &str| {
        let run = rest.split('-').next().unwrap_or_default();
        run.len() == 4 && run.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    let names = |folder: &str, prefix: &str| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.strip_prefix(prefix).is_some_and(is_of_run)).collect()
    };
    assert_eq!(names("/run/netns", &format!("weft-{lab}-")), [""; 0], "namespaces");
    assert_eq!(names("/run/weft/labs", &format!("{lab}-")), [""; 0], "directories");
    let directory = directory.canonicalize().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten().filter(|process| {
        fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&directory))
    });
    let processes: Vec<_> =
        processes.map(|process| fs::read_to_string(process.path().join("cmdline"))).collect();
    assert!(processes.is_empty(), "processes: {processes:?}");
}
