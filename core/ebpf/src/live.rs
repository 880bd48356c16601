//! Frames that a program makes and the kernel sends, as fast as it can: what benchmarks generate load with.
//!
//! Reference: Linux kernel, Documentation/bpf/bpf_prog_run.rst ("Running XDP programs in live frame mode").

use std::io;
use std::os::unix::thread::JoinHandleExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::LoadedProgram;
use crate::sys::xdp as sys;

/// Frames for one call. The kernel prepares itself for some milliseconds before each.
const REPEAT: u32 = 1 << 28;
/// How many frames the kernel hands on at once.
const BATCH: u32 = 64;
/// How often a thread that has not heard the first signal gets another.
const AGAIN: Duration = Duration::from_millis(5);

/// A program for XDP that runs on frames of its own, one after the other, on a thread of its own, until this
/// is dropped.
///
/// The kernel does with each frame what the program says, as if it had come in on the loopback interface;
/// the program redirects it to where it shall be sent. Frames are used again: what the program or a receiver
/// changed stays changed, so it writes all that may have been.
///
/// `SIGUSR1` is used to end it.
#[derive(Debug)]
pub struct LiveRun {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl LiveRun {
    /// Begins in the network namespace of the calling thread. `ready` is called first on the new thread, which
    /// may confine itself to a processor there.
    ///
    /// # Errors
    /// What the kernel says: it takes `CAP_NET_ADMIN` and `CAP_BPF`.
    pub fn start(
        program: LoadedProgram,
        frame: Vec<u8>,
        ready: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        ignore_signal()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = thread::Builder::new().name("weft-traffic".into()).spawn(move || {
            ready();
            while !stopping.load(Ordering::Relaxed) {
                match sys::run_live(program.descriptor(), &frame, REPEAT, BATCH) {
                    Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                    _ => {}
                }
            }
            Ok(())
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends it.
    ///
    /// # Errors
    /// Why it had ended before.
    pub fn stop(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        while !thread.is_finished() {
            // SAFETY: the thread was not joined, so its number is valid.
            unsafe { libc::pthread_kill(thread.as_pthread_t(), libc::SIGUSR1) };
            thread::sleep(AGAIN);
        }
        thread.join().map_err(|_| io::Error::other("the thread that sends panicked"))?
    }
}

impl Drop for LiveRun {
    fn drop(&mut self) {
        // Whoever wants to know calls `stop`.
        let _ = self.end();
    }
}

/// Lets the signal do nothing but interrupt.
fn ignore_signal() -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: all zeros is a value of this plain structure; the handler does nothing, which is safe anywhere.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
