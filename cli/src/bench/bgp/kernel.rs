//! The kernel alone: how long a route would wait that comes while the same table goes, if everything else took no time.
//!
//! The table is put into the kernel and taken back by messages from memory, as many in a datagram as the FEA sends. What
//! comes meanwhile waits for the datagram that the kernel is busy with; now and then one makes the kernel build a part of
//! its table anew, which takes it tens of milliseconds when the table is large.

use std::sync::Arc;
use std::time::Duration;

use weft_netlink::{RouteChange, RouteOperation, RouteTarget, RouteWriter};

use super::super::bare_routes::{batches, carry_out};
use super::super::samples::Samples;
use super::network::within;
use super::table;

const METRIC: u32 = 20;
/// As many as the FEA sends at a time.
const AT_A_TIME: usize = 192;

/// How long each of the routes would wait, in milliseconds, of which one comes in every `interval`.
pub(super) fn waits(count: usize, interval: Duration) -> Result<Samples, String> {
    within(&[], || {
        let nets = table::nets(count);
        let datagrams = |operation: RouteOperation| {
            let change = |net| RouteChange {
                destination: net,
                metric: METRIC,
                operation: operation.clone(),
            };
            batches(&nets.iter().copied().map(change).collect::<Vec<_>>(), AT_A_TIME)
        };
        let additions = datagrams(RouteOperation::Add(Arc::new(RouteTarget::Blackhole)));
        let deletions = datagrams(RouteOperation::Delete);
        let mut writer = RouteWriter::open().map_err(|error| error.to_string())?;
        carry_out(&mut writer, &additions)?;
        let datagrams = carry_out(&mut writer, &deletions)?;
        Ok(Samples::new(waits_for(&datagrams, interval)))
    })
}

/// How long what comes in every `interval` waits for the end of the datagram that is under way, in milliseconds.
fn waits_for(datagrams: &[Duration], interval: Duration) -> Vec<f64> {
    let (mut waits, mut end, mut next) = (Vec::new(), Duration::ZERO, Duration::ZERO);
    for datagram in datagrams {
        end += *datagram;
        while next < end {
            waits.push((end - next).as_secs_f64() * 1000.0);
            next += interval;
        }
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_waits_for_the_datagram_that_is_under_way() {
        let datagrams = [1, 12, 1, 1].map(Duration::from_millis);
        let waits = waits_for(&datagrams, Duration::from_millis(5));
        assert_eq!(waits, [1.0, 8.0, 3.0]);
        assert!(waits_for(&[], Duration::from_millis(5)).is_empty());
    }
}
