//! AF_XDP sockets: Linux kernel, Documentation/networking/af_xdp.rst, and linux/if_xdp.h.

mod mapping;
mod ring;
mod socket;

pub(crate) use mapping::Frames;
pub(crate) use ring::Descriptor;
pub(crate) use socket::{Lengths, Rings, Socket};
