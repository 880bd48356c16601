//! A flow for programs that wait: calls that sleep until something can be done, or a time is over.
//!
//! Before it sleeps, a call looks again for a moment ([`Client::set_spin`]): two sides that are busy at
//! once, on two processors, then never sleep and make no system call. Where that proves vain, because both
//! share a processor or the other side is slow, it is done less and less often.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::ask::{Asked, Asking};
use crate::error::Error;
use crate::flow::Flow;
use crate::layout::{Kind, Sizes};
use crate::returning::Watch;

/// How long to look again before sleeping: about what sleeping and waking take.
const SPIN: Duration = Duration::from_micros(20);
/// How often to look between two looks at the clock.
const LOOKS: usize = 64;
/// After looking again was in vain so many times on end, it is done once in two to the power of this.
const MOST_VAIN: u32 = 8;

/// What an application wants of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What it carries.
    pub kind: Kind,
    /// The sizes of the rings, in bytes, rounded up to a power of two; zero means what is usual, 256 KiB.
    /// A stack refuses rings that are larger than it takes.
    pub sizes: Sizes,
    /// How long to wait for a stack that does not answer.
    pub patience: Duration,
    /// Sent first whenever the flow is attached, again when it is attached again: what the stack has to
    /// know to serve this application, such as the address that it is bound to.
    pub greeting: Vec<Vec<u8>>,
    /// For datagrams: when the stack goes away, calls wait for as long as this for it to return, attach
    /// again and go on. Without, and always in a stream, which has lost bytes then, they say
    /// [`Error::Closed`].
    pub returning: Option<Duration>,
}

impl Options {
    /// What is usual: five seconds of patience, no greeting, and no waiting for a stack to return.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        let patience = Duration::from_secs(5);
        let (sizes, greeting) = (Sizes { up: 0, down: 0 }, Vec::new());
        Self { kind, sizes, patience, greeting, returning: None }
    }
}

/// An application's end of a flow, with calls that wait.
#[derive(Debug)]
pub struct Client {
    flow: Flow,
    /// Of receiving, and of sending.
    spins: [Spin; 2],
    /// Where it was attached, if it can be again.
    origin: Option<(PathBuf, Options)>,
}

impl Client {
    /// Attaches to the stack whose control socket is at `path`.
    ///
    /// # Errors
    /// There is no stack, it may not be attached to, refuses, or is not one.
    pub fn connect(path: impl AsRef<Path>, options: &Options) -> Result<Self, Error> {
        let path = path.as_ref();
        let flow = attach(path, options.kind, options.sizes, options.patience)?;
        let origin = Some((path.to_owned(), options.clone()));
        let mut client = Self { origin, ..Self::over(flow) };
        client.greet(options)?;
        Ok(client)
    }

    /// Calls that wait, over a flow that there is already: a stack's end, for example.
    #[must_use]
    pub fn over(flow: Flow) -> Self {
        // With one processor nothing can happen while this one looks.
        let alone = std::thread::available_parallelism().is_ok_and(|count| count.get() == 1);
        let spin = Spin::new(if alone { Duration::ZERO } else { SPIN });
        Self { flow, spins: [spin, spin], origin: None }
    }

    /// Attaches again after [`Error::Closed`]: waits for the stack to return, for as long as `timeout`,
    /// and sends the greeting. What was sent and not received on the old flow is lost. [`Client::fd`] is
    /// another one afterwards.
    ///
    /// # Errors
    /// Why the last try failed. The old flow stays, closed.
    pub fn reattach(&mut self, timeout: Duration) -> Result<(), Error> {
        let (path, options) = self.origin.clone().ok_or(Error::Closed)?;
        let end = Instant::now() + timeout;
        let mut watch = Watch::new(&path);
        self.flow = loop {
            let left = end.saturating_duration_since(Instant::now());
            // Whoever accepts connections for a stack that starts does so before the stack answers.
            match attach(&path, options.kind, options.sizes, left) {
                Ok(flow) => break flow,
                // The stack is away, or went while it attached.
                Err(Error::NoStack { .. } | Error::Closed) if !left.is_zero() => watch.wait(left),
                Err(error) => return Err(error),
            }
        };
        self.greet(&options)
    }

    fn greet(&mut self, options: &Options) -> Result<(), Error> {
        for message in &options.greeting {
            self.send_once(message, Some(options.patience))?;
        }
        Ok(())
    }

    /// Does something again as often as the stack went away meanwhile and came back.
    fn returning<T>(
        &mut self,
        timeout: Option<Duration>,
        mut work: impl FnMut(&mut Self, Option<Duration>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let done = work(self, timeout);
        if !matches!(done, Err(Error::Closed)) {
            return done;
        }
        let returning = self.origin.as_ref().and_then(|(_, options)| options.returning);
        let Some(returning) = returning.filter(|_| self.flow.kind() == Kind::Datagram) else {
            return done;
        };
        let end = deadline(timeout);
        loop {
            let left = left(end);
            match self.reattach(left.map_or(returning, |left| left.min(returning))) {
                Ok(()) => {}
                // It went away again while it was greeted.
                Err(Error::Closed) => continue,
                Err(_) if left.is_some_and(|left| left < returning) => return Err(Error::TimedOut),
                Err(error) => return Err(error),
            }
            match work(self, left) {
                Err(Error::Closed) => {}
                done => return done,
            }
        }
    }

    /// Sends a message, or bytes of a stream; waits for room for as long as `timeout` (`None`: for ever).
    /// Returns how many bytes were sent: of a stream fewer than all if the time was over before. That the
    /// other side is gone is noticed when there is no room left, or when receiving.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if nothing was sent, [`Error::Closed`], [`Error::Hostile`],
    /// [`Error::Empty`], [`Error::TooLong`]; what [`Client::reattach`] says of a stack that was waited
    /// for in vain.
    #[inline]
    pub fn send(&mut self, bytes: &[u8], timeout: Option<Duration>) -> Result<usize, Error> {
        self.returning(timeout, |client, timeout| client.send_once(bytes, timeout))
    }

    #[inline]
    fn send_once(&mut self, bytes: &[u8], timeout: Option<Duration>) -> Result<usize, Error> {
        let mut sent = self.flow.send_now(bytes)?;
        if sent == bytes.len() {
            return Ok(sent);
        }
        let end = deadline(timeout);
        while sent < bytes.len() {
            match self.send_some(&bytes[sent..], end, timeout != Some(Duration::ZERO)) {
                Ok(more) => sent += more,
                Err(Error::TimedOut) if sent > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    /// Waits until something can be sent.
    fn send_some(
        &mut self,
        bytes: &[u8],
        end: Option<Instant>,
        patient: bool,
    ) -> Result<usize, Error> {
        let [_, spin] = &mut self.spins;
        let attempt = || {
            let sent = self.flow.send_now(bytes)?;
            Ok((sent > 0).then_some(sent))
        };
        if patient && let Some(sent) = spin.attempt(attempt)? {
            return Ok(sent);
        }
        loop {
            match self.flow.try_send(bytes)? {
                0 => wait_readable(self.flow.room_fd(), left(end))?,
                sent => return Ok(sent),
            }
        }
    }

    /// Receives one message, or what there is of a stream, into `buffer`; waits for it for as long as
    /// `timeout` (`None`: for ever; zero: not at all). Returns its length.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::Closed`] after the last message, [`Error::Hostile`],
    /// [`Error::BufferTooSmall`] for a message, which stays; what [`Client::reattach`] says of a stack
    /// that was waited for in vain.
    #[inline]
    pub fn receive(
        &mut self,
        buffer: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<usize, Error> {
        self.returning(timeout, |client, timeout| client.receive_once(buffer, timeout))
    }

    #[inline]
    fn receive_once(
        &mut self,
        buffer: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<usize, Error> {
        if let Some(len) = self.flow.receive_now(buffer)? {
            return Ok(len);
        }
        let end = deadline(timeout);
        let [spin, _] = &mut self.spins;
        if timeout != Some(Duration::ZERO)
            && let Some(len) = spin.attempt(|| self.flow.receive_now(buffer))?
        {
            return Ok(len);
        }
        loop {
            match self.flow.try_receive(buffer)? {
                Some(len) => return Ok(len),
                None => wait_readable(self.flow.fd(), left(end))?,
            }
        }
    }

    /// The descriptor to wait for (readable) in a loop of one's own, before [`Client::receive`] with no
    /// timeout (zero), which has to be called until it says [`Error::TimedOut`].
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.flow.fd()
    }

    /// The descriptor to wait for (readable) before sending what [`Client::send`] with no timeout (zero)
    /// found no room for.
    #[must_use]
    pub fn room_fd(&self) -> BorrowedFd<'_> {
        self.flow.room_fd()
    }

    /// The flow, for calls that do not wait.
    pub fn flow(&mut self) -> &mut Flow {
        &mut self.flow
    }

    /// How long a call looks again before it sleeps; 20 µs if there is more than one processor,
    /// otherwise zero.
    pub fn set_spin(&mut self, spin: Duration) {
        self.spins = [Spin::new(spin); 2];
    }
}

/// Attaches to the stack whose control socket is at `path`; waits for it no longer than `patience` for
/// each step.
fn attach(path: &Path, kind: Kind, wanted: Sizes, patience: Duration) -> Result<Flow, Error> {
    let mut asking = Asking::connect(path, kind, wanted, patience)?;
    let end = deadline(Some(patience));
    loop {
        match asking.advance()? {
            Asked::Flow(flow) => return Ok(flow),
            Asked::NotYet(again) => asking = again,
        }
        wait_readable(asking.fd(), left(end))?;
    }
}

/// Waits until `fd` can be read or its other end is closed; `None`: for ever.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<(), Error> {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    // A time too long for the kernel is as good as none.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(&mut fds, timeout.as_ref()) {
        Ok(0) => Err(Error::TimedOut),
        // Whoever was interrupted looks, and waits again for what is left of the time.
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(Error::system("poll(2)")(errno)),
    }
}

/// Looking again before sleeping.
#[derive(Clone, Copy, Debug)]
struct Spin {
    longest: Duration,
    /// How often it was in vain since it last was not.
    vain: u32,
    /// How many times to sleep at once before looking again is tried again.
    skip: u32,
}

impl Spin {
    fn new(longest: Duration) -> Self {
        Self { longest, vain: 0, skip: 0 }
    }

    /// Tries for a moment, unless that was in vain lately.
    fn attempt<T>(
        &mut self,
        mut attempt: impl FnMut() -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        if self.longest.is_zero() || self.skip > 0 {
            self.skip = self.skip.saturating_sub(1);
            return Ok(None);
        }
        let begin = Instant::now();
        while begin.elapsed() < self.longest {
            for _ in 0..LOOKS {
                if let Some(done) = attempt()? {
                    self.vain = 0;
                    return Ok(Some(done));
                }
                std::hint::spin_loop();
            }
        }
        self.vain = (self.vain + 1).min(MOST_VAIN);
        self.skip = (1 << self.vain) - 1;
        Ok(None)
    }
}

/// When a time is over; `None`: never.
fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

/// What is left until then.
fn left(end: Option<Instant>) -> Option<Duration> {
    end.map(|end| end.saturating_duration_since(Instant::now()))
}
