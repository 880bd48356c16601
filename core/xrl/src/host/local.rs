//! Calls between components of one process that are not answered yet.

use weft_base::Instant;

use super::Caller;
use crate::component::{CallId, Encoded, Reply};
use crate::signature::Signature;
use crate::slab::Slab;
use crate::{ErrorCode, XrlError};

/// How many calls may wait for answers.
const MOST: usize = 1 << 20;
/// The bit of a call's name that says that it stays in the process.
const LOCAL: u64 = 1 << 63;

pub(super) fn is_local(id: CallId) -> bool {
    id.0 & LOCAL != 0
}

#[derive(Default)]
pub(super) struct Local {
    calls: Slab<Waiting>,
    /// No call is given up before.
    earliest: Option<Instant>,
}

struct Waiting {
    caller: Caller,
    /// Of calls in text.
    signature: Option<Signature>,
    deadline: Instant,
}

impl Local {
    pub(super) fn begin(
        &mut self,
        caller: Caller,
        signature: Option<Signature>,
        deadline: Instant,
    ) -> Result<CallId, XrlError> {
        if self.calls.len() >= MOST {
            let note = format!("{MOST} calls in this process wait for answers");
            return Err(XrlError::new(ErrorCode::SendFailedTransient, note));
        }
        self.earliest = Some(self.earliest.map_or(deadline, |old| old.min(deadline)));
        Ok(CallId(LOCAL | self.calls.insert(Waiting { caller, signature, deadline })))
    }

    /// The answer to a call, for its caller; nobody's if it was given up.
    pub(super) fn end(
        &mut self,
        id: CallId,
        result: Result<Encoded, XrlError>,
    ) -> Option<(Caller, Result<Reply, XrlError>)> {
        let Waiting { caller, signature, .. } = self.calls.remove(id.0 & !LOCAL)?;
        let reply = |encoded| match signature {
            Some(signature) => {
                let text = signature.returns_to_text(encoded)?;
                Ok(Reply::Text(String::from_utf8_lossy(text.bytes()).into_owned()))
            }
            None => Ok(Reply::Arguments(encoded)),
        };
        Some((caller, result.and_then(reply)))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.earliest
    }

    pub(super) fn expire(&mut self, now: Instant) -> Vec<(Caller, Result<Reply, XrlError>)> {
        if self.earliest.is_none_or(|earliest| earliest > now) {
            return Vec::new();
        }
        let over = self.calls.extract_if(|waiting| waiting.deadline <= now);
        self.earliest = self.calls.iter().map(|waiting| waiting.deadline).min();
        let error = || Err(XrlError::new(ErrorCode::ReplyTimedOut, "no answer came in time"));
        over.into_iter().map(|waiting| (waiting.caller, error())).collect()
    }
}
