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

use crate::ProgramError;

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
    pub(crate) fn open(interface: &str, direction: Direction) -> Result<Self, ProgramError> {
        let index = interface_index(interface)
            .ok_or_else(|| ProgramError::NoInterface { interface: interface.to_owned() })?;
        let control = TrafficControl::open().map_err(|error| ProgramError::Refused {
            action: "open a netlink socket",
            detail: error.to_string(),
        })?;
        Ok(Self { control, interface: interface.to_owned(), index, direction })
    }

    /// The hook of an interface of which the number is known.
    pub(crate) fn of_index(index: u32, direction: Direction) -> Result<Self, ProgramError> {
        let name = interface_name(index);
        let name =
            name.ok_or_else(|| ProgramError::NoInterface { interface: index.to_string() })?;
        Self::open(&name, direction)
    }

    /// The number of its interface.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Attaches `program` under `name`.
    pub(crate) fn attach(
        &mut self,
        program: BorrowedFd<'_>,
        name: &str,
    ) -> Result<(), ProgramError> {
        if let Err(refusal) = self.control.add_clsact(self.index) {
            return Err(self.sort("add a clsact queueing discipline", &refusal));
        }
        match self.control.add_program(self.place(), name, program) {
            Ok(()) => Ok(()),
            Err(refusal) if refusal.code() == Some(libc::EEXIST) => Err(self.taken(name)),
            Err(refusal) => Err(self.sort("attach a traffic control classifier", &refusal)),
        }
    }

    /// Identifier of the attached program.
    pub(crate) fn program_id(&mut self, name: &str) -> Result<u32, ProgramError> {
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
    pub(crate) fn detach(&mut self, name: &str) -> Result<(), ProgramError> {
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
    fn sort(&self, action: &'static str, refusal: &Refusal) -> ProgramError {
        match refusal.code() {
            Some(libc::EPERM) => ProgramError::NotPermitted { action },
            Some(libc::ENODEV) => ProgramError::NoInterface { interface: self.interface.clone() },
            Some(libc::ENOENT | libc::EOPNOTSUPP) => {
                ProgramError::NotSupported { action, detail: refusal.to_string() }
            }
            _ => ProgramError::Refused { action, detail: refusal.to_string() },
        }
    }

    /// Our place is taken: by the same program, or by something else.
    fn taken(&mut self, name: &str) -> ProgramError {
        let (interface, direction) = (self.interface.clone(), self.direction);
        match self.control.classifier(self.place()) {
            Ok(Some(found)) if !is_ours(&found, name) => {
                let found = describe(&found);
                ProgramError::Occupied { interface, direction, found }
            }
            _ => ProgramError::AlreadyAttached { interface, direction, program: name.to_owned() },
        }
    }

    fn not_attached(&self) -> ProgramError {
        ProgramError::NotAttached { interface: self.interface.clone(), direction: self.direction }
    }
}

/// Whether the kernel says that there is no such classifier. It says EINVAL when not even the
/// queueing discipline is there.
fn is_absent(refusal: &Refusal) -> bool {
    matches!(refusal.code(), Some(libc::ENOENT | libc::EINVAL))
}

/// A classifier in words.
fn describe(found: &Classifier) -> String {
    let mut text = format!("a classifier of the kind {}", found.kind);
    if let Some(id) = found.program {
        let name = crate::name(id).or_else(|| found.name.clone());
        let name = name.unwrap_or_else(|| "without a name".to_owned());
        text = format!("{text} with the program {name} (id {id})");
    }
    text
}

/// Whether this is what was attached under `name`.
fn is_ours(found: &Classifier, name: &str) -> bool {
    let place = (found.priority, found.handle) == (PRIORITY, HANDLE);
    place && found.kind == "bpf" && found.name.as_deref() == Some(name)
}

pub(crate) fn interface_index(interface: &str) -> Option<u32> {
    let name = CString::new(interface).ok()?;
    // SAFETY: the pointer is to a string that ends with zero and outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => None,
        index => Some(index),
    }
}

/// The name of an interface in the network namespace of the calling thread, by its number.
#[must_use]
pub fn interface_name(index: u32) -> Option<String> {
    let mut name = [0_u8; libc::IF_NAMESIZE];
    // SAFETY: the pointer is to as many bytes as the call may write.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast()) };
    let end = name.iter().position(|byte| *byte == 0)?;
    (!found.is_null()).then(|| String::from_utf8_lossy(&name[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn sorted(code: i32) -> ProgramError {
        let hook = Hook::open("lo", Direction::Egress).unwrap();
        hook.sort("try", &Refusal::from(io::Error::from_raw_os_error(code)))
    }

    #[test]
    fn refusals_are_sorted_by_what_can_be_done() {
        assert!(matches!(sorted(libc::EPERM), ProgramError::NotPermitted { action: "try" }));
        assert!(matches!(sorted(libc::ENODEV), ProgramError::NoInterface { .. }));
        assert!(matches!(sorted(libc::ENOENT), ProgramError::NotSupported { .. }));
        assert!(matches!(sorted(libc::EINVAL), ProgramError::Refused { .. }));
    }

    #[test]
    fn a_missing_interface_is_named() {
        for name in ["no-such-link", "", "a name longer than any interface", "zero\0inside"] {
            let error = Hook::open(name, Direction::Ingress).unwrap_err();
            assert!(matches!(&error, ProgramError::NoInterface { interface } if interface == name));
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
