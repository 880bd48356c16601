//! Programs of somebody else, for tests (feature `testing`): they let every packet pass.
//!
//! Reference: bpf(2); linux/bpf.h (instructions, `BPF_PROG_LOAD`, `BPF_LINK_CREATE`).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use weft_netlink::{Direction, Place, TrafficControl};

use crate::sys;
use crate::tc::interface_index;

/// Where somebody else's program is to hang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// At traffic control, by a link.
    Tcx(Direction),
    /// At traffic control, as a classifier where weft would put its own.
    Classifier(Direction),
    /// At XDP in the generic mode, by a link.
    Xdp,
}

const XDP: u32 = 6;
/// `XDP_FLAGS_SKB_MODE`.
const GENERIC: u32 = 2;
/// `TCX_NEXT` and `TC_ACT_UNSPEC`.
const NEXT: i32 = -1;
/// `XDP_PASS`.
const PASS: i32 = 2;

/// Attaches a program called `name`, of at most 15 bytes. What is returned holds it, but for a classifier.
///
/// # Errors
/// What the kernel says.
///
/// # Panics
/// If there is no such interface, or the name is too long.
pub fn attach(interface: &str, foreign: Foreign, name: &str) -> io::Result<OwnedFd> {
    let index = interface_index(interface).expect("the test has made the interface");
    let refused = |refusal: weft_netlink::Refusal| io::Error::other(refusal.to_string());
    match foreign {
        Foreign::Tcx(direction) => {
            sys::create_link(index, direction, load(sys::SCHED_CLS, NEXT, name)?.as_fd())
        }
        Foreign::Xdp => sys::xdp::create_link(index, GENERIC, load(XDP, PASS, name)?.as_fd()),
        Foreign::Classifier(direction) => {
            let program = load(sys::SCHED_CLS, NEXT, name)?;
            let mut control = TrafficControl::open()?;
            control.add_clsact(index).map_err(refused)?;
            let place = Place { interface: index, direction, priority: 0x7766, handle: 1 };
            control.add_program(place, name, program.as_fd()).map_err(refused)?;
            Ok(program)
        }
    }
}

/// Loads a program that returns a number.
fn load(program_type: u32, returns: i32, name: &str) -> io::Result<OwnedFd> {
    // r0 = returns; exit
    let instruction = |code: u8, number: i32| {
        let [a, b, c, d] = number.to_ne_bytes();
        u64::from_ne_bytes([code, 0, 0, 0, a, b, c, d])
    };
    let instructions = [instruction(0xb7, returns), instruction(0x95, 0)];
    sys::load(program_type, &instructions, c"MIT", name)
}
