//! What a node needs the system's permission for.
//!
//! Reference: packet(7), capabilities(7).

use std::io;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Opens a packet socket as interfaces need it, receives nothing from it and closes it again.
///
/// # Errors
/// `PermissionDenied` without CAP_NET_RAW.
pub(crate) fn open_packet_socket() -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC;
    Ok(socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None).map(drop)?)
}

/// Says what the node called `name` lacks for its `interfaces`. Permission does not come by waiting,
/// in contrast to an interface that is not there yet.
///
/// # Errors
/// A sentence that names the capability and what to do.
pub(super) fn check(name: &str, interfaces: &[&str]) -> Result<(), String> {
    if interfaces.is_empty() {
        return Ok(());
    }
    judge(name, interfaces, open_packet_socket())
}

fn judge(name: &str, interfaces: &[&str], opened: io::Result<()>) -> Result<(), String> {
    let which = match interfaces {
        [one] => format!("the interface {one}"),
        many => format!("the interfaces {}", many.join(", ")),
    };
    opened.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "node {name} may not open {which}: this process lacks the capability CAP_NET_RAW; start \
             it with `sudo weft run`, and see `weft doctor` for other ways"
        ),
        _ => format!(
            "node {name} cannot open {which}: this system has no packet sockets ({error}); \
             `weft doctor` tells how to mend it"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_capability_the_sentence_names_it_and_the_way_out() {
        let refused = || Err(io::ErrorKind::PermissionDenied.into());
        let text = judge("r1", &["eth0"], refused()).unwrap_err();
        for part in
            ["node r1", "the interface eth0:", "CAP_NET_RAW", "sudo weft run", "weft doctor"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = judge("r1", &["eth0", "eth1"], refused()).unwrap_err();
        assert!(text.contains("the interfaces eth0, eth1:"), "{text}");
    }

    #[test]
    fn other_failures_are_not_called_a_lack_of_privileges() {
        let unsupported = Err(io::ErrorKind::Unsupported.into());
        let text = judge("r1", &["eth0"], unsupported).unwrap_err();
        assert!(text.contains("no packet sockets") && !text.contains("sudo"), "{text}");
    }

    #[test]
    fn a_node_without_interfaces_needs_no_permission() {
        assert_eq!(check("r1", &[]), Ok(()));
    }
}
