//! `weft component`: one process of a node, as the launcher starts it.
//!
//! First it takes what it was given, then it gives up what it does not need; only then is anything of
//! its own made. Everything it knows comes from the launcher.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use weft_base::WallTime;
use weft_finder::{Finder, Users};
use weft_keys::{KeyHash, PrivateKey};
use weft_launcher::{Inherited, Sandbox, inherited, isolate};
use weft_manager::{Manager, ProgramKind};
use weft_runtime::{ChannelAddress, Level, Process, real};
use weft_xrl::profile::Clock;
use weft_xrl::{Host, Identity, Part, Settings};

use super::processes::{
    HISTORY, IDENTITY, LOG, MANAGER, NODE, OPERATOR, calls_socket, finder_socket,
};
use super::program;
use crate::output::Outcome;
use crate::registry;

#[derive(Debug, clap::Args)]
pub(crate) struct ComponentArgs {
    /// What it is
    class: String,
    /// What it is called
    #[arg(long)]
    instance: String,
    /// The name of the configuration in errors
    #[arg(long)]
    source: Option<String>,
    /// The configuration
    #[arg(long)]
    file: Option<PathBuf>,
    /// What a program executes
    #[arg(last = true)]
    command: Vec<OsString>,
}

/// What a process knows of its node.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    pub(crate) operator: u32,
    pub(crate) identity: Option<KeyHash>,
    /// The key itself, in the process that may use it.
    pub(crate) key: Option<PrivateKey>,
    /// What is random in it follows from this.
    pub(crate) seed: [u8; 32],
    /// When the process was started.
    pub(crate) wall: WallTime,
    /// How much is reported.
    pub(crate) level: Level,
    /// Reads the machine's clock; none in the simulator.
    pub(crate) clock: Option<Clock>,
}

/// A process that is started.
pub(crate) struct Started<'a> {
    pub(crate) class: &'a str,
    pub(crate) instance: &'a str,
    /// What it proves itself with.
    pub(crate) secret: Option<[u8; 32]>,
    /// For the manager.
    pub(crate) boot: Option<Boot>,
    /// Who is who on its machine, for the Finder.
    pub(crate) users: Box<dyn Users>,
}

/// What the manager starts from.
pub(crate) struct Boot {
    /// The configuration that the node was started with: its name for errors, and its text.
    pub(crate) source: String,
    pub(crate) text: String,
    /// The directory of its revisions.
    pub(crate) history: PathBuf,
}

pub(crate) fn run(args: &ComponentArgs) -> Outcome {
    if ProgramKind::of_class(&args.class).is_some() {
        return program::run(&args.instance, &args.command);
    }
    let mut inherited = inherited().map_err(|error| error.to_string())?;
    let sandbox = sandbox()?;
    let key = inherited.key.take().map(|key| PrivateKey::from_seed(*key.bytes()));
    let node = Node { key, ..Node::from_environment(&sandbox)? };
    let level = node.level;
    enter(&sandbox)?;
    let started = Started {
        class: &args.class,
        instance: &args.instance,
        secret: inherited.secret.as_ref().map(|secret| *secret.bytes()),
        boot: (args.class == MANAGER).then(|| boot(args)).transpose()?,
        users: Box::new(super::users::Files),
    };
    let process = process(started, &node)?;
    let options = real::Options {
        level,
        name: Some(args.instance.clone()),
        engines: if args.class == "fea" { registry::engines() } else { Vec::new() },
        inherited: descriptors(&mut inherited),
        ..real::Options::default()
    };
    Ok(real::run(process, options))
}

/// What this process may touch.
pub(super) fn sandbox() -> Result<Sandbox, String> {
    Sandbox::from_environment()?.ok_or_else(|| {
        "`weft component` is for the processes of a node, which `weft run` starts".to_owned()
    })
}

/// Gives up everything else. What this kernel cannot do the launcher has said for all.
pub(super) fn enter(sandbox: &Sandbox) -> Result<(), String> {
    isolate::enter(sandbox).map(drop)
}

impl Node {
    /// A number that follows from the seed.
    pub(crate) fn number(&self) -> u64 {
        let (number, _) = self.seed.split_first_chunk().unwrap_or((&[0; 8], &[]));
        u64::from_le_bytes(*number)
    }

    fn from_environment(sandbox: &Sandbox) -> Result<Self, String> {
        let variable =
            |name: &str| std::env::var(name).map_err(|_| format!("the launcher sets no {name}"));
        let operator = variable(OPERATOR)?;
        let identity = std::env::var(IDENTITY).ok();
        Ok(Self {
            name: variable(NODE)?,
            directory: sandbox.run_directory.clone(),
            operator: operator.parse().map_err(|_| format!("{OPERATOR} is no user: {operator}"))?,
            identity: identity
                .map(|text| text.parse().map_err(|error| format!("{IDENTITY}: {error}")))
                .transpose()?,
            key: None,
            seed: seed()?,
            wall: wall(),
            level: level()?,
            clock: Some(real::now),
        })
    }
}

fn level() -> Result<Level, String> {
    match std::env::var(LOG).as_deref() {
        Ok("debug") => Ok(Level::Debug),
        Ok("info") | Err(_) => Ok(Level::Info),
        Ok(other) => Err(format!("{LOG} is `info` or `debug`, not `{other}`")),
    }
}

/// The descriptors as the driver takes them.
fn descriptors(inherited: &mut Inherited) -> Vec<real::Inherited> {
    let listeners = std::mem::take(&mut inherited.listeners);
    let channels = std::mem::take(&mut inherited.channels);
    let listeners =
        listeners.into_iter().map(|(path, socket)| real::Inherited::Listener { path, socket });
    let channels =
        channels.into_iter().map(|(name, socket)| real::Inherited::Channel { name, socket });
    let kept = std::mem::take(&mut inherited.kept);
    let kept =
        kept.into_iter().map(|(name, descriptor)| real::Inherited::Kept { name, descriptor });
    listeners.chain(channels).chain(kept).collect()
}

/// Makes a process of a node: the same one for a process of the kernel and for a simulated one.
pub(crate) fn process(started: Started<'_>, node: &Node) -> Result<Box<dyn Process>, String> {
    let Started { class, instance, secret, boot, users } = started;
    let secret = || secret.ok_or_else(|| "the launcher has given no secret".to_owned());
    let part = |interfaces, component| {
        let (class, instance) = (class.to_owned(), instance.to_owned());
        Part { class, instance, sole: true, interfaces, component }
    };
    match class {
        weft_xrl::FINDER => {
            let settings = weft_finder::Settings {
                listen: ChannelAddress::Stream(finder_socket(&node.directory)),
                owner: secret()?,
                operator: node.operator,
                users,
                seed: node.seed,
            };
            Ok(Box::new(Finder::new(settings).with_log(node.level)))
        }
        MANAGER => {
            let boot = boot.ok_or("the manager needs a configuration")?;
            let part = part(weft_manager::interfaces(), Box::new(manager(boot, node)?));
            Ok(host(node, part, Identity::Later, false))
        }
        class => {
            let (interfaces, component) = registry::make(class, node, secret()?)?;
            let from_fea = class != "fea";
            Ok(host(node, part(interfaces, component), Identity::Secret(secret()?), from_fea))
        }
    }
}

fn host(node: &Node, part: Part, credential: Identity, ports_from_fea: bool) -> Box<dyn Process> {
    let settings = Settings {
        finder: Some(ChannelAddress::Stream(finder_socket(&node.directory))),
        listen: Some(ChannelAddress::Stream(calls_socket(&node.directory, &part.instance))),
        credential,
        ports_from_fea,
    };
    Box::new(Host::new(settings, vec![part]).with_log(node.level))
}

fn manager(boot: Boot, node: &Node) -> Result<Manager, String> {
    let settings = weft_manager::Settings {
        level: node.level,
        node: node.name.clone(),
        run_directory: node.directory.clone(),
        classes: registry::classes(),
        seed: node.seed,
        schema: registry::schema(),
        history: boot.history,
        source: boot.source,
        text: boot.text,
        wall: node.wall,
    };
    Manager::new(settings).map_err(|errors| errors.to_string())
}

fn boot(args: &ComponentArgs) -> Result<Boot, String> {
    let file = args.file.as_deref().ok_or("the manager needs --file")?;
    let source = args.source.clone().unwrap_or_else(|| file.display().to_string());
    let directory = file.parent().ok_or("the manager's file has no directory")?;
    Ok(Boot { source, text: read(file)?, history: directory.join(HISTORY) })
}

pub(crate) fn wall() -> WallTime {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let since = since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
    WallTime::from_unix_nanos(since)
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file)
        .map_err(|error| format!("cannot read the configuration {}: {error}", file.display()))
}

/// Random bytes from which secrets can be made.
pub(crate) fn seed() -> Result<[u8; 32], String> {
    let mut bytes = [0; 32];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| format!("the operating system gives no randomness: {error}"))?;
    Ok(bytes)
}
