//! The `xia` block of a node's configuration.
//!
//! ```text
//! xia {
//!     interface eth0 eth1;
//!     address u4id-… hid-…;         # what stands in front of applications' sinks; default: own HID
//!     echo on;
//!     redirects 8;                  # longest chain of redirects
//!     copies 64;                    # most packets that one packet may become
//!     slow-path 100000;             # decisions that each port may cause in a second
//!     errors 100;                   # error messages to sources that each port may cause in a second
//!     packet-io auto;               # AF_XDP sockets where they can be, else packet sockets
//!     engine auto;                  # let the kernel forward what the routing cache knows
//!     priority fifo 10;             # before other threads; processor 1 2: only there
//!     principal hid { local hid-…; }
//!     principal zf { route zf-… via hid-…; }
//!     link-state { hello 1s; }      # a routing protocol, by its name
//! }
//! ```

use weft_base::{Instant, Random};
use weft_config::{Block, ByteSize, Entry, Error, Errors, Form, gather};
use weft_runtime::{EngineMode, read_scheduling};

use super::settings::Whole;
use super::{Node, PacketIo, Registry, Scope, Settings, engine};
use crate::Xid;
use crate::forward::{Limits, MAX_REDIRECTS, SlowPathLimit};

/// A port's budget for decisions may be used up at once by this part of it.
const BURSTS_PER_SECOND: u32 = 5;

/// Most error messages a second that can be configured: a router has other things to do.
const MOST_ERRORS: u64 = 100_000;

const XID_FORM: Form = Form { what: "an XID", example: "hid-<40 hex digits>" };
const PACKET_IO_FORM: Form = Form { what: "a way for packets", example: "auto" };
const ENGINE_FORM: Form = Form { what: "an engine", example: "auto" };

/// Reads the statements of an `xia` block and makes the node that they describe. `settings` gives
/// the name, paths and user; the block overrides the rest.
///
/// # Errors
/// Every mistake with its position. No part of the node is used then.
pub fn read_node(
    block: &mut Block<'_>,
    mut settings: Settings,
    registry: &Registry,
    random: Random,
) -> Result<Node, Errors> {
    let unsaid = settings.whole();
    settings.set_whole(read_whole(block, &unsaid)?);
    let engine = read_engine(block)?;
    let share = read_scheduling(block)?;
    let mut node = Node::new(settings, registry.clone(), random);
    node.unsaid = unsaid;
    node.set_engine(engine, &mut Vec::new());
    node.set_scheduling(share, &mut Vec::new());
    gather(block.many("interface").into_iter().map(|entry| read_interfaces(entry, &mut node)))?;
    gather(block.many("principal").into_iter().map(|entry| read_principal(entry, &mut node)))?;
    for name in registry.protocols() {
        if let Some(entry) = block.one(name)? {
            read_protocol(entry, name, &mut node)?;
        }
    }
    Ok(node)
}

/// The statements that [`read_whole`] reads.
pub(super) const WHOLE: [&str; 8] =
    ["address", "cache", "copies", "echo", "errors", "packet-io", "redirects", "slow-path"];

/// Reads what holds for all of a node and may change while it runs. `unsaid` is what holds where nothing is said.
pub(super) fn read_whole(block: &mut Block<'_>, unsaid: &Whole) -> Result<Whole, Errors> {
    Ok(Whole {
        limits: read_limits(block, unsaid.limits)?,
        echo: block.leaf("echo")?.unwrap_or(unsaid.echo),
        scope: read_scope(block, unsaid.scope.clone())?,
        packet_io: read_packet_io(block)?.unwrap_or(unsaid.packet_io),
    })
}

fn read_limits(block: &mut Block<'_>, default: Limits) -> Result<Limits, Errors> {
    let redirects = block.leaf_in("redirects", 1..=MAX_REDIRECTS as u64)?;
    let copies = block.leaf_in("copies", 1..=65_536_u64)?;
    let cache = block.leaf::<ByteSize>("cache")?;
    let slow_path = block.leaf_in("slow-path", 0..=u64::from(u32::MAX))?.map(|n| n as u32);
    let errors = block.leaf_in("errors", 0..=MOST_ERRORS)?.map(|n| n as u32);
    Ok(Limits {
        redirects: redirects.map_or(default.redirects, |n| n as usize),
        copies: copies.map_or(default.copies, |n| n as usize),
        cache: cache.map_or(default.cache, |size| size.bytes() as usize),
        slow_path: match slow_path {
            None => Some(SlowPathLimit::default()),
            Some(per_second) => limit(per_second),
        },
        errors: errors.and_then(limit),
    })
}

/// So many a second; zero means none here, and no limit there.
fn limit(per_second: u32) -> Option<SlowPathLimit> {
    let burst = per_second.div_ceil(BURSTS_PER_SECOND);
    (per_second > 0).then_some(SlowPathLimit { per_second, burst })
}

fn read_packet_io(block: &mut Block<'_>) -> Result<Option<PacketIo>, Errors> {
    let Some(mut entry) = block.one("packet-io")? else { return Ok(None) };
    let io = entry.argument_with(PACKET_IO_FORM, str::parse)?;
    entry.end()?;
    Ok(Some(io))
}

fn read_engine(block: &mut Block<'_>) -> Result<Option<EngineMode>, Errors> {
    let Some(mut entry) = block.one("engine")? else { return Ok(None) };
    let mode = entry.argument_with(ENGINE_FORM, engine::mode)?;
    entry.end()?;
    Ok(mode)
}

fn read_scope(block: &mut Block<'_>, default: Scope) -> Result<Scope, Errors> {
    let entries = block.many("address");
    let Some(mut entry) = entries.first().cloned() else { return Ok(default) };
    if let Some(second) = entries.get(1) {
        return Err(second.duplicate_of(&entry).into());
    }
    let mut path = Vec::new();
    while entry.peek().is_some() {
        path.push(entry.argument_with(XID_FORM, str::parse::<Xid>)?);
    }
    entry.end()?;
    let scope = Scope { path: Some(path) };
    scope.check().map_err(|error| Errors::from(entry.error(error)))?;
    Ok(scope)
}

fn read_interfaces(mut entry: Entry<'_>, node: &mut Node) -> Result<(), Errors> {
    let mut names = vec![entry.argument::<weft_config::InterfaceName>("the interface")?];
    names.extend(entry.rest::<weft_config::InterfaceName>()?);
    entry.end()?;
    for name in names {
        node.add_interface(name.as_str()).map_err(|error| Errors::from(entry.error(error)))?;
    }
    Ok(())
}

fn read_principal(mut entry: Entry<'_>, node: &mut Node) -> Result<(), Errors> {
    let name: String = entry.argument("the principal's name")?;
    let mut out = Vec::new();
    let added = node.add_principal(Instant::ZERO, &name, &mut out);
    added.map_err(|error| Errors::from(entry.error(error)))?;
    let mut block = entry.optional_block()?;
    let set = |statement: Entry<'_>| set_part(&statement, &name, node);
    gather(block.all().into_iter().map(set))?;
    Ok(())
}

fn read_protocol(entry: Entry<'_>, name: &str, node: &mut Node) -> Result<(), Errors> {
    let added = node.add_protocol(Instant::ZERO, name, &mut Vec::new());
    added.map_err(|error| Errors::from(entry.error(error)))?;
    let mut block = entry.optional_block()?;
    let set = |statement: Entry<'_>| set_part(&statement, name, node);
    gather(block.all().into_iter().map(set))?;
    Ok(())
}

fn set_part(entry: &Entry<'_>, name: &str, node: &mut Node) -> Result<(), Errors> {
    if entry.statement().block().is_some() {
        return Err(entry
            .error("the statements of principals and protocols have no blocks; end it with `;`")
            .into());
    }
    let words: Vec<&str> = entry.statement().words().iter().map(|word| word.text()).collect();
    // The node does not run yet, so that nothing is to be done before it starts.
    let mut out = Vec::new();
    node.change_principal(Instant::ZERO, name, &words, false, &mut out).map_err(|error| {
        let error: Error = match error.word {
            Some(index) => entry.error_at(index, error.text),
            None => entry.error(error.text),
        };
        error.into()
    })
}
