//! A network namespace with a pair of virtual Ethernet interfaces, and frames to send between them.

mod privileges;

use std::ffi::CString;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::thread;
use std::time::Duration;

use weft_ebpf::{ProgramError, probe};

/// The two ends of the virtual cable.
pub(crate) const LEFT: &str = "weft-left";
pub(crate) const RIGHT: &str = "weft-right";

/// "Local experimental EtherType 1" of IEEE 802: nothing else uses it.
pub(crate) const EXPERIMENTAL: u16 = 0x88b5;
/// Every EtherType, for receivers that watch all traffic.
pub(crate) const ALL: u16 = libc::ETH_P_ALL as u16;

/// Runs `test` on a thread in a network namespace of its own, which ends with the thread, whatever
/// happens. Without privileges the test is not run and says so; with them it must be possible.
pub(crate) fn in_namespace(test: impl FnOnce() + Send + 'static) {
    let excused = |error: &ProgramError| {
        matches!(error, ProgramError::NotBuilt { .. } | ProgramError::NotSupported { .. })
    };
    if !privileges::can_run(probe(), excused) {
        return;
    }
    let thread = thread::spawn(move || {
        // SAFETY: no pointers are passed; only this thread is moved.
        check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).unwrap();
        lay_cable();
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Creates the interfaces. Without IPv6 the kernel sends nothing on its own, so that every packet on
/// the cable is one of the test.
fn lay_cable() {
    std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").ok();
    ip(&["link", "add", LEFT, "type", "veth", "peer", "name", RIGHT]);
    ip(&["link", "set", LEFT, "up"]);
    ip(&["link", "set", RIGHT, "up"]);
    // The kernel notices a little later that there is a carrier, and until then drops what is sent.
    for end in [LEFT, RIGHT] {
        wait_until("the cable carries frames", || {
            let shown = Command::new("ip").args(["link", "show", "dev", end]).output().unwrap();
            let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
            shown.contains("state UP") && !shown.contains("qdisc noop ")
        });
    }
}

/// Runs `ip` in the namespace of this thread.
pub(crate) fn ip(arguments: &[&str]) {
    let status = Command::new("ip").args(arguments).status();
    let status = status.expect("this test needs `ip`: install iproute2");
    assert!(status.success(), "ip {} failed", arguments.join(" "));
}

/// Gives up the capabilities of this thread, as if it was not root's.
pub(crate) fn drop_capabilities() {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    let mut header = Header { version: 0x2008_0522, pid: 0 }; // _LINUX_CAPABILITY_VERSION_3
    let nothing = [0u32; 6];
    // SAFETY: both pointers are to values of the size that this version asks for.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, nothing.as_ptr()) };
    check(result as i32).unwrap();
}

/// Sends numbered frames out of an interface.
pub(crate) struct Sender {
    socket: OwnedFd,
    address: libc::sockaddr_ll,
}

impl Sender {
    pub(crate) fn new(interface: &str) -> Self {
        Self { socket: packet_socket(0), address: address(interface, 0) }
    }

    /// Sends past the queueing disciplines, and so past the egress hook.
    pub(crate) fn bypassing(interface: &str) -> Self {
        let sender = Self::new(interface);
        set_option(&sender.socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1i32);
        sender
    }

    /// Sends one frame; false if the kernel says that it dropped it.
    pub(crate) fn send(&self, number: u64) -> bool {
        let mut frame = [0u8; 60];
        frame[..6].fill(0xff);
        frame[6] = 0x02;
        frame[12..14].copy_from_slice(&EXPERIMENTAL.to_be_bytes());
        frame[14..22].copy_from_slice(&number.to_be_bytes());
        // SAFETY: both pointers and lengths describe values that outlive the call.
        let sent = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const self.address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if sent == frame.len() as isize {
            return true;
        }
        let error = io::Error::last_os_error();
        assert_eq!(error.raw_os_error(), Some(libc::ENOBUFS), "{error}");
        false
    }
}

/// Receives numbered frames at an interface.
pub(crate) struct Receiver {
    socket: OwnedFd,
}

impl Receiver {
    pub(crate) fn new(interface: &str, ethertype: u16) -> Self {
        let socket = packet_socket(0);
        let address = address(interface, ethertype);
        // SAFETY: the pointer and the length describe a value that outlives the call.
        check(unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        })
        .unwrap();
        // Only so that a failing test ends.
        let patience = libc::timeval { tv_sec: 30, tv_usec: 0 };
        set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &patience);
        Self { socket }
    }

    /// Waits for the next frame and returns its number.
    pub(crate) fn receive(&self) -> u64 {
        self.receive_with(0).unwrap()
    }

    /// The number of a frame that is already there.
    pub(crate) fn pending(&self) -> Option<u64> {
        match self.receive_with(libc::MSG_DONTWAIT) {
            Ok(number) => Some(number),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn receive_with(&self, flags: i32) -> io::Result<u64> {
        let mut frame = [0u8; 2048];
        // SAFETY: the pointer and the length describe `frame`, which outlives the call.
        let length = unsafe {
            libc::recv(self.socket.as_raw_fd(), frame.as_mut_ptr().cast(), frame.len(), flags)
        };
        if length < 0 {
            return Err(io::Error::last_os_error());
        }
        assert!(length >= 22 && frame[12..14] == EXPERIMENTAL.to_be_bytes(), "a foreign frame");
        Ok(u64::from_be_bytes(frame[14..22].try_into().unwrap()))
    }
}

fn packet_socket(protocol: i32) -> OwnedFd {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers are passed.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, protocol) };
    check(fd).unwrap();
    // SAFETY: the call succeeded, so the descriptor is open and nobody else has it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn set_option<T>(socket: &OwnedFd, level: i32, option: i32, value: &T) {
    // SAFETY: the pointer and the length describe `value`, which outlives the call.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const *value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })
    .unwrap();
}

fn address(interface: &str, ethertype: u16) -> libc::sockaddr_ll {
    let name = CString::new(interface).unwrap();
    // SAFETY: the pointer is to a string that ends with zero and outlives the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    assert_ne!(index, 0, "{interface} exists");
    // SAFETY: all zeros is a value of this plain structure.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex = index as i32;
    address
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits until `condition` holds; gives up after half a minute, so that a failing test ends.
pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(30), "waited in vain until {what}");
        thread::yield_now();
    }
}
