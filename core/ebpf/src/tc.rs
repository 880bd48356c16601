//! The traffic control hooks of an interface: one classifier, attached so that it stays.
//!
//! Reference: tc(8), tc-bpf(8); the messages are `weft_netlink`'s.
//!
//! The classifier hangs below a `clsact` queueing discipline and belongs to the interface, not to
//! the process that attached it: it lives until it is detached or the interface goes, as it does when
//! its namespace is deleted.

use std::ffi::CString;
use std::os::fd::BorrowedFd;

use weft_netlink::{Classifier, Direction, Place, Refusal, TrafficControl};

use crate::LossError;

/// Which classifier of the hook is ours. Lower priorities run first; the number is one that nobody
/// chooses by accident.
const PRIORITY: u16 = 0x7766;
const HANDLE: u32 = 1;

/// One hook of one interface.
#[derive(Debug)]
pub(crate) struct Hook {
    control: TrafficControl,
    interface: String,
    index: u32,
    direction: Direction,
}

impl Hook {
    /// The hook of an interface in the network namespace of the calling thread. It keeps meaning
    /// this interface when the thread enters another namespace.
    pub(crate) fn open(interface: &str, direction: Direction) -> Result<Self, LossError> {
        let index = interface_index(interface)
            .ok_or_else(|| LossError::NoInterface { interface: interface.to_owned() })?;
        let control = TrafficControl::open().map_err(|error| LossError::Refused {
            action: "open a netlink socket",
            detail: error.to_string(),
        })?;
        Ok(Self { control, interface: interface.to_owned(), index, direction })
    }

    /// Attaches `program` under `name`.
    pub(crate) fn attach(&mut self, program: BorrowedFd<'_>, name: &str) -> Result<(), LossError> {
        if let Err(refusal) = self.control.add_clsact(self.index) {
            return Err(self.sort("add a clsact queueing discipline", &refusal));
        }
        match self.control.add_program(self.place(), name, program) {
            Ok(()) => Ok(()),
            Err(refusal) if refusal.code() == Some(libc::EEXIST) => Err(self.already_attached()),
            Err(refusal) => Err(self.sort("attach a traffic control classifier", &refusal)),
        }
    }

    /// Identifier of the attached program.
    pub(crate) fn program_id(&mut self, name: &str) -> Result<u32, LossError> {
        match self.control.classifier(self.place()) {
            Ok(found) => {
                let own = found.filter(|found| is_ours(found, name));
                own.and_then(|found| found.program).ok_or_else(|| self.not_attached())
            }
            Err(refusal) => Err(self.sort("look up a classifier", &refusal)),
        }
    }

    /// Detaches the program that was attached under `name`. The queueing discipline stays: it does
    /// nothing by itself, and others may use it by now.
    pub(crate) fn detach(&mut self, name: &str) -> Result<(), LossError> {
        self.program_id(name)?;
        match self.control.delete(self.place()) {
            Ok(()) => Ok(()),
            Err(refusal) if is_absent(&refusal) => Err(self.not_attached()),
            Err(refusal) => Err(self.sort("detach a traffic control classifier", &refusal)),
        }
    }

    /// Where our classifier is.
    fn place(&self) -> Place {
        let (interface, direction) = (self.index, self.direction);
        Place { interface, direction, priority: PRIORITY, handle: HANDLE }
    }

    /// Sorts a refusal by what can be done about it.
    fn sort(&self, action: &'static str, refusal: &Refusal) -> LossError {
        match refusal.code() {
            Some(libc::EPERM) => LossError::NotPermitted { action },
            Some(libc::ENODEV) => LossError::NoInterface { interface: self.interface.clone() },
            Some(libc::ENOENT | libc::EOPNOTSUPP) => {
                LossError::NotSupported { action, detail: refusal.to_string() }
            }
            _ => LossError::Refused { action, detail: refusal.to_string() },
        }
    }

    fn already_attached(&self) -> LossError {
        LossError::AlreadyAttached { interface: self.interface.clone(), direction: self.direction }
    }

    fn not_attached(&self) -> LossError {
        LossError::NotAttached { interface: self.interface.clone(), direction: self.direction }
    }
}

/// Whether the kernel says that there is no such classifier. It says EINVAL when not even the
/// queueing discipline is there.
fn is_absent(refusal: &Refusal) -> bool {
    matches!(refusal.code(), Some(libc::ENOENT | libc::EINVAL))
}

/// Whether this is what was attached under `name`.
fn is_ours(found: &Classifier, name: &str) -> bool {
    let place = (found.priority, found.handle) == (PRIORITY, HANDLE);
    place && found.kind == "bpf" && found.name.as_deref() == Some(name)
}

fn interface_index(interface: &str) -> Option<u32> {
    let name = CString::new(interface).ok()?;
    // SAFETY: the pointer is to a string that ends with zero and outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => None,
        index => Some(index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn sorted(code: i32) -> LossError {
        let hook = Hook::open("lo", Direction::Egress).unwrap();
        hook.sort("try", &Refusal::from(io::Error::from_raw_os_error(code)))
    }

    #[test]
    fn refusals_are_sorted_by_what_can_be_done() {
        assert!(matches!(sorted(libc::EPERM), LossError::NotPermitted { action: "try" }));
        assert!(matches!(sorted(libc::ENODEV), LossError::NoInterface { .. }));
        assert!(matches!(sorted(libc::ENOENT), LossError::NotSupported { .. }));
        assert!(matches!(sorted(libc::EINVAL), LossError::Refused { .. }));
    }

    #[test]
    fn a_missing_interface_is_named() {
        for name in ["no-such-link", "", "a name longer than any interface", "zero\0inside"] {
            let error = Hook::open(name, Direction::Ingress).unwrap_err();
            assert!(matches!(&error, LossError::NoInterface { interface } if interface == name));
        }
    }

    #[test]
    fn only_our_own_classifier_is_recognised() {
        let ours = Classifier {
            kind: "bpf".to_owned(),
            priority: PRIORITY,
            handle: HANDLE,
            name: Some("weft_loss".to_owned()),
            program: Some(7),
        };
        assert!(is_ours(&ours, "weft_loss"));
        assert!(!is_ours(&ours, "weft_los"));
        assert!(!is_ours(&Classifier { name: None, ..ours.clone() }, "weft_loss"));
        assert!(!is_ours(&Classifier { kind: "u32".to_owned(), ..ours.clone() }, "weft_loss"));
        assert!(!is_ours(&Classifier { priority: 1, ..ours }, "weft_loss"));
    }
}
