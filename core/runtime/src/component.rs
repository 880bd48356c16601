//! The form of every protocol core: a state machine without I/O.
//!
//! All of weft's protocols are written in this one form, so that the real driver and the simulator
//! run the very same code. A driver is a loop of four lines: wait for an input or the deadline, call
//! [`Component::handle`], carry out the outputs, repeat. If it needs a fifth kind of decision, that
//! decision belongs in the component.

use weft_base::{CounterGroup, Instant};

/// A state machine: inputs with the current time go in, outputs come out, nothing else happens.
///
/// Rules that implementations keep:
/// * The same inputs give the same outputs, byte for byte, in any build and on any machine; nothing
///   may depend on the iteration order of a hash table, on addresses in memory or on a global.
/// * Outputs are produced only inside `handle`, pushed in the order in which the world must act.
/// * Being called too early is harmless, and so is a tick when nothing is due.
/// * Broken input is counted or answered as the protocol says; it never panics.
pub trait Component {
    /// What the world tells it.
    type Input;
    /// What it asks of the world.
    type Output;

    /// Takes one input at time `now` and pushes what is to be done. `out` belongs to the caller and
    /// may hold earlier outputs.
    fn handle(&mut self, now: Instant, input: Self::Input, out: &mut Vec<Self::Output>);

    /// When the component must be called next at the latest; `None` if only inputs matter.
    fn deadline(&self) -> Option<Instant>;

    /// Whether there is background work: something too long for one event, done in slices.
    ///
    /// While this is true the driver hands out slices (see
    /// [`Event::Slice`](crate::Event::Slice)) whenever nothing else is waiting, and at least a
    /// minimum share when something always is. One slice should take about a millisecond.
    fn has_background_work(&self) -> bool {
        false
    }

    /// What it has counted, for whoever watches the node.
    fn counters(&self) -> Vec<CounterGroup> {
        Vec::new()
    }
}
