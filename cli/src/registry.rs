//! The component registry: everything that a node can be made of.

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
