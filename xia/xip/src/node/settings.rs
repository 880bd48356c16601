//! What a node is told before it starts; some of it may change later.

use std::path::PathBuf;

use weft_base::Random;
use weft_keys::{PrivateKey, SharedSecret};

use super::{PacketIo, Scope};
use crate::forward::Limits;

/// What a node is, but for its interfaces, principals and protocols.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node's name.
    pub name: String,
    /// The path of the socket for applications.
    pub socket: PathBuf,
    /// Bounds on the work that one packet can cause.
    pub limits: Limits,
    /// Whether the node answers echo requests.
    pub echo: bool,
    /// By which sockets interfaces give and take packets.
    pub packet_io: PacketIo,
    /// The node's own address.
    pub scope: Scope,
    /// The user that may give commands, besides root.
    pub operator: u32,
    /// The key whose hash is the node's identity, for protocols that prove it.
    pub key: Option<PrivateKey>,
}

/// What holds for all of a node and may change while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) limits: Limits,
    pub(super) echo: bool,
    pub(super) scope: Scope,
    pub(super) packet_io: PacketIo,
}

impl Settings {
    /// What of these may change.
    pub(super) fn whole(&self) -> Whole {
        Whole {
            limits: self.limits,
            echo: self.echo,
            scope: self.scope.clone(),
            packet_io: self.packet_io,
        }
    }

    pub(super) fn set_whole(&mut self, whole: Whole) {
        Whole {
            limits: self.limits,
            echo: self.echo,
            scope: self.scope,
            packet_io: self.packet_io,
        } = whole;
    }

    /// What the node's choice between gateways depends on: the same whenever it starts, and another at every other
    /// node. Nobody can guess it if the node has a key.
    pub(super) fn spread_seed(&self) -> u64 {
        match &self.key {
            Some(key) => {
                let tag = SharedSecret::from_bytes(*key.seed()).tag(b"weft-xip: spread");
                tag.iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
            }
            None => Random::from_seed(0).fork(&self.name).number(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(name: &str, key: Option<u8>) -> u64 {
        let settings = Settings {
            name: name.to_owned(),
            socket: PathBuf::new(),
            limits: Limits::default(),
            echo: true,
            packet_io: PacketIo::default(),
            scope: Scope::default(),
            operator: 0,
            key: key.map(|byte| PrivateKey::from_seed([byte; 32])),
        };
        settings.spread_seed()
    }

    /// Another seed would send what is under way over other gateways, and packets would overtake one another.
    #[test]
    fn a_node_chooses_gateways_as_it_did_before_and_as_no_other_does() {
        assert_eq!(seed("r1", None), 0x7783_2ae2_37d8_e311);
        assert_eq!(seed("r1", Some(1)), 0xeb6e_f6a6_3f43_908d);
        assert_eq!(seed("r1", Some(1)), seed("r2", Some(1)), "the key is what names the node");
        assert_ne!(seed("r1", None), seed("r2", None));
        assert_ne!(seed("r1", Some(1)), seed("r1", Some(2)));
    }
}
