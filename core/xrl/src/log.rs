//! The log of a process: how much it writes, and its last records for whoever asks (`monitor/1.0`).
//!
//! Components report by an action ([`weft_runtime::Action::Report`]), which the driver writes; this only looks
//! at the actions on their way. What is kept is bounded in number and in bytes.

use std::collections::VecDeque;

use weft_base::Instant;
use weft_runtime::{Action, Level};

use crate::XrlError;
use crate::monitor::{self, Entry, LogReply};

/// Most records that are kept.
const RECORDS: usize = 512;
/// Most bytes of their texts.
const BYTES: usize = 256 * 1024;
/// The longest text of one record in bytes; what is longer is cut.
const LONGEST: usize = 4 * 1024;
/// Most calls that wait for the next record; of more, the oldest is answered with nothing.
const WAITING: usize = 64;

/// See the module's text; `T` names a call that waits for an answer.
#[derive(Debug)]
pub struct Log<T> {
    level: Level,
    records: VecDeque<Record>,
    bytes: usize,
    last: u64,
    waiting: VecDeque<(T, Wanted)>,
}

#[derive(Debug)]
struct Record {
    number: u64,
    time: Instant,
    level: Level,
    text: String,
}

/// What a caller wants to know.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// Only records with greater numbers.
    after: u64,
    /// Only records that are as serious.
    level: Level,
}

impl<T> Log<T> {
    /// An empty log of what is as serious as `level`.
    #[must_use]
    pub fn new(level: Level) -> Self {
        let (records, waiting) = (VecDeque::new(), VecDeque::new());
        Self { level, records, bytes: 0, last: 0, waiting }
    }

    /// From now on the log is of what is as serious as `level`; the action for the driver.
    pub fn set_level(&mut self, level: Level) -> Action {
        self.level = level;
        Action::LogLevel { level }
    }

    /// Keeps the reports among actions; whether there were some.
    pub fn take(&mut self, now: Instant, actions: &[Action]) -> bool {
        let before = self.last;
        for action in actions {
            if let Action::Report { level, line } = action
                && *level <= self.level
            {
                self.add(now, *level, line);
            }
        }
        self.last != before
    }

    /// Keeps a record that is as serious as the log is.
    pub fn record(&mut self, time: Instant, level: Level, text: &str) {
        if level <= self.level {
            self.add(time, level, text);
        }
    }

    fn add(&mut self, time: Instant, level: Level, line: &str) {
        let text = line[..line.floor_char_boundary(LONGEST)].to_owned();
        self.last += 1;
        self.bytes += text.len();
        self.records.push_back(Record { number: self.last, time, level, text });
        while self.records.len() > RECORDS || self.bytes > BYTES {
            let oldest = self.records.pop_front();
            self.bytes -= oldest.map_or(0, |record| record.text.len());
        }
    }

    /// A call asks for records; returns who can be answered now, and what.
    ///
    /// # Errors
    /// The call's level is none.
    pub fn ask(
        &mut self,
        call: T,
        request: &monitor::Log,
    ) -> Result<Option<(T, LogReply)>, (T, XrlError)> {
        let level = match request.level.as_deref().map(str::parse) {
            None => Level::Debug,
            Some(Ok(level)) => level,
            Some(Err(error)) => return Err((call, XrlError::bad_args(error))),
        };
        // Numbers begin anew with the process: who knows a later one knows those of the process before.
        let after = request.after.filter(|after| *after <= self.last).unwrap_or(0);
        let wanted = Wanted { after, level };
        let reply = self.reply(wanted);
        if request.wait != Some(true) || !reply.entries.is_empty() {
            return Ok(Some((call, reply)));
        }
        self.waiting.push_back((call, wanted));
        let full = self.waiting.len() > WAITING;
        let oldest = if full { self.waiting.pop_front() } else { None };
        Ok(oldest.map(|(call, wanted)| (call, self.reply(wanted))))
    }

    /// Those that waited for a record which is there now.
    pub fn answers(&mut self) -> Vec<(T, LogReply)> {
        let mut answers = Vec::new();
        for (call, wanted) in std::mem::take(&mut self.waiting) {
            let reply = self.reply(wanted);
            match reply.entries.is_empty() {
                true => self.waiting.push_back((call, wanted)),
                false => answers.push((call, reply)),
            }
        }
        answers
    }

    fn reply(&self, wanted: Wanted) -> LogReply {
        let is_wanted =
            |record: &&Record| record.number > wanted.after && record.level <= wanted.level;
        let entry = |record: &Record| Entry {
            number: record.number,
            time: record.time.as_nanos(),
            level: record.level.to_string(),
            text: record.text.clone(),
        };
        let entries = self.records.iter().filter(is_wanted).map(entry).collect();
        LogReply { level: self.level.to_string(), entries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(level: Level, line: &str) -> Action {
        Action::Report { level, line: line.to_owned() }
    }

    fn request(after: Option<u64>, level: Option<&str>, wait: bool) -> monitor::Log {
        monitor::Log { after, level: level.map(str::to_owned), wait: wait.then_some(true) }
    }

    fn texts(reply: &LogReply) -> Vec<(u64, &str)> {
        reply.entries.iter().map(|entry| (entry.number, entry.text.as_str())).collect()
    }

    #[test]
    fn what_is_serious_enough_is_kept_and_told_from_a_number_on() {
        let mut log = Log::new(Level::Info);
        assert!(!log.take(Instant::ZERO, &[report(Level::Debug, "detail")]));
        assert!(log.take(
            Instant::from_nanos(7),
            &[report(Level::Info, "one"), Action::Exit { status: 0 }, report(Level::Error, "two")]
        ));
        let (_, reply) = log.ask((), &request(None, None, false)).unwrap().unwrap();
        assert_eq!((texts(&reply), reply.level.as_str()), (vec![(1, "one"), (2, "two")], "info"));
        assert_eq!((reply.entries[0].time, reply.entries[0].level.as_str()), (7, "info"));
        let (_, reply) = log.ask((), &request(Some(1), None, false)).unwrap().unwrap();
        assert_eq!(texts(&reply), [(2, "two")]);
        let (_, reply) = log.ask((), &request(None, Some("warning"), false)).unwrap().unwrap();
        assert_eq!(texts(&reply), [(2, "two")]);
        // A number of the process before.
        let (_, reply) = log.ask((), &request(Some(99), None, true)).unwrap().unwrap();
        assert_eq!(reply.entries.len(), 2);
        let (_, error) = log.ask((), &request(None, Some("loud"), false)).unwrap_err();
        assert!(error.note.contains("`loud`"), "{error}");
        assert!(matches!(log.set_level(Level::Debug), Action::LogLevel { level: Level::Debug }));
        assert!(log.take(Instant::ZERO, &[report(Level::Debug, "detail")]));
    }

    #[test]
    fn who_waits_is_answered_with_the_next_record_that_is_wanted() {
        let mut log = Log::new(Level::Info);
        assert!(log.ask(1, &request(None, Some("error"), true)).unwrap().is_none());
        assert!(log.ask(2, &request(None, None, true)).unwrap().is_none());
        log.take(Instant::ZERO, &[report(Level::Info, "one")]);
        let answers = log.answers();
        assert_eq!(answers.iter().map(|(call, _)| *call).collect::<Vec<_>>(), [2]);
        log.take(Instant::ZERO, &[report(Level::Error, "two")]);
        let answers = log.answers();
        assert_eq!((answers[0].0, texts(&answers[0].1)), (1, vec![(2, "two")]));
        for call in 0..WAITING {
            assert!(log.ask(call, &request(Some(2), None, true)).unwrap().is_none());
        }
        let (call, reply) = log.ask(99, &request(Some(2), None, true)).unwrap().unwrap();
        assert_eq!((call, reply.entries.len()), (0, 0));
    }

    #[test]
    fn memory_is_bounded() {
        let mut log = Log::<()>::new(Level::Info);
        let long = "ä".repeat(LONGEST);
        for _ in 0..2 * RECORDS {
            log.take(Instant::ZERO, &[report(Level::Info, &long)]);
        }
        assert!(log.bytes <= BYTES && log.records.len() == BYTES / LONGEST);
        for _ in 0..2 * RECORDS {
            log.take(Instant::ZERO, &[report(Level::Info, "")]);
        }
        assert_eq!((log.records.len(), log.bytes), (RECORDS, 0));
    }
}
