//! An emulated link, one direction: rate, queue, delay, jitter, loss, duplication and reordering.
//!
//! [`LinkModel`] is pure: it is told when a packet is offered and answers when which packets come out
//! at the other end. The simulator and the user-space link on real interfaces run the same model.
//!
//! A packet passes these stages in order:
//!
//! 1. **Queue** (only if there is a rate): every packet whose last bit has not left yet occupies it,
//!    the one being sent included. A packet that does not fit is dropped at the tail; an empty queue
//!    takes any packet.
//! 2. **Rate**: the packet's bits, plus [`LinkConfig::overhead`], leave one after another. The
//!    arithmetic is exact: fractions of a nanosecond are carried from packet to packet, and a
//!    packet is out at the first whole nanosecond that is not before its last bit.
//! 3. **Wire**: here it may be lost (it has used its share of the rate), and a packet that is not
//!    lost may be duplicated: both copies arrive one after the other at the same time.
//! 4. **Delay** plus a uniform jitter. Jitter by itself never reorders: a packet is never delivered
//!    before one that was offered earlier. A *reordered* packet skips the delay and so overtakes the
//!    packets that are on the wire.
//!
//! Each random decision draws from a generator of its own, and only if its probability is neither
//! zero nor one: changing the loss of a link does not change which packets are duplicated.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::time::Duration;

use weft_base::{Counters, Instant, Packet, Random};

/// Certainty, in the parts per billion in which [`LinkConfig`] states probabilities.
pub const BILLION: u32 = 1_000_000_000;

/// What each Ethernet frame occupies on a cable besides the bytes software sees: preamble and start
/// delimiter (8), frame check sequence (4), gap (12). Reference: IEEE 802.3-2018 §3.1.1, §4.4.2.
pub const ETHERNET_OVERHEAD: u32 = 24;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// The properties of one direction of a link. The default is a perfect wire: no rate limit, no
/// delay, no fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Bits per second; `None` means that serialisation takes no time.
    pub rate: Option<NonZeroU64>,
    /// Bytes that the rate counts for each packet besides its own. Zero agrees with the shapers of
    /// Linux, which count the frame with its Ethernet header; [`ETHERNET_OVERHEAD`] with a cable.
    pub overhead: u32,
    /// Propagation delay.
    pub delay: Duration,
    /// The largest extra delay; each packet's is uniform between zero and this.
    pub jitter: Duration,
    /// How many of a billion packets are lost on the wire.
    pub loss: u32,
    /// How many of a billion packets that are not lost arrive twice.
    pub duplicate: u32,
    /// How many of a billion packets skip delay and jitter.
    pub reorder: u32,
    /// How many packets may wait for their turn, the one being sent included.
    pub queue_packets: usize,
    /// How many bytes may wait for their turn, the packet being sent included, without `overhead`.
    pub queue_bytes: usize,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            rate: None,
            overhead: 0,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            loss: 0,
            duplicate: 0,
            reorder: 0,
            queue_packets: 1000,
            queue_bytes: usize::MAX,
        }
    }
}

weft_base::reasons! {
    /// What a [`LinkModel`] counts. At all times
    /// `delivered = offered - queue-full - lost + duplicated`.
    pub enum LinkCount {
        Offered = "offered", "packets given to the link";
        QueueFull = "queue-full", "dropped because the queue had no room";
        Lost = "lost", "lost on the wire by the configured probability";
        Duplicated = "duplicated", "extra copies made on the wire";
        Reordered = "reordered", "packets that skipped the delay";
        Delivered = "delivered", "packets scheduled for delivery, extra copies included";
    }
}

/// One direction of an emulated link; see the module's description.
#[derive(Debug)]
pub struct LinkModel {
    config: LinkConfig,
    faults: Faults,
    /// When the last bit of everything accepted so far is out.
    busy_until: ExactTime,
    /// For each packet in the queue: when it is out, and its bytes.
    queue: VecDeque<(Instant, usize)>,
    queued_bytes: usize,
    /// The latest delivery of a packet that was not reordered.
    last_delivery: Instant,
    /// The latest time seen; a clock that steps back is held here.
    now: Instant,
    counters: Counters<LinkCount>,
}

/// One generator per decision.
#[derive(Debug)]
struct Faults {
    loss: Random,
    duplicate: Random,
    reorder: Random,
    jitter: Random,
}

/// A point in time as whole nanoseconds plus `fraction / rate` of one.
#[derive(Clone, Copy, Debug, Default)]
struct ExactTime {
    nanos: u64,
    fraction: u64,
}

impl ExactTime {
    /// The first whole nanosecond that is not before this.
    fn ceil(self) -> Instant {
        Instant::from_nanos(self.nanos.saturating_add(u64::from(self.fraction > 0)))
    }

    /// This time plus what `bytes` need at `rate` bits per second.
    fn plus(self, bytes: u64, rate: NonZeroU64) -> Self {
        let rate = u128::from(rate.get());
        let total = u128::from(bytes) * 8 * NANOS_PER_SECOND + u128::from(self.fraction);
        let nanos = u64::try_from(total / rate).unwrap_or(u64::MAX);
        let fraction = u64::try_from(total % rate).expect("a remainder is below the 64-bit rate");
        Self { nanos: self.nanos.saturating_add(nanos), fraction }
    }
}

impl LinkModel {
    /// A link that is idle, whose faults follow from `random`.
    #[must_use]
    pub fn new(config: LinkConfig, random: &Random) -> Self {
        let faults = Faults {
            loss: random.fork("loss"),
            duplicate: random.fork("duplicate"),
            reorder: random.fork("reorder"),
            jitter: random.fork("jitter"),
        };
        Self {
            config,
            faults,
            busy_until: ExactTime::default(),
            queue: VecDeque::new(),
            queued_bytes: 0,
            last_delivery: Instant::ZERO,
            now: Instant::ZERO,
            counters: Counters::new(),
        }
    }

    /// Its properties.
    #[must_use]
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Changes its properties for the packets offered from now on. Packets accepted before keep
    /// their times, and later ones do not overtake them (unless reordered).
    pub fn set_config(&mut self, config: LinkConfig) {
        // The fraction counts in units of the old rate; less than a nanosecond is rounded up.
        self.busy_until = ExactTime { nanos: self.busy_until.ceil().as_nanos(), fraction: 0 };
        self.config = config;
    }

    /// What happened to the packets so far.
    #[must_use]
    pub fn counters(&self) -> &Counters<LinkCount> {
        &self.counters
    }

    /// Packets and bytes whose last bit has not left at `now`.
    pub fn backlog(&mut self, now: Instant) -> (usize, usize) {
        self.advance(now);
        (self.queue.len(), self.queued_bytes)
    }

    /// Offers `packet` at time `now` and pushes what comes out at the other end, and when: nothing,
    /// the packet, or the packet and a copy of it. Deliveries of one call are in order of time;
    /// those of different calls are, too, unless a packet was reordered.
    pub fn offer(&mut self, now: Instant, packet: Packet, out: &mut Vec<(Instant, Packet)>) {
        self.advance(now);
        self.counters.add(LinkCount::Offered, 1);
        let Some(sent) = self.serialise(packet.len()) else {
            self.counters.add(LinkCount::QueueFull, 1);
            return;
        };
        if happens(&mut self.faults.loss, self.config.loss) {
            self.counters.add(LinkCount::Lost, 1);
            return;
        }
        let at = self.arrival(sent);
        let copy =
            happens(&mut self.faults.duplicate, self.config.duplicate).then(|| packet.duplicate());
        out.push((at, packet));
        self.counters.add(LinkCount::Delivered, 1);
        if let Some(copy) = copy {
            out.push((at, copy));
            self.counters.add(LinkCount::Duplicated, 1);
            self.counters.add(LinkCount::Delivered, 1);
        }
    }

    /// Moves the model's clock to `now` and takes packets that are out off the queue.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        while let Some((_, bytes)) = self.queue.pop_front_if(|(out, _)| *out <= self.now) {
            self.queued_bytes -= bytes;
        }
    }

    /// When a packet of `bytes` is out; `None` if the queue has no room for it.
    fn serialise(&mut self, bytes: usize) -> Option<Instant> {
        let Some(rate) = self.config.rate else { return Some(self.now) };
        let fits = self.queue.len() < self.config.queue_packets
            && bytes <= self.config.queue_bytes.saturating_sub(self.queued_bytes);
        if !fits && !self.queue.is_empty() {
            return None;
        }
        if self.busy_until.ceil() <= self.now {
            self.busy_until = ExactTime { nanos: self.now.as_nanos(), fraction: 0 };
        }
        let on_wire = (bytes as u64).saturating_add(u64::from(self.config.overhead));
        self.busy_until = self.busy_until.plus(on_wire, rate);
        let out = self.busy_until.ceil();
        self.queue.push_back((out, bytes));
        self.queued_bytes += bytes;
        Some(out)
    }

    /// When a packet that left at `sent` arrives.
    fn arrival(&mut self, sent: Instant) -> Instant {
        if happens(&mut self.faults.reorder, self.config.reorder) {
            self.counters.add(LinkCount::Reordered, 1);
            return sent;
        }
        let spread = u64::try_from(self.config.jitter.as_nanos()).unwrap_or(u64::MAX);
        let jitter = match spread {
            0 => 0,
            spread => self.faults.jitter.below(spread.saturating_add(1)),
        };
        let at = sent + self.config.delay + Duration::from_nanos(jitter);
        self.last_delivery = self.last_delivery.max(at);
        self.last_delivery
    }
}

/// Whether something of probability `per_billion` happens now.
fn happens(random: &mut Random, per_billion: u32) -> bool {
    per_billion >= BILLION || per_billion > 0 && random.chance(per_billion.into(), BILLION.into())
}

#[cfg(test)]
mod tests;
