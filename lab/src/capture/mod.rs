//! Captures of the packets of a lab, with one interface per interface of a node.

mod live;
pub(crate) mod pcapng;

pub(crate) use live::Capture;
