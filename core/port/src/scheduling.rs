//! How a thread that moves packets shares the processors with others.
//!
//! A thread with a priority of SCHED_FIFO runs before all others that have none, until it waits. So that one that
//! never waits leaves something to the rest of the machine, the kernel gives such threads at most
//! `kernel.sched_rt_runtime_us` of each `kernel.sched_rt_period_us`, 95 % unless somebody says otherwise. Where
//! that limit is switched off, such a priority is refused here.
//!
//! Reference: sched(7), sched_setattr(2), sched_setaffinity(2).

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::str::FromStr;

use rustix::process::Pid;
use rustix::thread::{CapabilitySet, CpuSet, capabilities, sched_getaffinity, sched_setaffinity};

use crate::sys::scheduling::{Attributes, attributes, set_attributes};

/// Says how much of the processors threads of real time get; -1 for all.
const LIMIT: &str = "/proc/sys/kernel/sched_rt_runtime_us";
/// `SCHED_FLAG_RESET_ON_FORK`, which is not for others to change.
const RESET_ON_FORK: u64 = 1;
const FIFO: u32 = libc::SCHED_FIFO.cast_unsigned();
const NORMAL: u32 = libc::SCHED_OTHER.cast_unsigned();

/// Which threads go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// A share of the processors (SCHED_OTHER) by niceness, -20 to 19: 0 is usual, less is more.
    Nice(i8),
    /// Before all threads with a share and those with a lower number (SCHED_FIFO), 1 to 99.
    Fifo(u8),
}

impl Priority {
    /// Reads the words `nice N` or `fifo N`.
    ///
    /// # Errors
    /// A sentence that says what the words are.
    pub fn of_words(kind: &str, number: &str) -> Result<Self, String> {
        let wrong = || {
            let (kind, number) = (kind.escape_debug(), number.escape_debug());
            format!(
                "`{kind} {number}` is no priority: say `nice N` with -20 to 19, or `fifo N` with 1 to 99"
            )
        };
        match kind {
            "nice" => {
                let nice = number.parse().ok().filter(|nice| (-20..=19).contains(nice));
                nice.map(Self::Nice).ok_or_else(wrong)
            }
            "fifo" => {
                let priority = number.parse().ok().filter(|number| (1..=99).contains(number));
                priority.map(Self::Fifo).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nice(nice) => write!(f, "nice {nice}"),
            Self::Fifo(priority) => write!(f, "fifo {priority}"),
        }
    }
}

impl FromStr for Priority {
    type Err = String;

    /// Reads what [`fmt::Display`] writes.
    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, number) = text.split_once(' ').unwrap_or((text, ""));
        Self::of_words(kind, number)
    }
}

/// What is wanted of a thread, or what it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// Wanted: nothing leaves it as it was. Had: nothing is a policy that is not of those here.
    pub priority: Option<Priority>,
    /// The processors on which it may run. Wanted: none leaves them as they were.
    pub processors: BTreeSet<u16>,
}

impl Scheduling {
    /// How a thread is scheduled.
    ///
    /// # Errors
    /// Those of sched_getattr(2): `ESRCH` if there is no such thread.
    pub fn of(thread: u32) -> io::Result<Self> {
        let found = attributes(thread)?;
        let priority = match found.policy {
            NORMAL => i8::try_from(found.nice).ok().map(Priority::Nice),
            FIFO => u8::try_from(found.priority).ok().map(Priority::Fifo),
            _ => None,
        };
        let set = sched_getaffinity(pid(thread)?)?;
        let most = u16::try_from(CpuSet::MAX_CPU).unwrap_or(u16::MAX);
        let processors = (0..most).filter(|number| set.is_set(usize::from(*number))).collect();
        Ok(Self { priority, processors })
    }
}

/// How a thread was scheduled.
#[derive(Clone, Copy, Debug)]
pub struct Scheduled {
    attributes: Attributes,
    processors: CpuSet,
}

impl Scheduled {
    /// Notes how a thread is scheduled.
    ///
    /// # Errors
    /// Those of sched_getattr(2).
    pub fn note(thread: u32) -> io::Result<Self> {
        Ok(Self { attributes: attributes(thread)?, processors: sched_getaffinity(pid(thread)?)? })
    }

    /// Gives the thread of which this was noted what is wanted, and what was noted where nothing is wanted. Changes
    /// nothing that is so already.
    ///
    /// # Errors
    /// Sentences: what the system refused, why, and how to mend it.
    pub fn apply(&self, thread: u32, wanted: &Scheduling) -> Vec<String> {
        let mut refused = Vec::new();
        refused.extend(self.apply_priority(thread, wanted.priority).err());
        refused.extend(self.apply_processors(thread, &wanted.processors).err());
        refused
    }

    fn apply_priority(&self, thread: u32, wanted: Option<Priority>) -> Result<(), String> {
        let flags = self.attributes.flags & RESET_ON_FORK;
        let attributes = match wanted {
            None => self.attributes,
            Some(Priority::Nice(nice)) => {
                Attributes { policy: NORMAL, nice: nice.into(), flags, ..Attributes::default() }
            }
            Some(Priority::Fifo(priority)) => {
                let priority = priority.into();
                Attributes { policy: FIFO, priority, flags, ..Attributes::default() }
            }
        };
        let what = wanted.map_or("its earlier priority".to_owned(), |wanted| format!("`{wanted}`"));
        let failed = |why: String| format!("{what} cannot be given to thread {thread}: {why}");
        let now = crate::sys::scheduling::attributes(thread).map_err(|e| failed(e.to_string()))?;
        let same = |one: &Attributes| (one.policy, one.nice, one.priority);
        if same(&now) == same(&attributes) {
            return Ok(());
        }
        let real_time = attributes.policy == FIFO;
        if real_time && is_without_limit() {
            return Err(failed(
                "threads of real time may take all of the processors here: keep something for others with \
                 `sysctl kernel.sched_rt_runtime_us=950000`"
                    .to_owned(),
            ));
        }
        set_attributes(thread, attributes).map_err(|error| failed(explain(&error, real_time)))
    }

    fn apply_processors(&self, thread: u32, wanted: &BTreeSet<u16>) -> Result<(), String> {
        let mut set = self.processors;
        if !wanted.is_empty() {
            set.clear();
            wanted
                .iter()
                .filter(|number| usize::from(**number) < CpuSet::MAX_CPU)
                .for_each(|number| set.set(usize::from(*number)));
        }
        let numbers: Vec<_> = wanted.iter().map(u16::to_string).collect();
        let failed = |error: io::Error| {
            let why = match error.raw_os_error() {
                Some(libc::EINVAL) => {
                    "this machine has none of them, or the control group of the thread has not: `nproc --all` \
                     tells how many there are, from 0 on"
                        .to_owned()
                }
                _ => explain(&error, false),
            };
            let numbers = numbers.join(", ");
            format!("thread {thread} cannot be held on the processors {numbers}: {why}")
        };
        let thread = pid(thread).map_err(failed)?;
        let now = sched_getaffinity(thread).map_err(|error| failed(error.into()))?;
        match now == set {
            true => Ok(()),
            false => sched_setaffinity(thread, &set).map_err(|error| failed(error.into())),
        }
    }
}

fn pid(thread: u32) -> io::Result<Option<Pid>> {
    let none = || io::Error::from_raw_os_error(libc::ESRCH);
    if thread == 0 {
        return Ok(None);
    }
    let thread = i32::try_from(thread).ok().and_then(Pid::from_raw);
    thread.map(Some).ok_or_else(none)
}

/// Whether nothing of the processors is kept for threads without real time.
fn is_without_limit() -> bool {
    std::fs::read_to_string(LIMIT).is_ok_and(|text| text.trim() == "-1")
}

fn explain(error: &io::Error, real_time: bool) -> String {
    let may = capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_NICE));
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) if !may => {
            "it needs the capability CAP_SYS_NICE: run as root, or grant it".to_owned()
        }
        Some(libc::EPERM) if real_time => {
            "its control group gives no time to threads of real time (CONFIG_RT_GROUP_SCHED): boot with \
             `rt_group_sched=0`, or give the group some (`cpu.rt_runtime_us`)"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::privileged;

    #[test]
    fn words_of_priorities_are_read_and_written() {
        for (text, priority) in [
            ("nice -20", Priority::Nice(-20)),
            ("nice 19", Priority::Nice(19)),
            ("fifo 1", Priority::Fifo(1)),
            ("fifo 99", Priority::Fifo(99)),
        ] {
            assert_eq!(text.parse(), Ok(priority));
            assert_eq!(priority.to_string(), text);
        }
        for text in ["nice", "nice 20", "nice -21", "fifo 0", "fifo 100", "fifo", "idle 1", ""] {
            assert!(text.parse::<Priority>().unwrap_err().contains("say `nice N`"), "{text}");
        }
    }

    #[test]
    fn a_thread_becomes_what_is_wanted_and_again_what_it_was() {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let before = Scheduling::of(thread).unwrap();
        let noted = Scheduled::note(thread).unwrap();
        // Everybody may be nicer and hold still.
        let first = *before.processors.first().unwrap();
        let wanted =
            Scheduling { priority: Some(Priority::Nice(19)), processors: BTreeSet::from([first]) };
        assert!(noted.apply(thread, &wanted).is_empty());
        assert_eq!(Scheduling::of(thread).unwrap(), wanted);
        if !privileged() {
            return;
        }
        assert!(noted.apply(thread, &Scheduling::default()).is_empty());
        assert_eq!(Scheduling::of(thread).unwrap(), before);
        let fifo = Scheduling { priority: Some(Priority::Fifo(1)), ..Scheduling::default() };
        // A control group may have no time for it.
        match noted.apply(thread, &fifo).as_slice() {
            [] => assert_eq!(Scheduling::of(thread).unwrap().priority, fifo.priority),
            [refused] => assert!(refused.contains("rt_group_sched"), "{refused}"),
            more => panic!("{more:?}"),
        }
        assert!(noted.apply(thread, &Scheduling::default()).is_empty());
        assert_eq!(Scheduling::of(thread).unwrap(), before);
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_and_why() {
        let noted = Scheduled::note(0).unwrap();
        let wanted = Scheduling { processors: BTreeSet::from([1023]), ..Scheduling::default() };
        let refused = noted.apply(0, &wanted);
        assert!(refused[0].contains("1023") && refused[0].contains("nproc"), "{refused:?}");
        let gone = noted.apply(u32::MAX >> 1, &Scheduling::default());
        assert_eq!(gone.len(), 2, "{gone:?}");
        assert!(Scheduling::of(u32::MAX).is_err());
    }

    #[test]
    fn without_privileges_a_higher_priority_needs_a_capability() {
        if !privileged() {
            return;
        }
        // Capabilities are a thread's own.
        let refused = std::thread::spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective -= CapabilitySet::SYS_NICE;
            rustix::thread::set_capabilities(None, sets).unwrap();
            let priority = Some(Priority::Fifo(1));
            let wanted = Scheduling { priority, ..Scheduling::default() };
            Scheduled::note(0).unwrap().apply(0, &wanted)
        });
        let refused = refused.join().unwrap();
        assert!(refused[0].contains("CAP_SYS_NICE"), "{refused:?}");
    }
}
