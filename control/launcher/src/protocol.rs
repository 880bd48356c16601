//! What the manager and the launcher say to each other: one JSON object per message.
//!
//! The types hold no descriptors, so that the manager can be a component without I/O. Whoever carries a
//! message attaches the descriptors that [`Request::descriptors`] counts. Each value is checked when it
//! is read: a [`Request`] that exists has sane names, lengths and numbers. What only the launcher can
//! know (paths, which instances exist) it checks itself.
//!
//! The manager runs without privileges and may be hostile: unknown fields and doubtful values are errors.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::{Name, Secret};

/// The longest message, in bytes.
pub const LONGEST: usize = 60 * 1024;
/// The most arguments of an instance, and their greatest length together in bytes.
const ARGUMENTS: (usize, usize) = (64, 8 * 1024);
/// The most listeners of an instance.
const LISTENERS: usize = 16;
/// The longest path of a Unix socket, in bytes; unix(7).
const SOCKET_PATH: usize = 107;
/// The longest time between asking an instance to end and ending it, in milliseconds.
const LONGEST_GRACE: u32 = 600_000;
/// The longest status, in bytes.
pub const STATUS: usize = 500;
/// The number of the signal that ends a process at once; signal(7).
pub const SIGKILL: i32 = 9;
/// The highest signal number; signal(7).
const SIGNALS: i32 = 64;

/// What the manager asks, with a number that comes back in the reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Chosen by the manager.
    pub id: u64,
    /// What is to be done.
    pub command: Command,
}

/// What the launcher can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Start an instance. An instance that ended is replaced; its uid and its listeners stay.
    Start(Spec),
    /// Send a signal to a running instance, or to `manager`.
    Signal {
        /// To whom.
        instance: Name,
        /// 1 to 64.
        number: i32,
    },
    /// End an instance, and forget it when it has ended. One that has ended already is forgotten at
    /// once.
    Stop {
        /// Which.
        instance: Name,
        /// How long it has between `SIGTERM` and `SIGKILL`, in milliseconds: at most ten minutes.
        grace_ms: u32,
    },
    /// Tell what is there, in order of names.
    List {
        /// Begin behind this instance; `None` for the first page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Name>,
    },
    /// Tell what the processes use.
    Usage {},
    /// Tell whoever supervises the node, such as systemd, how it is.
    Status {
        /// Whether every process of the start serves.
        ready: bool,
        /// What the node is doing: one line of at most 500 bytes.
        text: String,
    },
    /// Keep the one descriptor that comes with this message, in place of an earlier one of this name.
    Keep {
        /// What to call it.
        name: Name,
        /// Whom to hand it to whenever that is started, as by [`Command::Give`]; without it, whoever got an
        /// earlier one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instance: Option<Name>,
    },
    /// Hand a kept descriptor to an instance whenever that is started.
    Give {
        /// Which descriptor.
        name: Name,
        /// To whom from now on, in place of whoever got it before.
        instance: Name,
    },
    /// Close a kept descriptor.
    Drop {
        /// Which.
        name: Name,
    },
}

/// How an instance is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Its name, of which there is one.
    pub instance: Name,
    /// What it is; decides which [`Profile`](crate::Profile) confines it.
    pub class: Name,
    /// Arguments behind those that name class and instance: no control characters.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// What it may use.
    #[serde(default)]
    pub limits: Limits,
    /// Where others connect to it.
    #[serde(default)]
    pub listeners: Vec<ListenerSpec>,
    /// What it proves itself with.
    pub secret: Secret,
}

/// What an instance may use. What is `None` is as its profile says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Bytes of memory: 16 MiB or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Its share of processor time when there is not enough, 1 to 10,000; others have 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_weight: Option<u32>,
    /// Processor time it may use at most, in percent of one processor: 1 to 100,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_percent: Option<u32>,
    /// Threads: 1 to 4,096.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Open descriptors: 32 to 65,536.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptors: Option<u32>,
    /// Niceness: 0 to 19.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
}

/// A Unix socket at which an instance accepts connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenerSpec {
    /// Absolute, directly in the node's run directory.
    pub path: String,
    /// What connects to it.
    pub kind: ListenerKind,
    /// Who may connect: read and write bits, at most `0o666`. The owner is the launcher's user.
    pub mode: u32,
    /// The group of the socket, one of those that the launcher was started with; without, that of the
    /// node's own processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// The type of a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListenerKind {
    /// `SOCK_STREAM`.
    Stream,
    /// `SOCK_SEQPACKET`.
    Seqpacket,
}

/// What the launcher tells the manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// The answer to the request with this number.
    Reply {
        /// [`Request::id`].
        id: u64,
        /// What came of it.
        outcome: Outcome,
    },
    /// A process runs.
    Started {
        /// Whose.
        instance: Name,
        /// Its process id.
        pid: i32,
        /// Its user, if that is not the launcher's own.
        uid: Option<u32>,
    },
    /// A process ended.
    Exited {
        /// Whose.
        instance: Name,
        /// Its process id.
        pid: i32,
        /// How.
        exit: Exit,
    },
    /// A process could not be started.
    Failed {
        /// Whose.
        instance: Name,
        /// Why, and what to do about it, in one sentence.
        error: String,
    },
    /// The node ends: all instances are being ended, and after them the manager.
    Stopping {},
    /// What the launcher has reported, on standard error as well.
    Report {
        /// When, in nanoseconds of the machine's monotonic clock.
        time: u64,
        /// `error`, `warning`, `info` or `debug`.
        level: String,
        /// What happened.
        text: String,
    },
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    /// It is done, or begun: [`Message::Started`], [`Message::Failed`] or [`Message::Exited`] will follow.
    Done {},
    /// The answer to [`Command::List`].
    Listing(Listing),
    /// The answer to [`Command::Usage`]: every process that runs, `launcher` and `manager` included, in
    /// order of names.
    Usage(Vec<Usage>),
    /// Nothing was done.
    Refused {
        /// Why, and what to do about it, in one sentence.
        error: String,
    },
}

/// What the launcher has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// Instances, in order of names.
    pub instances: Vec<Instance>,
    /// Whether there are more behind the last of them.
    pub more: bool,
    /// Kept descriptors, in order of names; only on the first page.
    pub kept: Vec<Kept>,
    /// What isolation is missing on this machine, a sentence each; only on the first page.
    pub missing: Vec<String>,
}

/// What a process uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Its name.
    pub instance: Name,
    /// Its process id.
    pub pid: i32,
    /// Its user, if that is not the launcher's own.
    pub uid: Option<u32>,
    /// Since when it runs, in nanoseconds of the monotonic clock.
    pub since: u64,
    /// How often the launcher has started the manager again; 0 for all others, whom the manager counts.
    pub restarts: u32,
    /// Its memory, in bytes (resident set).
    pub memory: u64,
    /// The processor time that it has used, in nanoseconds.
    pub processor: u64,
}

/// An instance that runs or ended by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// How it was started.
    pub spec: Spec,
    /// Its user, if that is not the launcher's own.
    pub uid: Option<u32>,
    /// What it does.
    pub state: State,
}

/// What an instance does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum State {
    /// It runs.
    Running {
        /// Its process id.
        pid: i32,
        /// Since when, in nanoseconds of the monotonic clock.
        since: u64,
        /// Whether it was asked to end.
        stopping: bool,
    },
    /// It ended, and was not asked to.
    Ended {
        /// The process id that it had.
        pid: i32,
        /// How.
        exit: Exit,
    },
    /// It could not be started.
    Failed {
        /// Why.
        error: String,
    },
}

/// How a process ended: either `status` or `signal` is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    /// Its exit status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Whether it left a core dump.
    #[serde(default)]
    pub core: bool,
    /// What is known of the cause beyond that, such as a limit that was exceeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.status, self.signal) {
            (Some(status), _) => write!(f, "ended with status {status}")?,
            (None, Some(signal)) => write!(f, "was ended by {}", signal_name(signal))?,
            (None, None) => write!(f, "ended")?,
        }
        if self.core {
            write!(f, " and left a core dump")?;
        }
        match &self.cause {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}

/// The name of a signal, or its number.
fn signal_name(number: i32) -> String {
    match signal_hook::low_level::signal_name(number) {
        Some(name) => name.to_owned(),
        None => format!("signal {number}"),
    }
}

/// A descriptor that the launcher keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// What it is called.
    pub name: Name,
    /// Who gets it when it is started.
    pub instance: Option<Name>,
}

/// Why bytes are no message.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    /// They are too many.
    #[error("a message of {0} bytes is longer than {LONGEST}")]
    TooLong(usize),
    /// They are not the JSON that they should be.
    #[error("not a message between manager and launcher: {0}")]
    Syntax(#[from] serde_json::Error),
    /// A value is out of its bounds.
    #[error("{0}")]
    Value(String),
}

impl Request {
    /// Reads a request and checks every value of it.
    ///
    /// # Errors
    /// The bytes are too many, no request, or a value is out of its bounds.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProtocolError> {
        let request: Self = decode(bytes)?;
        request.command.check().map_err(ProtocolError::Value)?;
        Ok(request)
    }

    /// Writes a request.
    ///
    /// # Errors
    /// It is too long.
    pub fn encode(&self) -> Result<Vec<u8>, ProtocolError> {
        encode(self)
    }

    /// How many descriptors come with it.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        usize::from(matches!(self.command, Command::Keep { .. }))
    }
}

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    /// The bytes are too many or no message.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProtocolError> {
        decode(bytes)
    }

    /// Writes a message.
    ///
    /// # Errors
    /// It is too long.
    pub fn encode(&self) -> Result<Vec<u8>, ProtocolError> {
        encode(self)
    }
}

/// The number of a request whose command cannot be read, to say so to whoever sent it.
pub(crate) fn id_of(bytes: &[u8]) -> Option<u64> {
    let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    value.get("id")?.as_u64()
}

fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ProtocolError> {
    if bytes.len() > LONGEST {
        return Err(ProtocolError::TooLong(bytes.len()));
    }
    Ok(serde_json::from_slice(bytes)?)
}

fn encode(value: &impl Serialize) -> Result<Vec<u8>, ProtocolError> {
    let bytes = serde_json::to_vec(value)?;
    if bytes.len() > LONGEST {
        return Err(ProtocolError::TooLong(bytes.len()));
    }
    Ok(bytes)
}

impl Command {
    /// What is out of bounds, in a sentence.
    fn check(&self) -> Result<(), String> {
        match self {
            Self::Start(spec) => spec.check(),
            Self::Signal { number, .. } => within("the signal", *number, 1, SIGNALS),
            Self::Stop { grace_ms, .. } => {
                within("the time to end, in ms,", *grace_ms, 0, LONGEST_GRACE)
            }
            Self::Status { text, .. } => {
                within("the length of the status, in bytes,", text.len(), 0, STATUS)?;
                // A line end would begin another assignment; sd_notify(3).
                match text.chars().any(char::is_control) {
                    true => Err("the status has a control character".to_owned()),
                    false => Ok(()),
                }
            }
            Self::List { .. }
            | Self::Usage {}
            | Self::Keep { .. }
            | Self::Give { .. }
            | Self::Drop { .. } => Ok(()),
        }
    }
}

impl Spec {
    fn check(&self) -> Result<(), String> {
        let (count, length) = ARGUMENTS;
        within("the number of arguments", self.arguments.len(), 0, count)?;
        let together = self.arguments.iter().map(String::len).sum();
        within("the length of all arguments, in bytes,", together, 0, length)?;
        if self.arguments.iter().any(|argument| argument.chars().any(char::is_control)) {
            return Err("an argument has a control character".to_owned());
        }
        within("the number of listeners", self.listeners.len(), 0, LISTENERS)?;
        self.listeners.iter().try_for_each(ListenerSpec::check)?;
        self.limits.check()
    }
}

impl Limits {
    fn check(&self) -> Result<(), String> {
        fn optional<T: Copy + PartialOrd + fmt::Display>(
            what: &str,
            value: Option<T>,
            least: T,
            most: T,
        ) -> Result<(), String> {
            value.map_or(Ok(()), |value| within(what, value, least, most))
        }
        optional("memory, in bytes,", self.memory, 16 << 20, 1 << 50)?;
        optional("the processor weight", self.processor_weight, 1, 10_000)?;
        optional("processor time, in percent,", self.processor_percent, 1, 100_000)?;
        optional("the number of threads", self.threads, 1, 4_096)?;
        optional("the number of descriptors", self.descriptors, 32, 65_536)?;
        optional("niceness", self.nice, 0, 19)
    }
}

impl ListenerSpec {
    fn check(&self) -> Result<(), String> {
        within("the length of a listener's path", self.path.len(), 2, SOCKET_PATH)?;
        if self.mode & !0o666 != 0 {
            return Err(format!(
                "the mode {:o} of `{}` has bits other than reading and writing",
                self.mode, self.path
            ));
        }
        Ok(())
    }
}

fn within<T: Copy + PartialOrd + fmt::Display>(
    what: &str,
    value: T,
    least: T,
    most: T,
) -> Result<(), String> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(format!("{what} is {value}: it must be from {least} to {most}"))
}

#[cfg(test)]
mod tests;
