//! The reflector: tells each peer the bytes of UPDATEs that it has read from any other one, and the kernel of the one
//! route in them. It is what the speakers, their connections and the kernel take by themselves.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use weft_bgp::wire::{Context, Cutter, MessageType, Neighbour, NextHop, Open, Update, keepalive};
use weft_netlink::{
    InterfaceAddress, MAIN_TABLE, RouteBatch, RouteChange, RouteOperation, RouteSpace, RouteTarget,
    RouteWay, RouteWriter,
};
use weft_routing::Prefix;

use super::router::ROUTER_AS;
use crate::output::Outcome;

/// Of the protocol that iproute2 calls static.
const SPACE: RouteSpace = RouteSpace { is_ipv6: false, table: MAIN_TABLE, protocol: 4 };
const METRIC: u32 = 40;
const HOLD_TIME: u16 = 180;

/// A peer.
struct Peer {
    socket: TcpStream,
    cutter: Cutter,
}

/// Reflects until it is ended.
pub(super) fn run() -> Outcome {
    let text = |error: std::io::Error| error.to_string();
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 179)).map_err(text)?;
    let mut writer = RouteWriter::open().map_err(text)?;
    let (mut peers, mut chunk) = (Vec::<Peer>::new(), vec![0; 1 << 16]);
    loop {
        let mut fds = vec![PollFd::new(&listener, PollFlags::IN)];
        fds.extend(
            peers.iter().map(|peer| PollFd::from_borrowed_fd(peer.socket.as_fd(), PollFlags::IN)),
        );
        poll(&mut fds, None).map_err(|errno| errno.to_string())?;
        let ready: Vec<_> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        for place in (0..peers.len()).rev().filter(|place| ready[place + 1]) {
            let length = peers[place].socket.read(&mut chunk).unwrap_or(0);
            if length == 0 {
                peers.swap_remove(place);
                continue;
            }
            let mut updates = Vec::new();
            peers[place].take(&chunk[..length], &mut writer, &mut updates)?;
            let others = peers.iter_mut().enumerate().filter(|(other, _)| *other != place);
            // Whoever is gone is noticed when it is read from.
            others.for_each(|(_, other)| drop(other.socket.write_all(&updates)));
        }
        if ready[0] {
            let (socket, _) = listener.accept().map_err(text)?;
            socket.set_nodelay(true).map_err(text)?;
            peers.push(Peer { socket, cutter: Cutter::new() });
        }
    }
}

impl Peer {
    /// Answers, puts routes into the kernel, and appends UPDATEs to what the others are told.
    fn take(
        &mut self,
        bytes: &[u8],
        writer: &mut RouteWriter,
        updates: &mut Vec<u8>,
    ) -> Result<(), String> {
        let context = Context::new(Neighbour::External);
        self.cutter.push(bytes);
        while let Some(message) = self.cutter.take().map_err(|error| error.to_string())? {
            match message.kind {
                MessageType::Open => {
                    let open = Open::new(ROUTER_AS, HOLD_TIME, Ipv4Addr::new(10, 255, 0, 1));
                    let answer = [open.emit(), keepalive()].concat();
                    self.socket.write_all(&answer).map_err(|error| error.to_string())?;
                }
                MessageType::Update => {
                    updates.extend_from_slice(message.bytes);
                    let update = Update::new_checked(message.body(), &context);
                    let update = update.map_err(|error| error.to_string())?;
                    change(&update, &context, writer)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn change(update: &Update<'_>, context: &Context, writer: &mut RouteWriter) -> Result<(), String> {
    let mut changes = Vec::new();
    for (_, nlri) in update.withdrawn() {
        changes.extend(nlri.iter().map(|(_, prefix)| route(&prefix, RouteOperation::Delete)));
    }
    for reach in update.reach() {
        let Some(NextHop::V4(next_hop)) = update.judge(context).attributes.next_hop else {
            continue;
        };
        let way = RouteWay { gateway: Some(IpAddr::V4(next_hop)), interface: 0, weight: 1 };
        let target = Arc::new(RouteTarget::ways(vec![way]));
        let add = |(_, prefix)| route(&prefix, RouteOperation::Add(Arc::clone(&target)));
        changes.extend(reach.nlri.iter().map(add));
    }
    let mut rest = &changes[..];
    while !rest.is_empty() {
        let mut batch = RouteBatch::default();
        let count = batch.emit(1, &SPACE, rest);
        let refused = writer.carry_out(&batch).map_err(|error| error.to_string())?;
        if let Some((_, why)) = refused.first() {
            return Err(format!("the kernel refuses a route: {why}"));
        }
        rest = &rest[count..];
    }
    Ok(())
}

fn route(prefix: &Prefix, operation: RouteOperation) -> RouteChange {
    let [a, b, c, d, ..] = prefix.first();
    let ip = IpAddr::V4(Ipv4Addr::new(a, b, c, d));
    let destination = InterfaceAddress { ip, prefix_length: prefix.length() };
    RouteChange { destination, metric: METRIC, operation }
}
