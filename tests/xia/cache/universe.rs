//! The XIDs and packets of the sequences: few, so that they meet.

use weft_xip::{Xid, XidType};

use super::world::World;

impl World {
    /// A packet whose entry node has some edges to XIDs of the universe.
    pub(super) fn new_packet(&mut self) -> Vec<u8> {
        let edges = 1 + self.random.below(4) as u8;
        let mut bytes = vec![1, 0, 0, 0, 64, edges, 0, 0x7e];
        for row in 0..edges {
            bytes.extend(self.any_xid().to_bytes());
            let last = row + 1 == edges;
            let edge = |slot: u8| if last && slot < edges { slot } else { 0x7f };
            bytes.extend([0, 1, 2, 3].map(edge));
        }
        bytes
    }

    pub(super) fn any_xid(&mut self) -> Xid {
        // Those that most principals lead to come more often.
        const KINDS: [XidType; 24] = [
            XidType::AD,
            XidType::AD,
            XidType::HID,
            XidType::HID,
            XidType::XDP,
            XidType::XDP,
            XidType::U4ID,
            XidType::U4ID,
            XidType::ZF,
            XidType::ZF,
            XidType::LPM,
            XidType::LPM,
            XidType::X4ID,
            XidType::X4ID,
            XidType::ETHER,
            XidType::ETHER,
            XidType::HID2,
            XidType::UNI4ID,
            XidType::I4ID,
            XidType::U6ID,
            XidType::I6ID,
            XidType::X6ID,
            weft_xia_example::NEAREST,
            XidType(0x9999),
        ];
        let kind = KINDS[self.random.below(KINDS.len() as u64) as usize];
        self.xid(kind)
    }

    /// One of few XIDs of a type.
    pub(super) fn xid(&mut self, kind: XidType) -> Xid {
        let of_hosts: Vec<_> = self.hosts.xids(kind).collect();
        if !of_hosts.is_empty() && self.random.chance(1, 3) {
            return of_hosts[self.random.below(of_hosts.len() as u64) as usize];
        }
        let number = self.random.below(4) as u8;
        let mut id = [0; 20];
        match kind {
            // 127.0.0.1:1 and so on: tunnels may end on this machine.
            XidType::U4ID => id[..6].copy_from_slice(&[127, 0, 0, number, 0, 1]),
            XidType::I4ID => id[..4].copy_from_slice(&[127, 0, 0, number]),
            // ::1 and so on, and a UDP port.
            XidType::U6ID => (id[15], id[17]) = (number, 1),
            XidType::I6ID => id[15] = number,
            XidType::UNI4ID => {
                id[..6].copy_from_slice(&[127, 0, 0, number, 0, 1]);
            }
            XidType::X6ID => id[..2].copy_from_slice(&[0x20, number]),
            XidType::ZF => id[19] = number,
            XidType::LPM => id[..4].copy_from_slice(&[10, number & 1, number >> 1, 1]),
            XidType::X4ID => id[..4].copy_from_slice(&[10, number & 1, number >> 1, 1]),
            // Two stations on each interface.
            XidType::ETHER => (id[3], id[4], id[9]) = (11 + (number & 1), 2, 5 + (number >> 1)),
            _ => id = [number + 1; 20],
        }
        Xid::new(kind, id)
    }
}
