//! What of bpf(2) concerns XDP: links, and running a program without an interface.
//!
//! Reference: bpf(2); linux/bpf.h; Linux kernel, Documentation/bpf/bpf_prog_run.rst (frames that are
//! really sent).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::{bpf, link, object_info};

const BPF_PROG_TEST_RUN: u32 = 10;
const BPF_XDP: u32 = 37;
const BPF_LINK_TYPE_XDP: u32 = 6;
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 2;

/// Attaches a program to XDP; `flags` are `XDP_FLAGS_*`.
pub(crate) fn create_link(
    interface: u32,
    flags: u32,
    program: BorrowedFd<'_>,
) -> io::Result<OwnedFd> {
    link(interface, BPF_XDP, flags, program)
}

/// The interface (0 if it is gone) and the program of a link of XDP; `None` if it is another one.
pub(crate) fn link_info(link: BorrowedFd<'_>) -> io::Result<Option<(u32, u32)>> {
    let mut info = [0_u32; 16];
    object_info(link, &mut info)?;
    Ok((info[0] == BPF_LINK_TYPE_XDP).then_some((info[4], info[2])))
}

#[repr(C)]
#[derive(Default)]
struct Attributes {
    program: i32,
    verdict: u32,
    packet_len: u32,
    room: u32,
    packet: u64,
    result: u64,
    repeat: u32,
    duration: u32,
    context_len: u32,
    context_room: u32,
    context: u64,
    context_result: u64,
    flags: u32,
    processor: u32,
    batch: u32,
    padding: u32,
}

impl Attributes {
    fn new(program: BorrowedFd<'_>, frame: &[u8], repeat: u32) -> io::Result<Self> {
        let packet_len = u32::try_from(frame.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        Ok(Self {
            program: program.as_raw_fd(),
            packet_len,
            packet: frame.as_ptr() as u64,
            repeat,
            ..Self::default()
        })
    }
}

/// Runs a program on a frame this often. The last verdict, and what is in `room` of the frame
/// afterwards.
pub(crate) fn test_run<'a>(
    program: BorrowedFd<'_>,
    frame: &[u8],
    repeat: u32,
    room: &'a mut [u8],
) -> io::Result<(u32, &'a [u8])> {
    let mut attributes = Attributes::new(program, frame, repeat)?;
    // A pointer with no room behind it would be written to nevertheless.
    attributes.result = if room.is_empty() { 0 } else { room.as_mut_ptr() as u64 };
    attributes.room = u32::try_from(room.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the pointers are to as many bytes as is said.
    unsafe { bpf(BPF_PROG_TEST_RUN, &mut attributes)? };
    let len = (attributes.room as usize).min(room.len());
    Ok((attributes.verdict, &room[..len]))
}

/// Runs a program on `repeat` frames and does with them what it says. Ends earlier (`EINTR`) when the
/// thread gets a signal.
pub(crate) fn run_live(
    program: BorrowedFd<'_>,
    frame: &[u8],
    repeat: u32,
    batch: u32,
) -> io::Result<()> {
    let mut attributes = Attributes::new(program, frame, repeat)?;
    attributes.flags = BPF_F_TEST_XDP_LIVE_FRAMES;
    attributes.batch = batch;
    // SAFETY: the pointer is to as many bytes as is said; nothing is asked to be written.
    unsafe { bpf(BPF_PROG_TEST_RUN, &mut attributes) }.map(drop)
}

/// The name of an interface's driver, as ethtool(8) shows it; the interface is one of the calling thread's
/// network namespace.
pub(crate) fn driver(interface: u32) -> io::Result<String> {
    const SIOCETHTOOL: libc::Ioctl = 0x8946;
    const ETHTOOL_GDRVINFO: u32 = 3;
    /// `struct ethtool_drvinfo`: a command, texts of 32 bytes of which the first is the driver's name, and more.
    #[repr(C)]
    struct DriverInfo {
        command: u32,
        driver: [u8; 32],
        more: [u8; 160],
    }
    // SAFETY: no pointers; the descriptor is ours from here on.
    let socket = unsafe {
        match libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) {
            -1 => return Err(io::Error::last_os_error()),
            descriptor => OwnedFd::from_raw_fd(descriptor),
        }
    };
    let mut info = DriverInfo { command: ETHTOOL_GDRVINFO, driver: [0; 32], more: [0; 160] };
    // SAFETY: all zeros is a value of this plain structure. The name has room for the longest that there is, and
    // the kernel writes no more than `struct ethtool_drvinfo` has bytes, 196.
    let result = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        if libc::if_indextoname(interface, request.ifr_name.as_mut_ptr()).is_null() {
            return Err(io::Error::last_os_error());
        }
        request.ifr_ifru.ifru_data = (&raw mut info).cast();
        libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request)
    };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    let name = info.driver.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}
