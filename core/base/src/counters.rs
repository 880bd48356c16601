//! Named counters: every drop has a reason, and every reason is a counter.
//!
//! A layer lists its reasons once with [`reasons!`](crate::reasons); the counter, its name in
//! `--json` output and its help text follow from the list, so that none can be forgotten.

use std::marker::PhantomData;

/// A closed list of things that are counted, usually made by [`reasons!`](crate::reasons).
pub trait Reason: Copy + 'static {
    /// Every reason, in order of [`Reason::index`].
    const ALL: &'static [Self];
    /// The place of this reason in [`Reason::ALL`].
    fn index(self) -> usize;
    /// Its name in outputs: lower-case words joined by hyphens.
    fn name(self) -> &'static str;
    /// One sentence for people.
    fn help(self) -> &'static str;
}

/// Makes an enum whose variants are counted. Each variant gives its name and a sentence.
///
/// ```
/// weft_base::reasons! {
///     /// Why a frame was dropped.
///     pub enum DropReason {
///         Short = "short", "the frame ends inside its header";
///         Version = "version", "the version is not one we speak";
///     }
/// }
/// # use weft_base::{Counters, Reason};
/// let mut drops = Counters::<DropReason>::new();
/// drops.add(DropReason::Short, 1);
/// assert_eq!(drops.nonzero().collect::<Vec<_>>(), [(DropReason::Short.name(), 1)]);
/// ```
#[macro_export]
macro_rules! reasons {
    ($(#[$doc:meta])* $vis:vis enum $name:ident {
        $($variant:ident = $text:literal, $help:literal;)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name { $(#[doc = $help] $variant,)+ }

        impl $crate::Reason for $name {
            const ALL: &'static [Self] = &[$(Self::$variant,)+];
            fn index(self) -> usize { self as usize }
            fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
            fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)+ }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str($crate::Reason::name(*self))
            }
        }
    };
}

/// One count per reason.
#[derive(Clone, Debug)]
pub struct Counters<R> {
    counts: Vec<u64>,
    reasons: PhantomData<R>,
}

impl<R: Reason> Counters<R> {
    /// All counts at zero.
    #[must_use]
    pub fn new() -> Self {
        Self { counts: vec![0; R::ALL.len()], reasons: PhantomData }
    }

    /// Counts `times` more of `reason`.
    pub fn add(&mut self, reason: R, times: u64) {
        self.counts[reason.index()] += times;
    }

    /// Counts what others have counted.
    pub fn include(&mut self, others: &Self) {
        self.counts.iter_mut().zip(&others.counts).for_each(|(count, other)| *count += other);
    }

    /// How often `reason` was counted.
    #[must_use]
    pub fn get(&self, reason: R) -> u64 {
        self.counts[reason.index()]
    }

    /// The sum over all reasons.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Names and counts of all reasons, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        R::ALL.iter().map(|reason| (reason.name(), self.get(*reason)))
    }

    /// Names and counts of the reasons that occurred.
    pub fn nonzero(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.iter().filter(|(_, count)| *count > 0)
    }
}

impl<R: Reason> Default for Counters<R> {
    fn default() -> Self {
        Self::new()
    }
}

/// Counters of one kind, as a component tells them to whoever watches the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterGroup {
    /// What is counted: lower-case words joined by hyphens, such as `drops`.
    pub name: &'static str,
    /// One sentence for people.
    pub help: &'static str,
    /// What kind of thing each count is of, such as `port`; empty if all are of the whole component.
    pub label: &'static str,
    /// The counts, those that are zero included.
    pub counts: Vec<Count>,
}

/// One count of a [`CounterGroup`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Of what, if the group has a label: the name of a port for example.
    pub of: String,
    /// The reason; empty if the group counts one thing only.
    pub reason: &'static str,
    /// One sentence on the reason for people; may be empty.
    pub help: &'static str,
    /// How often or how much since the process began.
    pub value: u64,
}

impl CounterGroup {
    /// A group whose counts are of something that `label` names.
    #[must_use]
    pub fn labelled(name: &'static str, help: &'static str, label: &'static str) -> Self {
        Self { name, help, label, counts: Vec::new() }
    }

    /// A group of the counts of a whole component.
    #[must_use]
    pub fn new<R: Reason>(name: &'static str, help: &'static str, counters: &Counters<R>) -> Self {
        let mut group = Self::labelled(name, help, "");
        group.add_all("", counters);
        group
    }

    /// Adds the counts of one thing, by reason.
    pub fn add_all<R: Reason>(&mut self, of: &str, counters: &Counters<R>) {
        self.counts.extend(R::ALL.iter().map(|reason| Count {
            of: of.to_owned(),
            reason: reason.name(),
            help: reason.help(),
            value: counters.get(*reason),
        }));
    }

    /// Adds the one count of one thing.
    pub fn add(&mut self, of: impl Into<String>, value: u64) {
        self.counts.push(Count { of: of.into(), reason: "", help: "", value });
    }
}
