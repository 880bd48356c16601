//! The component registry: everything that a node can be made of.

use std::collections::BTreeMap;

use weft_base::{Random, WallTime};
use weft_bgp::Bgp;
use weft_bmp::Bmp;
use weft_example_greeter::Greeter;
use weft_fea::Fea;
use weft_gateway::Gateway;
use weft_manager::{Class, Socket};
use weft_policy::Variable;
use weft_protocol::{Beginning, Protocol};
use weft_rib::Rib;
use weft_rpki::Rpki;
use weft_runtime::Component;
use weft_translator::Translator;
use weft_xia_ad::Ad;
use weft_xia_component::Xia;
use weft_xia_ether::Ether;
use weft_xia_hid::Hid;
use weft_xia_kernel::{Mirror, TableSizes};
use weft_xia_linkstate::LinkState;
use weft_xia_lpm::Lpm;
use weft_xia_tunnel::{Tunnels, Way};
use weft_xia_uni4id::Uni4id;
use weft_xia_x4id::{DualStack, Version};
use weft_xia_xdp::Xdp;
use weft_xia_zf::ZFilter;
use weft_xip::node::Registry;
use weft_xrl::frame::Secret;
use weft_xrl::{Input, Interface, Output};

use crate::node::component::Node;

/// The principals and routing protocols of XIA that are linked into this binary.
#[must_use]
pub fn principals() -> Registry {
    Registry::new()
        .with("ad", |random| Box::new(Ad::new(random)))
        .with_statements("ether", weft_xia_ether::STATEMENTS, |_| Box::new(Ether::new()))
        .with_statements("example", weft_xia_example::STATEMENTS, weft_xia_example::nearest)
        .with("hid", |random| Box::new(Hid::new(random)))
        .with("hid2", |random| Box::new(Hid::second(random)))
        .with("i4id", |_| Box::new(Tunnels::new(Way::I4id)))
        .with("i6id", |_| Box::new(Tunnels::new(Way::I6id)))
        .with("lpm", |random| Box::new(Lpm::new(random)))
        .with("u4id", |_| Box::new(Tunnels::new(Way::U4id)))
        .with("u6id", |_| Box::new(Tunnels::new(Way::U6id)))
        .with("uni4id", |_| Box::new(Uni4id))
        .with("x4id", |_| Box::new(DualStack::new(Version::V4)))
        .with("x6id", |_| Box::new(DualStack::new(Version::V6)))
        .with("xdp", |random| Box::new(Xdp::new(random)))
        .with("zf", |_| Box::new(ZFilter::new()))
        .with_engine(|| Box::new(Mirror::default()))
        .with_protocol("link-state", |key, random| Box::new(LinkState::new(key, random)))
}

/// The packet engines of the kernel that are linked into this binary.
pub(crate) fn engines() -> Vec<weft_runtime::Engine> {
    vec![weft_xia_kernel::engine(&TableSizes::default())]
}

/// The routing protocols, a line each.
const PROTOCOLS: &[Protocol] = &[
    weft_static::PROTOCOL,
    weft_rip::RIP,
    weft_rip::RIPNG,
    // The pattern of how one is written.
    weft_hearsay::PROTOCOL,
];

/// What tells the RIB routes, or hears of them, can do nothing without it.
const NEEDS_RIB: &[&str] = &[weft_rib::STATEMENT];

/// A class of components, and how one is made.
pub(crate) struct Registered {
    pub(crate) class: Class,
    /// What may be configured.
    pub(crate) schema: &'static str,
    pub(crate) make: Make,
}

/// Makes a component, which proves itself with a secret, and says what can be called.
type Make = fn(&Node, Secret) -> Result<Made, String>;

/// A component and its interfaces.
pub(crate) type Made =
    (Vec<&'static Interface>, Box<dyn Component<Input = Input, Output = Output>>);

/// The components that a node can be made of besides the routing protocols, in the order in which they are started.
fn components() -> Vec<Registered> {
    vec![
        Registered {
            class: Class {
                statement: Some(weft_fea::STATEMENT),
                always: true,
                // It has the links of eBPF programs kept.
                access: "manager/manager/1.0/keep manager/manager/1.0/release".into(),
                ..Class::new("fea")
            },
            schema: weft_fea::SCHEMA,
            make: |node, _| {
                let mut random = Random::from_seed(node.number());
                Ok((weft_fea::interfaces(), Box::new(Fea::new(&mut random).with_clock(node.clock))))
            },
        },
        Registered {
            class: Class {
                statement: Some(weft_rib::STATEMENT),
                access: "fea/fib/1.0 fea/fea/1.0/watch_interfaces".into(),
                ..Class::new("rib")
            },
            schema: weft_rib::SCHEMA,
            make: |node, _| {
                let own = PROTOCOLS.iter().map(|one| one.name).chain([weft_bgp::STATEMENT]);
                let rib = Rib::trusting(own).with_clock(node.clock);
                Ok((weft_rib::interfaces(), Box::new(rib)))
            },
        },
        Registered {
            class: Class {
                statement: Some(weft_bgp::STATEMENT),
                reads: &[weft_policy::STATEMENT, weft_bgp::RPKI],
                needs: NEEDS_RIB,
                access: "rib/rib rpki/rpki/1.0 fea/fea/1.0/open_stream?port=179 \
                         fea/fea/1.0/open_stream_listener?port=179 fea/fea/1.0/cancel_stream fea/fea/1.0/set_stream_keys \
                         fea/fea/1.0/close_stream_listener fea/fea/1.0/watch_interfaces"
                    .into(),
                ..Class::new("bgp")
            },
            schema: weft_bgp::SCHEMA,
            make: bgp,
        },
        Registered {
            class: Class {
                statement: Some(weft_rpki::STATEMENT),
                access: "fea/fea/1.0/open_stream fea/fea/1.0/cancel_stream".into(),
                ..Class::new("rpki")
            },
            schema: weft_rpki::SCHEMA,
            make: |_, _| Ok((weft_rpki::interfaces(), Box::<Rpki>::default())),
        },
        Registered {
            class: Class {
                statement: Some(weft_bmp::STATEMENT),
                needs: &[weft_bgp::STATEMENT],
                access: "bgp/bgp/1.6/monitor fea/fea/1.0/open_stream fea/fea/1.0/cancel_stream".into(),
                ..Class::new("bmp")
            },
            schema: weft_bmp::SCHEMA,
            make: |_, _| Ok((weft_bmp::interfaces(), Box::<Bmp>::default())),
        },
        Registered {
            class: Class {
                statement: Some(weft_translator::STATEMENT),
                needs: NEEDS_RIB,
                access: "rib/rib xia/prefixes/1.0 fea/fea/1.0/watch_ip".into(),
                ..Class::new("translator")
            },
            schema: weft_translator::SCHEMA,
            make: |_, _| Ok((weft_translator::interfaces(), Box::<Translator>::default())),
        },
        Registered {
            class: Class {
                statement: Some(weft_gateway::STATEMENT),
                access: "fea/fea/1.0/open_listener".into(),
                ..Class::new(weft_xrl::GATEWAY)
            },
            schema: weft_gateway::SCHEMA,
            make: gateway,
        },
        Registered {
            class: Class {
                statement: Some(weft_xia_component::STATEMENT),
                // The EtherTypes of XIP (by either kind of socket), of neighbour discovery and of link-state routing; for tunnels
                // UDP, and IP with the numbers that are free for experiments; interfaces change while they
                // carry packets; what forwards by the kernel's tables of IP watches them.
                access: "fea/fea/1.0/open_port?\
                         spec=ethernet:*:0xc0de|ethernet:*:0xc0df|ethernet:*:0xc0e0|ethernet:*:0xc0e1|xdp:*:0xc0de|udp:*|ip:*:253|ip:*:254 \
                         fea/fea/1.0/open_engine?engine=xip fea/fea/1.0/attach_engine?engine=xip \
                         fea/fea/1.0/detach_engine?engine=xip \
                         fea/fea/1.0/schedule fea/fea/1.0/watch_interfaces \
                         fea/fea/1.0/watch_ip fea/fea/1.0/find_neighbour"
                    .into(),
                sockets: &[Socket { name: crate::node::XIA_SOCKET, packets: true }],
                ..Class::new("xia")
            },
            schema: "",
            make: xia,
        },
        Registered {
            class: Class {
                statement: Some(weft_example_greeter::STATEMENT),
                ..Class::new("greeter")
            },
            schema: weft_example_greeter::SCHEMA,
            make: |_, _| Ok((weft_example_greeter::interfaces(), Box::<Greeter>::default())),
        },
    ]
}

fn bgp(node: &Node, _: Secret) -> Result<Made, String> {
    let random = Random::from_seed(node.number()).fork("bgp");
    Ok((weft_bgp::interfaces(), Box::new(Bgp::new(random).with_clock(node.clock))))
}

fn gateway(node: &Node, secret: Secret) -> Result<Made, String> {
    let settings = weft_gateway::Settings { sockets: crate::node::calls_sockets(node), secret };
    Ok((weft_gateway::interfaces(), Box::new(Gateway::new(settings))))
}

fn xia(node: &Node, _: Secret) -> Result<Made, String> {
    let mut settings = crate::node::xia_settings(&node.name, &node.directory, node.operator);
    settings.key.clone_from(&node.key);
    let random = Random::from_seed(node.number());
    let xia = Xia::new(settings, principals(), random, node.identity);
    Ok((weft_xia_component::interfaces(), Box::new(xia)))
}

/// Makes a component.
///
/// # Errors
/// There is no such class, or what the node is lacks something.
pub(crate) fn make(class: &str, node: &Node, secret: Secret) -> Result<Made, String> {
    if let Some(protocol) = protocol(class) {
        let beginning = beginning(node.number(), node.wall);
        return Ok((weft_protocol::interfaces(), (protocol.make)(beginning)));
    }
    let registered = components().into_iter().find(|one| one.class.name == class);
    let registered =
        registered.ok_or_else(|| format!("there is no class of components called `{class}`"))?;
    (registered.make)(node, secret)
}

/// What a protocol's process is given that begins.
pub(crate) fn beginning(seed: u64, wall: WallTime) -> Beginning {
    // Of the seconds 32 bits are used.
    let epoch = (wall.as_unix_nanos() / 1_000_000_000) as u32;
    Beginning { random: Random::from_seed(seed), epoch }
}

/// A routing protocol.
pub(crate) fn protocol(name: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|one| one.name == name)
}

/// What the routes of each protocol are to policies.
pub(crate) fn variables() -> BTreeMap<&'static str, &'static [Variable]> {
    let own = PROTOCOLS.iter().map(|one| (one.name, one.variables));
    let all = own.chain([(weft_bgp::STATEMENT, weft_bgp::VARIABLES)]);
    all.filter(|(_, variables)| !variables.is_empty()).collect()
}

/// The classes of all components and what may be configured of them, in the order in which they are started: routing
/// protocols behind the RIB, which they tell.
fn registered() -> Vec<(Class, &'static str)> {
    let protocol = |one: &Protocol| {
        let (statement, access) = (Some(one.name), one.access().into());
        let (reads, needs) = (one.reads, NEEDS_RIB);
        let class = Class { statement, reads, needs, access, ..Class::new(one.name) };
        (class, one.schema)
    };
    let mut all = Vec::new();
    for Registered { class, schema, .. } in components() {
        let is_rib = class.name == weft_protocol::rib::CLASS;
        all.push((class, schema));
        if is_rib {
            all.extend(PROTOCOLS.iter().map(protocol));
        }
    }
    all
}

/// The classes of all processes of a node but the manager, in the order in which they are started.
pub(crate) fn classes() -> Vec<Class> {
    let components = registered().into_iter().map(|(class, _)| class);
    std::iter::once(Class::new(weft_xrl::FINDER)).chain(components).collect()
}

/// What may be configured on a node.
pub(crate) fn schema() -> String {
    let own = registered().into_iter().map(|(_, schema)| schema.to_owned());
    let shared = [crate::node::node_schema(), weft_policy::SCHEMA.to_owned()];
    shared.into_iter().chain(own).collect()
}
