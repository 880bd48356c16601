//! The eBPF programs that this process has attached, by `weft_ebpf`.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

use weft_base::{Handle, Token};
use weft_ebpf::{Attachment, Kept, Way, programs_of};

use crate::{Attached, Event, ProgramReply, ProgramRequest};

/// What is attached, by number.
#[derive(Default)]
pub(super) struct Programs {
    attached: BTreeMap<u32, Attachment>,
    last: u32,
}

impl Programs {
    /// Does what is asked. The kernel answers at once.
    pub(super) fn carry_out(&mut self, token: Token, request: ProgramRequest) -> Event {
        Event::ProgramAnswered { token, result: self.answer(request) }
    }

    fn answer(&mut self, request: ProgramRequest) -> Result<ProgramReply, String> {
        let text = |error: weft_ebpf::ProgramError| error.to_string();
        match request {
            ProgramRequest::Attach { interface, direction, program } => {
                let way = Way::available().map_err(text)?;
                let attached = Attachment::attach(&interface, direction, &program, way);
                self.insert(attached.map_err(text)?)
            }
            ProgramRequest::Adopt { name, interface, direction, link, state } => {
                // Else a classifier that somebody else has at our place would be taken for ours.
                if link.is_none() && Way::available().map_err(text)? == Way::Link {
                    return Err(format!("the link of the program {name} was not kept: it is gone"));
                }
                let foreign = |_| "what was kept of a program is no descriptor".to_owned();
                let link = link.map(Handle::into_descriptor).transpose().map_err(foreign)?;
                let state = state.into_descriptor().map_err(foreign)?;
                let kept = Kept { interface, direction, link, state };
                self.insert(Attachment::adopt(&name, kept).map_err(text)?)
            }
            ProgramRequest::Set { attachment, program } => {
                let own = self.attached.get_mut(&attachment).ok_or_else(|| unknown(attachment))?;
                own.set(&program).map_err(text)?;
                Ok(ProgramReply::Done)
            }
            ProgramRequest::Detach { attachment } => {
                let own = self.attached.remove(&attachment).ok_or_else(|| unknown(attachment))?;
                own.detach().map_err(text)?;
                Ok(ProgramReply::Done)
            }
            ProgramRequest::List { interface } => {
                let found = programs_of(interface).map_err(text)?;
                let own = self.attached.iter().filter(|(_, own)| own.interface() == interface);
                let counters =
                    own.map(|(number, own)| Ok((*number, own.counters().map_err(text)?)));
                let counters = counters.collect::<Result<_, String>>()?;
                Ok(ProgramReply::Listed { found, counters })
            }
        }
    }

    fn insert(&mut self, attachment: Attachment) -> Result<ProgramReply, String> {
        let copy = |descriptor: BorrowedFd<'_>| {
            let copy = descriptor.try_clone_to_owned().map(Handle::from);
            copy.map_err(|error| format!("the descriptor of a program cannot be copied: {error}"))
        };
        let (link, state) = attachment.descriptors();
        let reply = Attached {
            attachment: self.last + 1,
            id: attachment.id(),
            interface: attachment.interface(),
            direction: attachment.direction(),
            program: attachment.program().map_err(|error| error.to_string())?,
            link: link.map(copy).transpose()?,
            state: copy(state)?,
        };
        self.last += 1;
        self.attached.insert(self.last, attachment);
        Ok(ProgramReply::Attached(reply))
    }
}

fn unknown(attachment: u32) -> String {
    format!("this process has attached no program with the number {attachment}")
}
