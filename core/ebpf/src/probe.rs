//! Whether loss programs can be used on this machine.

use std::io;
use std::thread;

use crate::{Direction, LossLink, LossProbability, ProgramError};

const ENTER: &str = "create a network namespace";

/// Says whether loss programs can be built in, loaded and attached here, and if not, why not.
///
/// The answer is found by doing it: a thread of its own enters a new network namespace and attaches
/// a program that drops nothing to its loopback interface. Both are gone when the function returns.
///
/// # Errors
/// The [`ProgramError`] that [`LossLink::attach`] would give.
pub fn probe() -> Result<(), ProgramError> {
    let thread = thread::Builder::new().name("weft-bpf-probe".into()).spawn(|| {
        enter_new_namespace()?;
        LossLink::attach("lo", Direction::Egress, LossProbability::NEVER, 0)?.detach()
    });
    let thread = thread.map_err(|error| refused(&error.to_string()))?;
    thread.join().unwrap_or_else(|_| Err(refused("the probing thread panicked")))
}

/// Moves the calling thread to a network namespace of its own, which ends with the thread.
fn enter_new_namespace() -> Result<(), ProgramError> {
    // SAFETY: no pointers are passed; only the calling thread is moved.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EPERM) => Err(ProgramError::NotPermitted { action: ENTER }),
        // The kernel was built without network namespaces.
        Some(libc::EINVAL) => {
            Err(ProgramError::NotSupported { action: ENTER, detail: error.to_string() })
        }
        _ => Err(refused(&error.to_string())),
    }
}

fn refused(detail: &str) -> ProgramError {
    ProgramError::Refused { action: "probe for ebpf loss programs", detail: detail.to_owned() }
}
