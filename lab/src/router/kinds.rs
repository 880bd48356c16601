//! How each router is started, and when it answers.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};

use super::Config;
use super::process::{Processes, Program, succeeds, write_tool};
use crate::LabError;
use crate::file::{RouterKind, ZEBRA};
use crate::netns::Watch;

const BIRD: Program = Program { name: "bird", package: "bird2" };
const BIRDC: Program = Program { name: "birdc", package: "bird2" };
const VTYSH: Program = Program { name: "vtysh", package: "frr" };
const GOBGPD: Program = Program { name: "gobgpd", package: "gobgpd" };
const GOBGP: Program = Program { name: "gobgp", package: "gobgpd" };
const EXABGP: Program = Program { name: "exabgp", package: "exabgp" };
const EXABGPCLI: Program = Program { name: "exabgpcli", package: "exabgp" };

/// Where GoBGP is asked; its client asks there, too.
const GOBGP_API: &str = "127.0.0.1:50051";
/// The user that FRR becomes.
const FRR_USER: &str = "frr:frr";

/// Starts the router and waits until it answers; if it ends before, its exit status. After `was_killed`, it is told
/// that it restarts, if it has to be told.
pub(super) fn start(
    config: &Config,
    was_killed: bool,
    processes: &mut Processes,
    watch: &mut Watch,
) -> Result<Option<u8>, LabError> {
    match config.kind {
        RouterKind::Bird => bird(config, was_killed, processes, watch),
        RouterKind::Frr => frr(config, processes, watch),
        RouterKind::GoBgp => gobgp(config, was_killed, processes, watch),
        RouterKind::ExaBgp => exabgp(config, processes, watch),
    }
}

/// `words`, a program and its first arguments, with `more`.
fn command(words: &[OsString], more: &[&str]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).args(more);
    command
}

fn bird(
    config: &Config,
    was_killed: bool,
    processes: &mut Processes,
    watch: &mut Watch,
) -> Result<Option<u8>, LabError> {
    let socket = config.run_dir.join("bird.ctl");
    let client: [OsString; 3] = [BIRDC.find()?.into(), "-s".into(), socket.clone().into()];
    write_tool(&config.run_dir, BIRDC.name, &client)?;
    let mut bird = Command::new(BIRD.find()?);
    bird.arg("-f").arg("-c").arg(&config.config).arg("-s").arg(&socket);
    bird.args(was_killed.then_some("-R"));
    let answers = || succeeds(&mut command(&client, &["show", "status"]));
    processes.start(BIRD.name, &mut bird, watch, answers)
}

fn frr(
    config: &Config,
    processes: &mut Processes,
    watch: &mut Watch,
) -> Result<Option<u8>, LabError> {
    let run_dir = config.run_dir.join("frr");
    let client: [OsString; 3] =
        [VTYSH.find()?.into(), "--vty_socket".into(), run_dir.clone().into()];
    write_tool(&config.run_dir, VTYSH.name, &client)?;
    let has_zebra = config.daemons.iter().any(|name| name == ZEBRA);
    make_frr_directory(&run_dir, has_zebra)?;
    for name in &config.daemons {
        let mut daemon = Command::new(VTYSH.find_beside(name)?);
        daemon.args(["-f", "/dev/null", "-A", "127.0.0.1", "-P", "0", "--log", "stdout"]);
        daemon.arg("--vty_socket").arg(&run_dir);
        daemon.arg("-i").arg(run_dir.join(format!("{name}.pid")));
        daemon.arg("-z").arg(run_dir.join("zserv"));
        if !has_zebra {
            // It stays root, tells no kernel and asks nobody for interfaces.
            daemon.args(["-S", "-Z", "-n"]);
        }
        let answers = || succeeds(&mut command(&client, &["-d", name, "-c", "show version"]));
        if let Some(status) = processes.start(name, &mut daemon, watch, answers)? {
            return Ok(Some(status));
        }
    }
    // As it is read at every start of FRR: by the shell, which tells each process its part.
    let read = command(&client, &["-f"]).arg(&config.config).output();
    let read = read.map_err(LabError::system("start `vtysh`"))?;
    if read.status.success() {
        return Ok(None);
    }
    let said = [read.stdout, read.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let wrong: Vec<_> = said.lines().filter(|line| line.starts_with("line ")).collect();
    let reason = if wrong.is_empty() { said.trim().to_owned() } else { wrong.join("; ") };
    Err(LabError::System { action: format!("use {}", config.config.display()), reason })
}

/// The directory of FRR's sockets, in which its user can make files.
fn make_frr_directory(path: &Path, for_its_user: bool) -> Result<(), LabError> {
    fs::create_dir_all(path)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)))
        .map_err(LabError::disk("make the directory", path))?;
    if !for_its_user || succeeds(Command::new("chown").arg(FRR_USER).arg(path)) {
        return Ok(());
    }
    Err(LabError::NotPermitted(format!(
        "FRR becomes the user `frr`, to whom {} cannot be given: as root install the package frr; \
         without root use `daemons bgpd;`",
        path.display()
    )))
}

fn gobgp(
    config: &Config,
    was_killed: bool,
    processes: &mut Processes,
    watch: &mut Watch,
) -> Result<Option<u8>, LabError> {
    let client: [OsString; 1] = [GOBGP.find()?.into()];
    let mut gobgpd = Command::new(GOBGPD.find()?);
    gobgpd.args(["-t", "toml", "--log-plain", "--pprof-disable", "--api-hosts", GOBGP_API]);
    gobgpd.arg("-f").arg(&config.config);
    gobgpd.args(was_killed.then_some("-r"));
    let answers = || succeeds(&mut command(&client, &["global"]));
    processes.start(GOBGPD.name, &mut gobgpd, watch, answers)
}

fn exabgp(
    config: &Config,
    processes: &mut Processes,
    watch: &mut Watch,
) -> Result<Option<u8>, LabError> {
    let [requests, answers] = ["in", "out"].map(|way| config.run_dir.join(format!("exabgp.{way}")));
    for pipe in [&requests, &answers] {
        // What is left of one that was killed may still read from the old one.
        let made = match fs::remove_file(pipe) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => mknodat(CWD, pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).map_err(Into::into),
        };
        made.map_err(LabError::disk("make the pipe", pipe))?;
    }
    // It looks for pipes below /run alone, and puts this name behind.
    let pipes = format!("exabgp.api.pipename=../{}/exabgp", config.run_dir.display());
    let client: [OsString; 3] =
        ["/usr/bin/env".into(), pipes.clone().into(), EXABGPCLI.find()?.into()];
    write_tool(&config.run_dir, EXABGPCLI.name, &client)?;
    let mut exabgp = Command::new("/usr/bin/env");
    exabgp.args([pipes.as_str(), "exabgp.api.cli=true", "exabgp.tcp.bind="]);
    exabgp.args(["exabgp.daemon.user=root", "exabgp.daemon.drop=false"]);
    exabgp.arg("exabgp.log.destination=stderr").arg(EXABGP.find()?).arg(&config.config);
    // Opening the pipe fails as long as nobody reads it.
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let answers = || open(&requests, flags, Mode::empty()).is_ok();
    processes.start(EXABGP.name, &mut exabgp, watch, answers)
}
