//! Ports that another process has.
//!
//! Interfaces come and go, so a node waits for what is not there. A UDP address that is taken when the
//! node starts is another matter: most likely a second node was given the address of the first, and
//! would wait for its end.

use weft_port::{OpenError, Options, PortSpec};

/// Says which of the ports that the node called `name` asks for belongs to another process.
///
/// # Errors
/// A sentence that names the address and how to find its owner.
pub(super) fn check<'a>(
    name: &str,
    mut ports: impl Iterator<Item = &'a PortSpec>,
) -> Result<(), String> {
    ports.try_for_each(|spec| match weft_port::open(spec, &Options::default()) {
        Err(error @ OpenError::AddressInUse { .. }) => {
            Err(format!("node {name} cannot start: {error}"))
        }
        // What else is in the way may be gone soon; the node reports it and tries again.
        Ok(_) | Err(_) => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn only_an_address_that_somebody_has_is_in_the_way() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let taken = socket.local_addr().unwrap();
        let specs = [
            PortSpec::Udp { local: "127.0.0.1:0".parse().unwrap() },
            PortSpec::Udp { local: "192.0.2.1:13781".parse().unwrap() },
            PortSpec::Udp { local: taken },
        ];
        assert_eq!(check("r1", specs[..2].iter()), Ok(()));
        let text = check("r1", specs.iter()).unwrap_err();
        for part in ["node r1", &taken.to_string(), "ss -ulpn"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
