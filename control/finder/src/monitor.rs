//! What whoever watches the node asks of the Finder itself: `monitor/1.0`, as of every other component.

use weft_runtime::{Action, Component};
use weft_xrl::{Encoded, FINDER, XrlError, monitor};

use crate::Finder;
use crate::calls::Call;

impl Finder {
    /// What whoever watches the node asks: operators, the manager, and processes that may.
    pub(crate) fn watched(
        &mut self,
        call: Call,
        request: monitor::Call,
        out: &mut Vec<Action>,
    ) -> Result<Option<Encoded>, XrlError> {
        let (interface, number) = call.method;
        let path = interface.path_of(number);
        self.limits(&self.identity(call.channel)?, [FINDER, FINDER], &path)?;
        Ok(match request {
            monitor::Call::Counters(_) => {
                Some(Encoded::new(monitor::CountersReply::of(self.counters())))
            }
            monitor::Call::Log(request) => {
                let answer = self.log.ask(call, &request).map_err(|(_, error)| error)?;
                self.answer_log(answer, out);
                None
            }
            monitor::Call::SetLogLevel(monitor::SetLogLevel { level }) => {
                out.push(self.log.set_level(level.parse().map_err(XrlError::bad_args)?));
                Some(Encoded::default())
            }
        })
    }

    /// Answers calls for records of the log.
    pub(crate) fn answer_log(
        &mut self,
        answers: impl IntoIterator<Item = (Call, monitor::LogReply)>,
        out: &mut Vec<Action>,
    ) {
        // Who has gone meanwhile is not answered.
        let there = |channel| self.clients.get(channel).is_some();
        let answers: Vec<_> = answers.into_iter().filter(|(call, _)| there(call.channel)).collect();
        for (call, reply) in answers {
            self.answer(call, Ok(Encoded::new(reply)), out);
        }
    }
}
