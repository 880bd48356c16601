//! A manager that relays between the launcher and whoever connects to its socket, one at a time.

use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{SocketFlags, accept_with};
use weft_launcher::Inherited;

use crate::relay::{receive, send};

pub(crate) fn run(mut inherited: Inherited) -> ExitCode {
    let launcher = inherited.channels.remove("launcher").unwrap();
    let listener = inherited.listeners.into_values().next().unwrap();
    let mut test: Option<OwnedFd> = None;
    loop {
        let Some(connection) = &test else {
            // What the launcher tells meanwhile waits in the socket.
            wait(&[listener.as_fd(), launcher.as_fd()], &[true, false]);
            test = accept_with(&listener, SocketFlags::CLOEXEC).ok();
            continue;
        };
        let ready = wait(&[launcher.as_fd(), connection.as_fd()], &[true, true]);
        if ready[0] {
            let Some((bytes, descriptors)) = receive(launcher.as_fd()) else {
                return ExitCode::SUCCESS;
            };
            send(connection.as_fd(), &bytes, &descriptors);
        }
        if ready[1] {
            match receive(connection.as_fd()) {
                Some((bytes, descriptors)) => {
                    send(launcher.as_fd(), &bytes, &descriptors);
                }
                None => test = None,
            }
        }
    }
}

/// Waits for any of those that are wanted; which are readable or at their end.
fn wait(fds: &[std::os::fd::BorrowedFd<'_>], wanted: &[bool]) -> Vec<bool> {
    let flags = |wanted: &bool| if *wanted { PollFlags::IN } else { PollFlags::empty() };
    let mut polled: Vec<_> = fds
        .iter()
        .zip(wanted)
        .map(|(fd, wanted)| PollFd::from_borrowed_fd(*fd, flags(wanted)))
        .collect();
    let _ = poll(&mut polled, None);
    polled.iter().map(|fd| !fd.revents().is_empty()).collect()
}
