//! A node of the trial binary, driven by a test in the place of its manager.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recv, sendmsg, socket_with,
};
use weft_launcher::protocol::{
    Command as Order, Exit, Instance, Limits, ListenerKind, ListenerSpec, Listing, Message,
    Outcome, Request, Spec,
};
use weft_launcher::{Name, Secret};

/// The trial binary.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_weft-launcher-trial");

/// A running launcher with its directories.
pub(crate) struct Node {
    command: Command,
    pub(crate) launcher: Child,
    pub(crate) run_directory: PathBuf,
    manager: Option<OwnedFd>,
    next: u64,
    /// What was told and not waited for yet.
    told: Vec<Message>,
    _directory: tempfile::TempDir,
}

impl Node {
    /// A node whose manager answers.
    pub(crate) fn start() -> Self {
        let mut node = Self::begin(|_| ());
        node.connect();
        node
    }

    /// A node whose launcher is executed by another program, such as one that changes the user.
    pub(crate) fn start_by(words: &[&str], owner: Option<u32>) -> Self {
        let mut node = Self::begin_by(words, owner, |_| ());
        node.connect();
        node
    }

    /// A node of which only the launcher is known to have been started.
    pub(crate) fn begin(change: impl FnOnce(&mut Command)) -> Self {
        Self::begin_by(&[], None, change)
    }

    fn begin_by(words: &[&str], owner: Option<u32>, change: impl FnOnce(&mut Command)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        // Other users have to get at the sockets.
        set_mode(directory.path(), 0o755);
        // A name of its own, so that it gets its uids and control groups again when it is restarted.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let run_directory = directory.path().join(format!("n{}-{number}", std::process::id()));
        std::os::unix::fs::chown(directory.path(), owner, owner).unwrap();
        let mut binary = PathBuf::from(BINARY);
        if !words.is_empty() {
            // Where every user can execute it. By another program, so that no process that a test
            // starts at this moment has it open for writing.
            binary = directory.path().join("weft");
            assert!(Command::new("cp").arg(BINARY).arg(&binary).status().unwrap().success());
        }
        let words = words.iter().map(std::ffi::OsStr::new).chain([binary.as_os_str()]);
        let words: Vec<_> = words.collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg("launcher").arg(&run_directory);
        command.stdin(Stdio::null());
        change(&mut command);
        let launcher = command.spawn().unwrap();
        let (next, told) = (1, Vec::new());
        Self { command, launcher, run_directory, manager: None, next, told, _directory: directory }
    }

    /// Starts another launcher when the first has been killed.
    pub(crate) fn restart(&mut self) {
        self.launcher.wait().unwrap();
        self.launcher = self.command.spawn().unwrap();
        self.manager = None;
        self.connect();
    }

    /// Connects to the manager as soon as there is one.
    pub(crate) fn connect(&mut self) {
        let path = self.run_directory.join("manager.sock");
        loop {
            match connect_to(&path) {
                Ok(socket) => {
                    self.manager = Some(socket);
                    return;
                }
                Err(_) => {
                    assert!(self.launcher.try_wait().unwrap().is_none(), "the launcher ended")
                }
            }
            std::thread::yield_now();
        }
    }

    fn manager(&self) -> BorrowedFd<'_> {
        self.manager.as_ref().unwrap().as_fd()
    }

    /// Sends bytes to the launcher and returns its answer.
    pub(crate) fn say(&mut self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> (u64, Outcome) {
        send(self.manager(), bytes, descriptors);
        self.reply()
    }

    /// Sends bytes to the launcher as soon as there is room; how many answers had to be read for that.
    pub(crate) fn say_later(&mut self, bytes: &[u8]) -> usize {
        let mut answered = 0;
        loop {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match rustix::net::send(self.manager(), bytes, flags) {
                Ok(_) => return answered,
                Err(rustix::io::Errno::AGAIN) => {
                    self.reply();
                    answered += 1;
                }
                Err(errno) => panic!("{errno}"),
            }
        }
    }

    /// The next reply.
    pub(crate) fn reply(&mut self) -> (u64, Outcome) {
        loop {
            match self.receive() {
                Message::Reply { id, outcome } => return (id, outcome),
                message => self.told.push(message),
            }
        }
    }

    /// Makes a request and returns the answer.
    pub(crate) fn ask(&mut self, command: Order) -> Outcome {
        self.ask_with(command, &[])
    }

    pub(crate) fn ask_with(&mut self, command: Order, descriptors: &[BorrowedFd<'_>]) -> Outcome {
        let id = self.next;
        self.next += 1;
        let request = Request { id, command };
        let (answered, outcome) = self.say(&serde_json::to_vec(&request).unwrap(), descriptors);
        assert_eq!(answered, id);
        outcome
    }

    /// Makes a request that is done.
    #[track_caller]
    pub(crate) fn order(&mut self, command: Order) {
        assert_eq!(self.ask(command), Outcome::Done {});
    }

    /// Makes a request that is refused, and returns why.
    #[track_caller]
    pub(crate) fn refused(&mut self, command: Order) -> String {
        match self.ask(command) {
            Outcome::Refused { error } => error,
            outcome => panic!("{outcome:?}"),
        }
    }

    fn receive(&mut self) -> Message {
        let bytes = receive(self.manager()).expect("the manager is there");
        Message::decode(&bytes).unwrap()
    }

    /// The next event of which `choose` makes something; others wait.
    fn event<T>(&mut self, choose: impl Fn(&Message) -> Option<T>) -> T {
        loop {
            let found = self.told.iter().enumerate();
            let found = found.filter_map(|(n, message)| Some((n, choose(message)?))).next();
            if let Some((n, value)) = found {
                self.told.remove(n);
                return value;
            }
            let message = self.receive();
            self.told.push(message);
        }
    }

    /// Starts an instance and returns its process id.
    pub(crate) fn start_instance(&mut self, spec: Spec) -> i32 {
        let name = spec.instance.clone();
        self.order(Order::Start(spec));
        self.event(|message| match message {
            Message::Started { instance, pid, .. } if *instance == name => Some(*pid),
            Message::Failed { instance, error } if *instance == name => panic!("{error}"),
            _ => None,
        })
    }

    /// Waits until an instance could not be started, and returns why.
    pub(crate) fn failed(&mut self, name: &str) -> String {
        self.event(|message| match message {
            Message::Failed { instance, error } if instance.as_str() == name => Some(error.clone()),
            _ => None,
        })
    }

    /// Waits for the end of an instance.
    pub(crate) fn exited(&mut self, name: &str) -> Exit {
        self.event(|message| match message {
            Message::Exited { instance, exit, .. } if instance.as_str() == name => {
                Some(exit.clone())
            }
            _ => None,
        })
    }

    /// All that the launcher lists.
    pub(crate) fn list(&mut self) -> Listing {
        let mut all = Listing::default();
        loop {
            let after = all.instances.last().map(|instance| instance.spec.instance.clone());
            let first = after.is_none();
            let Outcome::Listing(page) = self.ask(Order::List { after }) else { panic!() };
            all.instances.extend(page.instances);
            if first {
                (all.kept, all.missing) = (page.kept, page.missing);
            }
            if !page.more {
                return all;
            }
        }
    }

    /// An instance that the launcher lists.
    pub(crate) fn instance(&mut self, name: &str) -> Option<Instance> {
        let instances = self.list().instances;
        instances.into_iter().find(|instance| instance.spec.instance.as_str() == name)
    }

    /// The process id of the manager, which is connected.
    pub(crate) fn manager_pid(&self) -> i32 {
        let peer = rustix::net::sockopt::socket_peercred(self.manager()).unwrap();
        // Who listened first is the launcher, which made the socket.
        assert_eq!(peer.pid.as_raw_pid(), self.launcher.id() as i32);
        let path = format!("/proc/{0}/task/{0}/children", self.launcher.id());
        let is_manager = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == b"manager")
        };
        loop {
            let pids = std::fs::read_to_string(&path).unwrap();
            let mut pids = pids.split_whitespace().map(|pid| pid.parse().unwrap());
            // It may be about to execute.
            if let Some(pid) = pids.find(is_manager) {
                return pid;
            }
            std::thread::yield_now();
        }
    }

    /// An agent's socket.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.run_directory.join(format!("{name}.sock"))
    }

    /// An agent that listens at its socket.
    pub(crate) fn agent(&self, name: &str) -> Spec {
        Spec { listeners: vec![listener(&self.path(name))], ..spec(name, "agent") }
    }

    /// A connection to an agent.
    pub(crate) fn talk(&self, name: &str) -> Talk {
        Talk { socket: connect_to(&self.path(name)).unwrap() }
    }

    /// Ends the launcher as an operator does, and returns its exit status.
    pub(crate) fn end(&mut self) -> Option<i32> {
        signal(self.launcher.id() as i32, rustix::process::Signal::TERM);
        self.launcher.wait().unwrap().code()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // As an operator does it, so that nobody else has to reap what it started.
        if let Ok(None) = self.launcher.try_wait() {
            signal(self.launcher.id() as i32, rustix::process::Signal::TERM);
        }
        let _ = self.launcher.wait();
    }
}

/// A connection to an agent.
pub(crate) struct Talk {
    socket: OwnedFd,
}

impl Talk {
    pub(crate) fn send(&self, command: &str) {
        send(self.socket.as_fd(), command.as_bytes(), &[]);
    }

    /// What an agent says to a command; `None` if it died of it.
    pub(crate) fn try_ask(&self, command: &str) -> Option<String> {
        self.send(command);
        self.answer()
    }

    pub(crate) fn answer(&self) -> Option<String> {
        Some(String::from_utf8(receive(self.socket.as_fd())?).unwrap())
    }

    #[track_caller]
    pub(crate) fn ask(&self, command: &str) -> String {
        self.try_ask(command).expect("the agent answers")
    }

    /// Hands a descriptor to the agent, which calls it `name`.
    pub(crate) fn give(&self, name: &str, descriptor: BorrowedFd<'_>) {
        assert_eq!(self.offer(name, descriptor), "held");
    }

    /// Sends a descriptor to the agent; what it says of it.
    pub(crate) fn offer(&self, name: &str, descriptor: BorrowedFd<'_>) -> String {
        send(self.socket.as_fd(), format!("hold {name}").as_bytes(), &[descriptor]);
        self.answer().expect("the agent answers")
    }
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn spec(instance: &str, class: &str) -> Spec {
    Spec {
        instance: name(instance),
        class: name(class),
        arguments: Vec::new(),
        limits: Limits::default(),
        listeners: Vec::new(),
        secret: Secret::new([7; 32]),
    }
}

pub(crate) fn listener(path: &Path) -> ListenerSpec {
    let path = path.to_str().unwrap().to_owned();
    ListenerSpec { path, kind: ListenerKind::Seqpacket, mode: 0o660, group: None }
}

pub(crate) fn signal(pid: i32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Something to see the end of a process by, which need not be a child.
pub(crate) fn watch(pid: i32) -> OwnedFd {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap()
}

/// Waits until `fd` is ready for reading; a test that hangs fails after a minute.
#[track_caller]
pub(crate) fn wait(fd: BorrowedFd<'_>) {
    let minute = Timespec { tv_sec: 60, tv_nsec: 0 };
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let ready = rustix::io::retry_on_intr(|| poll(&mut fds, Some(&minute))).unwrap();
    assert_eq!(ready, 1, "nothing happened for a minute");
}

pub(crate) fn connect_to(path: &Path) -> rustix::io::Result<OwnedFd> {
    let kind = SocketType::SEQPACKET;
    let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).unwrap();
}

/// A message; `None` at the end.
fn receive(socket: BorrowedFd<'_>) -> Option<Vec<u8>> {
    wait(socket);
    let mut bytes = vec![0; 128 * 1024];
    let (count, _) = recv(socket, &mut bytes[..], RecvFlags::empty()).ok()?;
    bytes.truncate(count);
    (count > 0).then_some(bytes)
}
