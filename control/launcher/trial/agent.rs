//! An instance that does what it is told over its socket, a command a message, and says what came of it.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::ExitCode;

use rustix::net::{SocketFlags, accept_with};
use weft_launcher::{Inherited, Sandbox};

use crate::raw;
use crate::relay::{receive, send};

/// What the commands work on.
pub(crate) struct Agent {
    pub(crate) inherited: Inherited,
    pub(crate) sandbox: Sandbox,
    pub(crate) missing: Vec<String>,
    /// The number of the listening socket.
    pub(crate) listener: i32,
    /// Descriptors that came with commands, by the name that the command gave.
    pub(crate) held: BTreeMap<String, OwnedFd>,
}

pub(crate) fn run(inherited: Inherited, sandbox: &Sandbox, missing: &[String]) -> ExitCode {
    let mut agent = Agent {
        inherited,
        sandbox: sandbox.clone(),
        missing: missing.to_vec(),
        listener: -1,
        held: BTreeMap::new(),
    };
    let Some(listener) = agent.inherited.listeners.first_entry().map(|entry| entry.remove()) else {
        loop {
            std::thread::park();
        }
    };
    agent.listener = listener.as_raw_fd();
    loop {
        wait_readable(&listener);
        let Ok(connection) = accept_with(&listener, SocketFlags::CLOEXEC) else { continue };
        while let Some((bytes, descriptors)) = receive(connection.as_fd()) {
            let command = String::from_utf8(bytes).unwrap();
            let words: Vec<_> = command.split(' ').collect();
            let answer = agent.obey(&words, descriptors);
            if !send(connection.as_fd(), answer.as_bytes(), &[]) {
                break;
            }
        }
    }
}

impl Agent {
    fn obey(&mut self, words: &[&str], descriptors: Vec<OwnedFd>) -> String {
        match words {
            ["hold", name] => {
                let Some(descriptor) = descriptors.into_iter().next() else {
                    return "nothing came".to_owned();
                };
                self.held.insert((*name).to_owned(), descriptor);
                "held".to_owned()
            }
            // One of its own making.
            ["pair", one, other] => {
                let (first, second) = std::os::unix::net::UnixStream::pair().unwrap();
                self.held.insert((*one).to_owned(), first.into());
                self.held.insert((*other).to_owned(), second.into());
                "held".to_owned()
            }
            ["secret"] => format!("{:?}", self.inherited.secret.as_ref().unwrap().bytes()),
            ["kept"] => {
                let contents = self.inherited.kept.iter().map(|(name, descriptor)| {
                    let mut bytes = [0; 64];
                    let count = rustix::io::pread(descriptor, &mut bytes, 0).unwrap_or(0);
                    format!("{name}={}", String::from_utf8_lossy(&bytes[..count]))
                });
                format!("kept {}", contents.collect::<Vec<_>>().join(","))
            }
            ["missing"] if self.missing.is_empty() => "nothing".to_owned(),
            ["missing"] => self.missing.join("\n"),
            ["listener"] => self.listener.to_string(),
            ["environment"] => {
                let names = std::env::vars().map(|(name, _)| name);
                names.collect::<Vec<_>>().join(" ")
            }
            ["descriptors"] => {
                let entries = std::fs::read_dir("/proc/self/fd").unwrap();
                let target = |entry: std::fs::DirEntry| std::fs::read_link(entry.path()).ok();
                let targets = entries.flatten().filter_map(target);
                let targets = targets.map(|target| target.to_string_lossy().into_owned());
                targets.collect::<Vec<_>>().join(" ")
            }
            ["exit", status] => std::process::exit(status.parse().unwrap()),
            ["leak"] => {
                let mut all: Vec<Vec<u8>> = Vec::new();
                loop {
                    all.push(vec![1; 1 << 20]);
                }
            }
            ["loop"] => loop {
                std::hint::spin_loop();
            },
            ["thread"] => {
                std::thread::spawn(|| {
                    loop {
                        std::thread::park();
                    }
                });
                "started".to_owned()
            }
            ["call", number, arguments @ ..] => raw::call(number, arguments, &self.held),
            ["sendmsg", name, address] => raw::send_message(&self.held[*name], address, false),
            ["sendmmsg", name, address] => raw::send_message(&self.held[*name], address, true),
            ["load", kind] => raw::load_program(kind),
            ["map", kind, flags] => raw::make_map(kind, flags.parse().unwrap()),
            ["update", name] => raw::update_map(&self.held[*name]),
            ["read", path] => said(std::fs::read(path).map(|bytes| bytes.len())),
            ["list", path] => said(std::fs::read_dir(path).map(Iterator::count)),
            ["write", path] => said(std::fs::write(path, "x").map(|()| 1)),
            ["run", path] => said(std::process::Command::new(path).status().map(|_| 0)),
            ["spawn", path, arguments @ ..] => {
                let mut command = std::process::Command::new(path);
                said(command.args(arguments).spawn().map(|child| child.id() as usize))
            }
            ["state"] => self.sandbox.write[0].display().to_string(),
            _ => format!("unknown command {words:?}"),
        }
    }
}

/// As `raw` says it.
fn said(result: std::io::Result<usize>) -> String {
    match result {
        Ok(count) => format!("ok {count}"),
        Err(error) => format!("error {}", error.raw_os_error().unwrap()),
    }
}

fn wait_readable(fd: &OwnedFd) {
    let mut fds =
        [rustix::event::PollFd::from_borrowed_fd(fd.as_fd(), rustix::event::PollFlags::IN)];
    let _ = rustix::event::poll(&mut fds, None);
}
