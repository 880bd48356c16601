//! What the launcher reports: on standard error, and to the manager, in whose log it can be asked for.

use std::collections::VecDeque;

use weft_runtime::Level;
use weft_runtime::real::Lines;

use super::manager::Link;
use crate::protocol::Message;

/// So many reports wait for a manager; of more the oldest are not told.
const WAITING: usize = 64;
/// The longest text of a report that the manager is told, in bytes.
const LONGEST: usize = 4 << 10;

/// See the module's text.
pub(super) struct Log {
    lines: Lines,
    level: Level,
    /// What the manager has not been told.
    untold: VecDeque<Message>,
}

impl Log {
    /// A log of what is as serious as `level`.
    pub(super) fn new(level: Level) -> Self {
        Self { lines: Lines::new(Some("launcher")), level, untold: VecDeque::new() }
    }

    pub(super) fn report(&mut self, level: Level, text: &str) {
        if level > self.level {
            return;
        }
        self.lines.write(level, text);
        if self.untold.len() == WAITING {
            self.untold.pop_front();
        }
        let text = text[..text.floor_char_boundary(LONGEST)].to_owned();
        let time = super::now().as_nanos();
        self.untold.push_back(Message::Report { time, level: level.name().to_owned(), text });
    }

    /// Tells the manager.
    pub(super) fn tell(&mut self, link: &mut Link) {
        let told = self.untold.drain(..).filter_map(|message| message.encode().ok());
        told.for_each(|bytes| link.tell(bytes));
    }
}
