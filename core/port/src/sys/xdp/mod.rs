//! AF_XDP sockets: Linux kernel, Documentation/networking/af_xdp.rst, and linux/if_xdp.h.

mod frames;
mod ring;
mod socket;

pub(crate) use frames::Frames;
pub(crate) use ring::Descriptor;
pub(crate) use socket::{Lengths, Rings, Socket};
