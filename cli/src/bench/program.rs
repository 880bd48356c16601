//! A program that runs beside a benchmark, a node or a lab, and ends with it.

use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

/// Ended when dropped as its user does it (SIGTERM), so that nothing of it is left.
pub(super) struct Program(pub(super) Child);

impl Drop for Program {
    fn drop(&mut self) {
        if let (Ok(None), Some(pid)) = (self.0.try_wait(), Pid::from_raw(self.0.id().cast_signed()))
        {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.0.wait();
    }
}
