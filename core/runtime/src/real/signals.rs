//! `SIGTERM` and `SIGINT`, turned into readable descriptors.
//!
//! `SIGPIPE` is ignored by every Rust program; writes to closed pipes are errors.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level;

use super::poller::{Interest, Poller, Source};

/// The signals that end a process; none are watched if there are no pipes.
pub(super) struct Signals {
    pipes: Vec<Pipe>,
}

struct Pipe {
    number: u32,
    name: &'static str,
    receiver: UnixStream,
    handler: SigId,
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signal {
    /// Its name, such as `SIGTERM`.
    pub(super) name: &'static str,
    /// The exit status of a process that it ends.
    pub(super) status: u8,
    /// How often it came since the last time.
    pub(super) times: usize,
}

impl Signals {
    /// Watches nothing.
    pub(super) fn none() -> Self {
        Self { pipes: Vec::new() }
    }

    /// Watches `SIGTERM` and `SIGINT`, which no longer end the program by themselves.
    pub(super) fn watch(poller: &Poller) -> io::Result<Self> {
        let mut pipes = Vec::new();
        for (signal, name) in [(SIGTERM, "SIGTERM"), (SIGINT, "SIGINT")] {
            let (receiver, sender) = UnixStream::pair()?;
            receiver.set_nonblocking(true)?;
            let number = signal.unsigned_abs();
            poller.add(&receiver, Source::Signal(number), Interest::Read)?;
            let handler = low_level::pipe::register(signal, sender)?;
            pipes.push(Pipe { number, name, receiver, handler });
        }
        Ok(Self { pipes })
    }

    /// Takes the signals with `number` that came.
    pub(super) fn take(&mut self, number: u32) -> Option<Signal> {
        let pipe = self.pipes.iter_mut().find(|pipe| pipe.number == number)?;
        let times = pipe.receiver.read(&mut [0; 64]).unwrap_or(0);
        let status = 128_u8.saturating_add(number.try_into().unwrap_or(u8::MAX));
        (times > 0).then_some(Signal { name: pipe.name, status, times })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for pipe in &self.pipes {
            low_level::unregister(pipe.handler);
        }
    }
}
