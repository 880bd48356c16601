//! The routers that are measured, each with what it is told.

mod bird;
mod frr;
mod gobgp;
mod weft;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use super::super::cannot_write;
use super::super::directory::Directory;
use super::super::measure::{self, Experiment, Plan};
use super::super::program::Program;
use super::memory::{Share, shares};
use super::network::Peer;
use crate::args::NodeArgs;
use crate::show::Asker;

pub(in super::super) use bird::BIRD;

/// The number of the router's autonomous system.
pub(super) const ROUTER_AS: u32 = 65_000;

/// A router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Weft,
    Bird {
        has_kernel: bool,
    },
    Frr,
    /// It tells no kernel of routes.
    GoBgp,
    /// What the speakers, their connections and the kernel take without a router.
    Reflector,
}

impl Kind {
    /// What it is called in a report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Weft => "weft",
            Self::Bird { has_kernel: true } => "BIRD",
            Self::Bird { has_kernel: false } => "BIRD without kernel routes",
            Self::Frr => "FRR",
            Self::GoBgp => "GoBGP, which has no kernel routes",
            Self::Reflector => "the reflector",
        }
    }

    /// The program of others that it is.
    fn program(self) -> Option<measure::Program> {
        match self {
            Self::Weft | Self::Reflector => None,
            Self::Bird { .. } => Some(BIRD),
            Self::Frr => Some(frr::FRR),
            Self::GoBgp => Some(gobgp::GOBGP),
        }
    }

    /// Whether it tells the kernel of routes.
    pub(super) fn has_kernel(self) -> bool {
        !matches!(self, Self::Bird { has_kernel: false } | Self::GoBgp)
    }
}

/// The programs that a plan needs, of experiments beside these routers.
pub(super) fn needs(
    plan: &Plan,
    all: impl IntoIterator<Item = (Kind, Experiment)>,
) -> Vec<measure::Program> {
    let included = all.into_iter().filter(|(_, experiment)| plan.includes(experiment));
    included.filter_map(|(kind, _)| kind.program()).collect()
}

/// A router that runs, and ends with this.
pub(super) struct Router {
    // In the order in which they end.
    programs: Vec<Program>,
    directory: Directory,
}

impl Router {
    /// Starts a router with these peers in the namespace of the calling thread. It takes sessions soon.
    pub(super) fn start(kind: Kind, peers: &[Peer]) -> Result<Self, String> {
        let mut router = Self { programs: Vec::new(), directory: Directory::new("bgp")? };
        match kind {
            Kind::Weft => weft::start(&mut router, peers),
            Kind::Bird { has_kernel } => bird::start(&mut router, peers, has_kernel),
            Kind::Frr => frr::start(&mut router, peers),
            Kind::GoBgp => gobgp::start(&mut router, peers),
            Kind::Reflector => router.run(weft::program()?.args(["bench-bgp-end", "reflector"])),
        }?;
        Ok(router)
    }

    /// The memory that its processes have taken at most.
    pub(super) fn memory(&self) -> Vec<Share> {
        shares(&self.programs.iter().map(|program| program.0.id()).collect::<Vec<_>>())
    }

    /// The process that was started first; weft's has all others for children.
    pub(super) fn launcher(&self) -> u32 {
        self.programs.first().map_or(0, |program| program.0.id())
    }

    /// Asks the components of weft.
    pub(super) fn asker(&self) -> Result<Asker, String> {
        Asker::new(&NodeArgs { node: None, run_dir: Some(self.path().join(weft::RUN)) })
    }

    /// What its programs have said, for whoever finds that something is wrong.
    pub(super) fn said(&self) -> String {
        let said = fs::read_to_string(self.log()).unwrap_or_default();
        let last: Vec<_> = said.lines().rev().take(10).collect();
        last.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    fn path(&self) -> &Path {
        &self.directory.0
    }

    fn log(&self) -> std::path::PathBuf {
        self.path().join("log")
    }

    /// Writes a file of the directory.
    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.path().join(name);
        fs::write(&path, text).map_err(|error| cannot_write(&path, &error))
    }

    /// Other users may enter the directory; with `write` make files in it, too.
    fn open_to_all(&self, write: bool) -> Result<(), String> {
        let mode = if write { 0o777 } else { 0o755 };
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(self.path(), mode).map_err(|error| cannot_write(self.path(), &error))
    }

    /// Starts a program in the directory.
    fn run(&mut self, command: &mut Command) -> Result<(), String> {
        let log = self.log();
        let file = File::options().create(true).append(true).open(&log);
        let file = file.map_err(|error| cannot_write(&log, &error))?;
        let out = file.try_clone().map_err(|error| cannot_write(&log, &error))?;
        command.current_dir(self.path()).stdin(Stdio::null()).stdout(out).stderr(file);
        let child = command.spawn().map_err(|error| {
            format!("{} cannot be started: {error}", command.get_program().display())
        })?;
        self.programs.push(Program(child));
        Ok(())
    }
}
