//! The kernel alone: how long a route would wait that comes while the same table goes, if everything else took no time.
//!
//! The table is put into the kernel and taken back by messages from memory, as many in a datagram as the FEA sends: in the
//! order in which it was put there, and in that of weft's sweeps where it is another one. What comes meanwhile waits for the
//! datagram that the kernel is busy with; now and then one makes the kernel build a part of its table anew, which takes it
//! tens of milliseconds when the table is large.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use weft_netlink::{InterfaceAddress, RouteChange, RouteOperation, RouteTarget, RouteWriter};
use weft_routing::sweep_order;
use weft_xrl::Ipv4Net;

use super::super::bare_routes::{batches, carry_out};
use super::super::samples::Samples;
use super::network::within;
use super::scene::milliseconds;
use super::table;

const METRIC: u32 = 20;
/// As many as the FEA sends at a time.
const AT_A_TIME: usize = 192;

/// What the kernel makes of one order of the same deletions.
pub(super) struct Emptied {
    order: &'static str,
    /// How long all of them took.
    all: Duration,
    /// How long each route would wait of which one comes now and then, in milliseconds.
    waits: Samples,
}

impl Emptied {
    fn figures(&self) -> [f64; 4] {
        let [median, most, longest] = [0.5, 0.99, 1.0].map(|part| self.waits.quantile(part));
        [milliseconds(self.all), median, most, longest]
    }

    /// For people; `interval` is that of the routes.
    pub(super) fn line(&self, interval: Duration) -> String {
        let ([all, median, most, longest], order) = (self.figures(), self.order);
        let every = interval.as_millis();
        format!(
            "{order}: {all:.0} ms; a route every {every} ms would wait {median:.2} ms, 99 % up to {most:.1}, the longest {longest:.1}"
        )
    }

    pub(super) fn json(&self) -> Value {
        let [all, median, most, longest] = self.figures();
        json!({
            "order": self.order, "all": all, "median": median, "99 %": most, "longest": longest,
            "unit": "ms",
        })
    }
}

/// Empties the kernel's table in each order; a route would come in every `interval`.
pub(super) fn empty(count: usize, interval: Duration) -> Result<Vec<Emptied>, String> {
    let nets = table::nets(count);
    let emptied = |order, gone: &[InterfaceAddress]| {
        within(&[], || {
            let datagrams = |nets: &[InterfaceAddress], operation: RouteOperation| {
                let change = |net: &InterfaceAddress| RouteChange {
                    destination: *net,
                    metric: METRIC,
                    operation: operation.clone(),
                };
                batches(&nets.iter().map(change).collect::<Vec<_>>(), AT_A_TIME)
            };
            let additions = RouteOperation::Add(Arc::new(RouteTarget::Blackhole));
            let additions = datagrams(&nets, additions);
            let deletions = datagrams(gone, RouteOperation::Delete);
            let mut writer = RouteWriter::open().map_err(|error| error.to_string())?;
            carry_out(&mut writer, &additions)?;
            let taken = carry_out(&mut writer, &deletions)?;
            let waits = Samples::new(waits_for(&taken, interval));
            Ok(Emptied { order, all: taken.iter().sum(), waits })
        })
    };
    let mut all = vec![emptied("as they were put there", &nets)?];
    let destinations = nets.iter().map(destination).collect::<Result<Vec<_>, _>>()?;
    let order: Vec<_> = sweep_order(&destinations).collect();
    if !order.is_sorted() {
        let gaps: Vec<_> = order.into_iter().map(|place| nets[place]).collect();
        all.push(emptied("as weft's sweeps do", &gaps)?);
    }
    Ok(all)
}

/// A network of the table as a sweep knows it.
fn destination(net: &InterfaceAddress) -> Result<Ipv4Net, String> {
    match net.ip {
        IpAddr::V4(ip) => Ipv4Net::new(ip, net.prefix_length).map_err(|error| error.to_string()),
        IpAddr::V6(ip) => Err(format!("{ip} is no network of the benchmark's table of IPv4")),
    }
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
