//! The kernel's settings in a namespace, so that a lab is the same on every machine.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::namespace::Namespace;
use crate::LabError;
use crate::sys::{Offload, switch_off};

/// Settings of a new namespace, before it gets interfaces.
///
/// A new namespace copies the IPv4 settings of the machine. Filtering by reverse path would drop
/// packets of asymmetric routes, and redirects would change routes behind the lab's back.
const ALWAYS: &[(&str, &str)] = &[
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/conf/default/rp_filter", "0"),
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/default/send_redirects", "0"),
    ("ipv4/conf/all/accept_redirects", "0"),
    ("ipv4/conf/default/accept_redirects", "0"),
];

/// Without them each interface sends router solicitations and duplicate address detection. The files
/// are missing where the kernel has no IPv6.
const NO_IPV6: &[&str] = &["ipv6/conf/all/disable_ipv6", "ipv6/conf/default/disable_ipv6"];

/// Applies the settings to a namespace; only a router forwards IPv4.
pub(crate) fn apply(namespace: &Namespace, forwards: bool) -> Result<(), LabError> {
    namespace.inside(|| {
        let forward = ("ipv4/ip_forward", if forwards { "1" } else { "0" });
        for (name, value) in ALWAYS.iter().copied().chain([forward]) {
            write(name, value)?;
        }
        for name in NO_IPV6.iter().filter(|name| path(name).exists()) {
            write(name, "1")?;
        }
        Ok(())
    })?
}

/// What an interface with an address of IPv6 has, beside it: nothing that comes by itself but its link-local address,
/// and that at once.
const IPV6: &[(&str, &str)] = &[
    ("accept_ra", "0"),
    ("router_solicitations", "0"),
    ("accept_dad", "0"),
    ("disable_ipv6", "0"),
];

/// Lets interfaces speak IPv6; a router forwards it. Does nothing without an interface.
pub(crate) fn switch_ipv6_on(
    namespace: &Namespace,
    interfaces: &[&str],
    forwards: bool,
) -> Result<(), LabError> {
    if interfaces.is_empty() {
        return Ok(());
    }
    namespace.inside(|| {
        if forwards {
            write("ipv6/conf/all/forwarding", "1")?;
        }
        let settings = |interface| IPV6.iter().map(move |setting| (interface, setting));
        for (interface, (name, value)) in interfaces.iter().chain([&"lo"]).flat_map(settings) {
            write(&format!("ipv6/conf/{interface}/{name}"), value)?;
        }
        Ok(())
    })?
}

fn path(name: &str) -> PathBuf {
    Path::new("/proc/sys/net").join(name)
}

fn write(name: &str, value: &str) -> Result<(), LabError> {
    let path = path(name);
    fs::write(&path, value).map_err(LabError::disk("write", path))
}

/// Switches off what interfaces leave undone for a device that is not there.
///
/// Frames that user-space programs read must have their checksums, and loss must strike packets, not
/// bundles of them that were never cut.
pub(crate) fn switch_off_offloads(
    namespace: &Namespace,
    interfaces: &[&str],
) -> Result<(), LabError> {
    let all = [Offload::TransmitChecksum, Offload::TcpSegmentation, Offload::GenericSegmentation];
    let work = || -> io::Result<()> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
        for interface in interfaces {
            for offload in all {
                switch_off(socket.as_fd(), interface, offload)?;
            }
        }
        Ok(())
    };
    let action = format!("switch the offloads of {} off", interfaces.join(", "));
    namespace.inside(work)?.map_err(LabError::system(action))
}
