//! The bare limit: messages from memory to a socket, and what the kernel has read from one.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use weft_netlink::{
    InterfaceAddress, RouteChange, RouteDump, RouteOperation, RouteTarget, RouteWay, RouteWriter,
    RoutesTold,
};

use super::super::bare_routes::{SPACE, batches, carry_out};
use super::super::xip_forward::prefixes::Prefix;
use super::{GATEWAYS, INTERFACE, Measured, node};

const METRIC: u32 = 40;

pub(super) fn measure(prefixes: &[Prefix]) -> Result<Measured, String> {
    let targets: Vec<_> = (0..GATEWAYS)
        .map(|number| {
            let gateway = Ipv4Addr::new(192, 0, 2, 2 + number as u8);
            let gateway = Some(IpAddr::V4(gateway));
            let way = RouteWay { gateway, interface: INTERFACE, weight: 1 };
            Arc::new(RouteTarget::ways(vec![way]))
        })
        .collect();
    let change = |prefix: &Prefix, operation| RouteChange {
        destination: InterfaceAddress { ip: prefix.address.into(), prefix_length: prefix.length },
        metric: METRIC,
        operation,
    };
    let add = |(place, prefix): (usize, &Prefix)| {
        change(prefix, RouteOperation::Add(Arc::clone(&targets[place % GATEWAYS])))
    };
    let delete = |prefix: &Prefix| change(prefix, RouteOperation::Delete);
    let additions = batches(&prefixes.iter().enumerate().map(add).collect::<Vec<_>>(), usize::MAX);
    let deletions = batches(&prefixes.iter().map(delete).collect::<Vec<_>>(), usize::MAX);
    let mut writer = RouteWriter::open().map_err(|error| error.to_string())?;
    let into = carry_out(&mut writer, &additions)?.iter().sum();
    let begin = Instant::now();
    let count = read_all()?;
    let anew = begin.elapsed();
    if count != prefixes.len() {
        return Err(format!("the kernel has {count} routes, not {}", prefixes.len()));
    }
    let out = carry_out(&mut writer, &deletions)?.iter().sum();
    Ok(Measured { into, out, anew, memory: node::idle_memory()? })
}

/// How many routes the kernel tells of.
fn read_all() -> Result<usize, String> {
    let mut dump = RouteDump::open(SPACE).map_err(|error| error.to_string())?;
    let (mut count, mut routes) = (0, Vec::new());
    loop {
        let mut fds = [PollFd::from_borrowed_fd(dump.fd(), PollFlags::IN)];
        poll(&mut fds, None).map_err(|error| error.to_string())?;
        let told = dump.read(&mut routes).map_err(|error| error.to_string())?;
        count += routes.drain(..).count();
        match told {
            RoutesTold::More => {}
            RoutesTold::Again => count = 0,
            RoutesTold::All => return Ok(count),
        }
    }
}
