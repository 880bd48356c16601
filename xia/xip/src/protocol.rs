//! What a routing protocol is to XIP: the other kind of part that a node is made of.
//!
//! Reference: Machado et al., "Linux XIA", §4.1 (no static dependencies between principals) and §4.2.1
//! (routing redirects).
//!
//! A principal says what XIDs of its type mean; a protocol finds ways to XIDs of any type. It does not know
//! which principals there are: it is told which XIDs are this node, talks with other nodes over ports of
//! its own, and asks for redirects ([`Output::Redirect`]). The node gives each to the principal of the
//! XID's type, now or when it is added, and takes all back when the protocol is removed. A principal keeps
//! what an operator has stated apart from them ([`Principal::learn`]).
//!
//! [`Principal::learn`]: crate::principal::Principal::learn

use serde_json::Value;
use weft_base::{CounterGroup, Instant};

use crate::Xid;
use crate::principal::{Input, Output};
use crate::words::WordError;

/// A routing protocol of XIA; see the module's text.
pub trait Protocol {
    /// Takes an input: the same that principals get.
    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>);

    /// These XIDs, and no others, are this node, in order. Told before anything else and whenever they
    /// change.
    fn set_locals(&mut self, now: Instant, locals: &[Xid], out: &mut Vec<Output>);

    /// The node ends, or the protocol is removed: the last thing it is told. Its neighbours may be told.
    fn stop(&mut self, now: Instant, out: &mut Vec<Output>) {
        let _ = (now, out);
    }

    /// When [`Input::Tick`] must come at the latest; `None` if never.
    fn deadline(&self) -> Option<Instant>;

    /// Adds or changes something: the words of one configuration statement or of one live command.
    /// Nothing is changed when an error is returned.
    ///
    /// # Errors
    /// Says which word is wrong and what would be right.
    fn set(&mut self, now: Instant, words: &[&str], out: &mut Vec<Output>)
    -> Result<(), WordError>;

    /// Removes what the same words would have set.
    ///
    /// # Errors
    /// Says which word is wrong, or that there is no such thing ([`WordError::absent`]).
    fn delete(
        &mut self,
        now: Instant,
        words: &[&str],
        out: &mut Vec<Output>,
    ) -> Result<(), WordError>;

    /// Neighbours, tables and counters for people and programs: a JSON object whose lists are sorted.
    fn show(&self) -> Value;

    /// The links of a tree of shortest paths from this node to the hosts `to`, each as the host where it begins and
    /// that where it ends, in order.
    ///
    /// # Errors
    /// Says which host cannot be reached, or that the protocol does not know the network's topology.
    fn tree(&self, to: &[Xid]) -> Result<Vec<(Xid, Xid)>, String> {
        let _ = to;
        Err("it does not know the topology of the network".to_owned())
    }

    /// What it has counted, under its name.
    fn counters(&self) -> Option<CounterGroup> {
        None
    }
}
