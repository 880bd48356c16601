//! Routes by messages from memory to a socket, and nothing else: what the kernel itself takes.
//!
//! Reference: rtnetlink(7).

use std::time::{Duration, Instant};

use weft_netlink::{MAIN_TABLE, RouteBatch, RouteChange, RouteSpace, RouteWriter};

/// The protocol that iproute2 calls static.
pub(super) const SPACE: RouteSpace = RouteSpace { is_ipv6: false, table: MAIN_TABLE, protocol: 4 };

/// The datagrams of these changes, of `most` each, or as many as fit.
pub(super) fn batches(mut changes: &[RouteChange], most: usize) -> Vec<RouteBatch> {
    let (mut batches, mut first) = (Vec::new(), 1u32);
    while !changes.is_empty() {
        let mut batch = RouteBatch::default();
        let count = batch.emit(first, &SPACE, &changes[..changes.len().min(most)]);
        first = first.wrapping_add(count as u32);
        changes = &changes[count..];
        batches.push(batch);
    }
    batches
}

/// Has the kernel carry out all of them; how long each took.
pub(super) fn carry_out(
    writer: &mut RouteWriter,
    batches: &[RouteBatch],
) -> Result<Vec<Duration>, String> {
    let one = |batch| {
        let begin = Instant::now();
        let refused = writer.carry_out(batch).map_err(|error| error.to_string())?;
        let taken = begin.elapsed();
        match refused.first() {
            Some((place, why)) => Err(format!("the kernel refuses change {place}: {why}")),
            None => Ok(taken),
        }
    };
    batches.iter().map(one).collect()
}
