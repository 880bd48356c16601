//! Links between namespaces: how each is made, and what it does to packets.
//!
//! A **kernel link** is a pair of virtual Ethernet interfaces (veth(4)). Its rate is that of a token
//! bucket (tc-tbf(8)) where packets leave, its loss an eBPF program where they arrive: losing them at
//! the sender would tell it so, and a lost packet has used its share of the rate. What the kernel
//! cannot do, a **user-space link** does: each end is paired with an interface in a namespace of its
//! own, and a process moves the frames between the two.

use std::collections::BTreeSet;

use weft_base::Random;
use weft_ebpf::{Direction, LossLink, LossProbability, ProgramError};
use weft_runtime::BILLION;
use weft_wire::MacAddr;

use super::ip::{Batch, tc};
use super::namespace::Namespace;
use crate::LabError;
use crate::file::{Action, Properties, Scenario};
use crate::joiner::config::JoinedLink;
use crate::plan::Plan;

/// How much a token bucket may send at once, as time at its rate; and at least this many bytes.
/// The kernel refills it with every packet, so that little is needed (tc-tbf(8), BUGS).
const BURST_PER_SECOND: u64 = 1000;
const LEAST_BURST: u64 = 16 * 1024;
/// What frames have besides a packet of the size of the MTU: the Ethernet header and a VLAN tag.
const FRAME_OVERHEAD: u64 = 18;

/// How a link is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By the kernel alone.
    Kernel,
    /// By a process that joins two interfaces.
    UserSpace,
}

/// What the kernel can do for links here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Abilities {
    pub(crate) loss: bool,
    pub(crate) rate: bool,
}

impl Abilities {
    /// What the kernel can do, as far as the lab needs it; `scratch` is a namespace to try it in.
    pub(crate) fn probe(plan: &Plan<'_>, lossy: &BTreeSet<usize>, scratch: &Namespace) -> Self {
        let rate = plan.lab.links.iter().any(|link| link.properties.model.rate.is_some());
        Self {
            loss: lossy.is_empty() || weft_ebpf::probe().is_ok(),
            rate: !rate || can_limit_rate(scratch),
        }
    }
}

fn can_limit_rate(scratch: &Namespace) -> bool {
    let add = [
        "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "1gbit", "burst", "16k", "latency",
        "1ms",
    ];
    let tried = tc(scratch, &add);
    tried.and_then(|()| tc(scratch, &["qdisc", "delete", "dev", "lo", "root"])).is_ok()
}

/// The links that lose packets, or do so when the scenario says so.
pub(crate) fn lossy(plan: &Plan<'_>, scenario: Option<&Scenario>) -> BTreeSet<usize> {
    let links = plan.lab.links.iter().enumerate();
    let always = links.filter(|(_, link)| link.properties.model.loss > 0).map(|(index, _)| index);
    let steps = scenario.map_or(&[][..], |scenario| &scenario.steps);
    let at_times = steps.iter().filter_map(|step| match step.action {
        Action::Cut { link } | Action::Loss { link, .. } => Some(link),
        _ => None,
    });
    always.chain(at_times).collect()
}

/// How a link with these properties is made.
pub(crate) fn kind(properties: &Properties, is_lossy: bool, can: Abilities) -> Kind {
    let model = &properties.model;
    let is_beyond_kernel = !model.delay.is_zero()
        || !model.jitter.is_zero()
        || model.duplicate > 0
        || model.reorder > 0
        || is_lossy && !can.loss
        || model.rate.is_some() && !can.rate;
    if is_beyond_kernel { Kind::UserSpace } else { Kind::Kernel }
}

/// The name of the interface in the links' namespace that is paired with an end of a link.
pub(crate) fn far_end(link: usize, side: usize) -> String {
    format!("l{link}.{side}")
}

/// What the randomness of the way out of an end of a link follows from.
pub(crate) fn direction(plan: &Plan<'_>, link: usize, side: usize) -> Random {
    Random::from_seed(plan.lab.seed).fork("link").fork(&plan.end_name(link, side))
}

/// What the process that joins user-space links has to know of one.
pub(crate) fn joined(plan: &Plan<'_>, link: usize) -> JoinedLink {
    let end = |side| (far_end(link, side), direction(plan, link, side).number());
    JoinedLink::new([end(0), end(1)], &plan.lab.links[link].properties.model)
}

/// Adds the commands that make the interfaces of a link.
pub(crate) fn add_interfaces(
    batch: &mut Batch,
    plan: &Plan<'_>,
    link: usize,
    kind: Kind,
    nodes: [&Namespace; 2],
    far: &Namespace,
) {
    let it = &plan.lab.links[link];
    let mtu = it.properties.mtu;
    let end = |side: usize| {
        let (name, namespace) = (it.ends[side].interface.as_str(), nodes[side].name());
        format!("name {name} mtu {mtu} address {} netns {namespace}", mac(link, side))
    };
    match kind {
        Kind::Kernel => batch.add(&["link add", &end(0), "type veth peer", &end(1)]),
        Kind::UserSpace => {
            for side in [0, 1] {
                let far = format!("name {} mtu {mtu} netns {}", far_end(link, side), far.name());
                batch.add(&["link add", &end(side), "type veth peer", &far]);
            }
        }
    }
}

/// The Ethernet address of an end of a link: locally administered, the same in every run, and the
/// same that the simulator gives.
fn mac(link: usize, side: usize) -> MacAddr {
    let number = 2 * link as u64 + side as u64 + 1;
    let [_, _, _, a, b, c, d, e] = number.to_be_bytes();
    MacAddr([0x02, a, b, c, d, e])
}

/// Limits the rate of a kernel link, both ways.
pub(crate) fn limit_rate(
    plan: &Plan<'_>,
    link: usize,
    nodes: [&Namespace; 2],
) -> Result<(), LabError> {
    let it = &plan.lab.links[link];
    for (end, namespace) in it.ends.iter().zip(nodes) {
        for discipline in disciplines(&it.properties) {
            let words = ["qdisc", "add", "dev", &end.interface].into_iter();
            tc(namespace, &words.chain(discipline.split(' ')).collect::<Vec<_>>())?;
        }
    }
    Ok(())
}

/// The queueing disciplines at each end of a kernel link: a token bucket if there is a rate, and its
/// queue if that is counted in packets. Both always have room for one frame of any length, as the
/// model has.
fn disciplines(properties: &Properties) -> Vec<String> {
    let Properties { model, mtu } = properties;
    let Some(rate) = model.rate else { return Vec::new() };
    let frame = u64::from(*mtu) + FRAME_OVERHEAD;
    let burst = (rate.get() / 8 / BURST_PER_SECOND).max(LEAST_BURST).max(frame);
    // The kernel counts in 32 bits.
    let bytes = (model.queue_bytes as u64).clamp(frame, u32::MAX.into());
    let bucket = format!("root handle 1: tbf rate {rate}bit burst {burst} limit {bytes}");
    if model.queue_packets == usize::MAX {
        return vec![bucket];
    }
    let packets = model.queue_packets.clamp(1, u32::MAX as usize);
    vec![bucket, format!("parent 1:1 handle 2: pfifo limit {packets}")]
}

/// Sets the loss of a kernel link, both ways, in parts per billion.
pub(crate) fn set_loss(
    plan: &Plan<'_>,
    link: usize,
    loss: u32,
    nodes: [&Namespace; 2],
) -> Result<(), LabError> {
    let probability = LossProbability::from_parts_per_billion(loss.min(BILLION))
        .map_err(LabError::system("set a loss"))?;
    for side in [0, 1] {
        // Packets that leave one end are lost where they arrive, at the other one.
        let seed = direction(plan, link, 1 - side).number();
        let interface = plan.lab.links[link].ends[side].interface.as_str();
        let set = || match LossLink::open(interface, Direction::Ingress) {
            Ok(mut link) => link.set_probability(probability),
            Err(ProgramError::NotAttached { .. }) => {
                LossLink::attach(interface, Direction::Ingress, probability, seed).map(drop)
            }
            Err(error) => Err(error),
        };
        let action = format!("set the loss at {}", plan.end_name(link, side));
        nodes[side].inside(set)?.map_err(LabError::system(action))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weft_runtime::LinkConfig;

    use super::*;

    fn of(model: LinkConfig, is_lossy: bool, loss: bool, rate: bool) -> Kind {
        kind(&Properties { model, mtu: 1500 }, is_lossy, Abilities { loss, rate })
    }

    #[test]
    fn disciplines_hold_at_least_one_frame_and_count_as_the_model_does() {
        let of = |rate: u64, queue_packets, queue_bytes, mtu| {
            let rate = rate.try_into().ok();
            let model = LinkConfig { rate, queue_packets, queue_bytes, ..LinkConfig::default() };
            disciplines(&Properties { model, mtu })
        };
        let default = LinkConfig::default();
        assert_eq!(
            of(4_000_000, default.queue_packets, default.queue_bytes, 1500),
            [
                "root handle 1: tbf rate 4000000bit burst 16384 limit 4294967295",
                "parent 1:1 handle 2: pfifo limit 1000"
            ]
        );
        assert_eq!(
            of(4_000_000, usize::MAX, 65_536, 1500),
            ["root handle 1: tbf rate 4000000bit burst 16384 limit 65536"]
        );
        assert_eq!(
            of(1_000_000_000, usize::MAX, 0, 1500),
            ["root handle 1: tbf rate 1000000000bit burst 125000 limit 1518"]
        );
        assert_eq!(
            of(4_000_000, usize::MAX, 1024, 65_535),
            ["root handle 1: tbf rate 4000000bit burst 65553 limit 65553"]
        );
        assert_eq!(of(0, 1000, 0, 1500), Vec::<String>::new());
    }

    #[test]
    fn user_space_does_what_the_kernel_cannot() {
        let plain = LinkConfig::default;
        assert_eq!(of(plain(), false, false, false), Kind::Kernel);
        assert_eq!(of(plain(), true, true, false), Kind::Kernel);
        assert_eq!(of(plain(), true, false, true), Kind::UserSpace);
        let slow = || LinkConfig { rate: 1000.try_into().ok(), ..plain() };
        assert_eq!(of(slow(), false, true, true), Kind::Kernel);
        assert_eq!(of(slow(), false, true, false), Kind::UserSpace);
        let delayed = LinkConfig { delay: Duration::from_millis(1), ..plain() };
        assert_eq!(of(delayed, false, true, true), Kind::UserSpace);
    }
}
