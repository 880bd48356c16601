//! Profile points: when routes pass the places of their way through a component.
//!
//! Reference: Handley et al., "Designing Extensible IP Router Software" (XORP), §8.2.
//!
//! A component lists its points once ([`reasons!`](weft_base::reasons)), marks routes where they pass, and has calls of
//! `profile/1.0` answered by [`Profile::answer`]. All points are off in the beginning; one that is off costs the test of
//! a bit.
//!
//! A component is told the time once for each event. That is too coarse for what happens within one, and so a
//! profile may be given a clock that it reads at each mark: the driver's, in a process of the kernel. In the simulator,
//! where computation takes no time, there is none, and marks have the time of their event. Nothing that a component does
//! depends on what is recorded.
//!
//! ```
//! use weft_base::Instant;
//! use weft_xrl::profile::Profile;
//!
//! weft_base::reasons! {
//!     /// Where routes pass.
//!     enum Point {
//!         Arrived = "arrived", "arriving here";
//!         Sent = "sent", "sent on";
//!     }
//! }
//!
//! let mut profile = Profile::new(None);
//! profile.begin(Instant::from_nanos(7));
//! profile.mark(Point::Sent, false, || unreachable!("it is off"));
//! ```

use std::collections::VecDeque;
use std::marker::PhantomData;

use ipnet::IpNet;
use weft_base::{Instant, Reason};

use crate::component::{Called, Encoded, Output};
use crate::error::XrlError;

pub use interface::{
    Clear, Disable, Enable, INTERFACE, Mark, Marks, MarksReply, Point, Points, PointsReply,
};

#[allow(unreachable_pub, dead_code, reason = "made from the interface file")]
mod interface {
    include!(concat!(env!("OUT_DIR"), "/profile.rs"));
}

/// Reads a clock.
pub type Clock = fn() -> Instant;

/// How many marks are kept, if nobody says, and at most.
const USUAL: u32 = 65_536;
const MOST: u32 = 1 << 20;
/// How many are told at once, if nobody says, and at most.
const PAGE: u32 = 1_000;
const LONGEST: u32 = 10_000;

/// The points `P` of a component, and what they have recorded; see the module's text.
#[derive(Debug)]
pub struct Profile<P> {
    clock: Option<Clock>,
    /// The time of the event that is handled.
    event: Instant,
    /// A bit for each point.
    on: u32,
    /// Oldest first, with the number of the first.
    kept: VecDeque<Kept>,
    first: u64,
    at_most: u32,
    /// How many were forgotten.
    lost: u64,
    points: PhantomData<P>,
}

/// A mark; its number follows from its place.
#[derive(Clone, Copy, Debug)]
struct Kept {
    time: Instant,
    net: IpNet,
    point: u8,
    gone: bool,
}

impl<P: Reason> Profile<P> {
    /// All points are off. Without a clock marks have the time of their event.
    #[must_use]
    pub fn new(clock: Option<Clock>) -> Self {
        const { assert!(P::ALL.len() <= u32::BITS as usize, "each point has a bit") };
        let (on, first, at_most, lost) = (0, 1, USUAL, 0);
        let (event, kept) = (Instant::ZERO, VecDeque::new());
        Self { clock, event, on, kept, first, at_most, lost, points: PhantomData }
    }

    /// Something happens now: the beginning of each call of the component.
    pub fn begin(&mut self, now: Instant) {
        self.event = now;
    }

    /// Whether a point is on: for whoever would have to do something to know what passes.
    #[must_use]
    #[inline]
    pub fn is_on(&self, point: P) -> bool {
        self.on & 1 << point.index() != 0
    }

    /// A route to `net` passes a point at this moment, or goes there.
    #[inline]
    pub fn mark(&mut self, point: P, gone: bool, net: impl FnOnce() -> IpNet) {
        if self.is_on(point) {
            self.record(self.clock.map_or(self.event, |clock| clock()), point, gone, net());
        }
    }

    /// The same, at the time of the event that is handled: for what came with it.
    #[inline]
    pub fn mark_event(&mut self, point: P, gone: bool, net: impl FnOnce() -> IpNet) {
        if self.is_on(point) {
            self.record(self.event, point, gone, net());
        }
    }

    #[cold]
    fn record(&mut self, time: Instant, point: P, gone: bool, net: IpNet) {
        self.forget_down_to(self.at_most - 1);
        // There are no more points than bits in a number.
        self.kept.push_back(Kept { time, net, point: point.index() as u8, gone });
    }

    /// Forgets the oldest marks until no more than so many are left.
    fn forget_down_to(&mut self, most: u32) {
        let over = self.kept.len().saturating_sub(most as usize);
        self.kept.drain(..over);
        self.first += over as u64;
        self.lost += over as u64;
    }

    /// Answers a call of `profile/1.0`.
    pub fn answer(&mut self, mut called: Called) -> Output {
        let result = called.read().and_then(|call| self.asked(call));
        Output::Answer { id: called.id, result }
    }

    fn asked(&mut self, call: interface::Call) -> Result<Encoded, XrlError> {
        use interface::Call;
        Ok(match call {
            Call::Points(_) => Encoded::new(self.points()),
            Call::Enable(Enable { points, at_most }) => {
                self.enable(&points, at_most)?;
                Encoded::default()
            }
            Call::Disable(Disable { points }) => {
                self.on &= !bits::<P>(&points)?;
                Encoded::default()
            }
            Call::Marks(Marks { after, at_most }) => {
                let at_most = at_most.unwrap_or(PAGE).clamp(1, LONGEST);
                Encoded::new(self.marks(after.unwrap_or(0), at_most))
            }
            Call::Clear(_) => {
                self.first += self.kept.len() as u64;
                self.lost = 0;
                self.kept = VecDeque::new();
                Encoded::default()
            }
        })
    }

    /// Switches points on by their names, all if there are none; `at_most` says how many marks are kept, from 1 to
    /// 1,048,576.
    ///
    /// # Errors
    /// There is no such point, or so many cannot be kept; then nothing is different.
    pub fn enable(&mut self, points: &[String], at_most: Option<u32>) -> Result<(), XrlError> {
        let bits = bits::<P>(points)?;
        let at_most = at_most.unwrap_or(self.at_most);
        if !(1..=MOST).contains(&at_most) {
            let note = format!("{at_most} marks cannot be kept: say 1 to {MOST}");
            return Err(XrlError::bad_args(note));
        }
        self.on |= bits;
        self.at_most = at_most;
        self.forget_down_to(at_most);
        Ok(())
    }

    fn points(&self) -> PointsReply {
        let point = |one: &P| Point {
            name: one.name().to_owned(),
            help: one.help().to_owned(),
            enabled: self.is_on(*one),
        };
        PointsReply {
            points: P::ALL.iter().map(point).collect(),
            // There are no more than can be asked for.
            kept: self.kept.len() as u32,
            lost: self.lost,
        }
    }

    /// The oldest marks with a greater number than `after`, so many at most.
    #[must_use]
    pub fn marks(&self, after: u64, at_most: u32) -> MarksReply {
        let from = after.saturating_add(1).saturating_sub(self.first);
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let kept = self.kept.iter().enumerate().skip(from).take(at_most as usize);
        let mark = |(place, one): (usize, &Kept)| Mark {
            number: self.first + place as u64,
            point: one.point.into(),
            time: one.time.as_nanos(),
            net: one.net,
            gone: one.gone,
        };
        MarksReply { marks: kept.map(mark).collect() }
    }
}

impl<P: Reason> Default for Profile<P> {
    fn default() -> Self {
        Self::new(None)
    }
}

/// The bits of these points; of all if there are none.
fn bits<P: Reason>(names: &[String]) -> Result<u32, XrlError> {
    let bit = |point: &P| 1 << point.index();
    if names.is_empty() {
        return Ok(P::ALL.iter().map(bit).sum());
    }
    names.iter().try_fold(0, |bits, name| {
        let point = P::ALL.iter().find(|point| point.name() == name);
        point.map(|point| bits | bit(point)).ok_or_else(|| {
            let all: Vec<_> = P::ALL.iter().map(|point| point.name()).collect();
            let (name, all) = (name.escape_debug(), all.join(", "));
            XrlError::bad_args(format!("there is no point `{name}`; there are {all}"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::interface::Call;
    use super::*;

    weft_base::reasons! {
        /// Where routes pass.
        enum Place {
            In = "in", "coming in";
            Out = "out", "going out";
        }
    }

    fn net(number: u8) -> IpNet {
        IpNet::new_assert([10, number, 0, 0].into(), 16)
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn enable(profile: &mut Profile<Place>, points: &[&str], at_most: Option<u32>) {
        profile.enable(&names(points), at_most).unwrap();
    }

    fn told(profile: &Profile<Place>, after: u64) -> Vec<(u64, u32, u64, IpNet, bool)> {
        let marks = profile.marks(after, 100).marks;
        marks.into_iter().map(|one| (one.number, one.point, one.time, one.net, one.gone)).collect()
    }

    #[test]
    fn a_point_that_is_off_records_nothing_and_asks_for_nothing() {
        let mut profile = Profile::new(None);
        profile.mark(Place::In, false, || unreachable!());
        enable(&mut profile, &["in"], None);
        profile.mark(Place::Out, false, || unreachable!());
        profile.begin(Instant::from_nanos(5));
        profile.mark(Place::In, true, || net(1));
        assert_eq!(told(&profile, 0), [(1, 0, 5, net(1), true)]);
        profile.asked(Call::Disable(Disable { points: Vec::new() })).unwrap();
        profile.mark(Place::In, true, || unreachable!());
        assert_eq!(profile.points().points.iter().filter(|one| one.enabled).count(), 0);
        assert_eq!(profile.points().kept, 1, "what was recorded stays");
    }

    #[test]
    fn marks_have_the_time_of_the_clock_and_arrivals_that_of_the_event() {
        let mut profile = Profile::new(Some(|| Instant::from_nanos(99)));
        enable(&mut profile, &[], None);
        profile.begin(Instant::from_nanos(7));
        profile.mark_event(Place::In, false, || net(1));
        profile.mark(Place::Out, false, || net(1));
        assert_eq!(told(&profile, 0), [(1, 0, 7, net(1), false), (2, 1, 99, net(1), false)]);
    }

    #[test]
    fn the_oldest_is_forgotten_and_counted() {
        let mut profile = Profile::new(None);
        enable(&mut profile, &[], Some(3));
        (1..=5).for_each(|number| profile.mark(Place::In, false, || net(number)));
        let numbers = |profile: &Profile<Place>, after| -> Vec<u64> {
            told(profile, after).into_iter().map(|one| one.0).collect()
        };
        assert_eq!((numbers(&profile, 0), profile.points().lost), (vec![3, 4, 5], 2));
        assert_eq!(numbers(&profile, 4), [5]);
        assert_eq!(numbers(&profile, 5), [0; 0]);
        assert_eq!(numbers(&profile, u64::MAX), [0; 0]);
        enable(&mut profile, &[], Some(1));
        assert_eq!((numbers(&profile, 0), profile.points().lost), (vec![5], 4));
        profile.asked(Call::Clear(Clear)).unwrap();
        profile.mark(Place::In, false, || net(6));
        assert_eq!((numbers(&profile, 0), profile.points().lost), (vec![6], 0));
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_changes_nothing() {
        let mut profile = Profile::<Place>::new(None);
        let points = names(&["in", "inn"]);
        let wrong = Call::Enable(Enable { points: points.clone(), at_most: None });
        let error = profile.asked(wrong).unwrap_err().to_string();
        assert!(error.contains("`inn`; there are in, out"), "{error}");
        assert!(profile.asked(Call::Disable(Disable { points })).is_err());
        for at_most in [0, MOST + 1] {
            let wrong = Enable { points: Vec::new(), at_most: Some(at_most) };
            assert!(profile.asked(Call::Enable(wrong)).is_err());
        }
        assert!(!profile.is_on(Place::In));
    }
}
