//! The component registry: everything that a node can be made of.

use weft_manager::{Class, Socket};
use weft_xia_ad::Ad;
use weft_xia_hid::Hid;
use weft_xia_u4id::U4id;
use weft_xia_xdp::Xdp;
use weft_xia_zf::ZFilter;
use weft_xip::node::Registry;

/// The principals of XIA that are linked into this binary.
#[must_use]
pub fn principals() -> Registry {
    Registry::new()
        .with("ad", |_| Box::new(Ad::new()))
        .with("hid", |random| Box::new(Hid::new(random)))
        .with("u4id", |_| Box::new(U4id::new()))
        .with("xdp", |_| Box::new(Xdp::new()))
        .with("zf", |_| Box::new(ZFilter::new()))
}

/// The classes of components of a node, in the order in which they are started.
#[must_use]
pub(crate) fn classes() -> Vec<Class> {
    vec![
        Class::new("finder"),
        Class::new("fea"),
        Class {
            statement: Some(weft_xia_component::STATEMENT),
            // The EtherTypes of XIP and of its neighbour discovery, and UDP for tunnels.
            access: "fea/fea/1.0/open_port?spec=ethernet:*:0xc0de|ethernet:*:0xc0df|udp:*".into(),
            sockets: &[Socket { name: crate::node::XIA_SOCKET, packets: true }],
            ..Class::new("xia")
        },
    ]
}
