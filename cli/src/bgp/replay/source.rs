//! What a file in the form of MRT says, step by step.
//!
//! Of a table each prefix is announced as one of its peers has: the first that is there, or one that is asked for. Messages are
//! those of one peer: what several say of a prefix is no announcement of anybody.
//!
//! Reference: RFC 6396 §4.3, §4.4.

use std::collections::VecDeque;
use std::io::Read;
use std::net::IpAddr;

use weft_bgp::mrt::{Message, MrtError, PeerTable, Record, Records, Rib};
use weft_bgp::wire::{
    Attributes, Context, Disposition, Families, Family, HEADER_LEN, MessageType, Neighbour, Update,
};
use weft_routing::Prefix;

/// One thing to tell a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Announce(Family, Prefix, Box<Attributes>),
    Withdraw(Family, Prefix),
}

/// The steps of a file.
pub(super) struct Source<R> {
    records: Records<R>,
    /// Whose routes are told; the first that is there of each prefix if this is empty.
    from: Vec<IpAddr>,
    /// The peer whose messages are told, once there was one.
    speaker: Option<IpAddr>,
    peers: Option<PeerTable>,
    steps: VecDeque<Step>,
    /// Records of others, or of what is not told.
    passed_over: u64,
}

impl<R: Read> Source<R> {
    pub(super) fn new(file: R, from: &[IpAddr]) -> Self {
        Self {
            records: Records::new(file),
            from: from.to_vec(),
            speaker: None,
            peers: None,
            steps: VecDeque::new(),
            passed_over: 0,
        }
    }

    /// How many records have told nothing.
    pub(super) fn passed_over(&self) -> u64 {
        self.passed_over + self.records.passed_over()
    }

    fn read(&mut self, record: Record) -> Result<(), String> {
        let before = self.steps.len();
        match record {
            Record::Peers(table) => {
                self.check(&table)?;
                self.peers = Some(table);
                return Ok(());
            }
            Record::Rib(rib) => self.rib(rib),
            Record::Message(message) => self.message(&message),
        }
        self.passed_over += u64::from(self.steps.len() == before);
        Ok(())
    }

    /// Those that are asked for must be there.
    fn check(&self, table: &PeerTable) -> Result<(), String> {
        let is_there = |one: &&IpAddr| table.peers.iter().any(|peer| peer.address == **one);
        let Some(missing) = self.from.iter().find(|one| !is_there(one)) else { return Ok(()) };
        let there: Vec<_> =
            table.peers.iter().take(10).map(|peer| peer.address.to_string()).collect();
        let more = if table.peers.len() > 10 { ", and more" } else { "" };
        let count = table.peers.len();
        Err(format!("it has no peer {missing}: there are {count}: {}{more}", there.join(", ")))
    }

    fn rib(&mut self, rib: Rib) {
        let Rib { family, prefix, entries, .. } = rib;
        let peers = self.peers.as_ref().map_or(&[][..], |table| &table.peers);
        let is_from = |number: u16, one: IpAddr| {
            peers.get(usize::from(number)).is_some_and(|peer| peer.address == one)
        };
        let place = match self.from.is_empty() {
            true => (!entries.is_empty()).then_some(0),
            false => self
                .from
                .iter()
                .find_map(|one| entries.iter().position(|entry| is_from(entry.peer, *one))),
        };
        if let Some(entry) = place.and_then(|place| entries.into_iter().nth(place)) {
            self.steps.push_back(Step::Announce(family, prefix, Box::new(entry.attributes)));
        }
    }

    fn message(&mut self, message: &Message) {
        let [peer, _] = message.addresses;
        let is_update = message.bytes.get(HEADER_LEN - 1) == Some(&MessageType::Update.code());
        let is_asked_for = self.from.is_empty() || self.from.contains(&peer);
        // Of several paths to a prefix a session without RFC 7911 cannot tell.
        if !is_update || message.is_sent || message.has_path_ids || !is_asked_for {
            return;
        }
        if *self.speaker.get_or_insert(peer) != peer {
            return;
        }
        // Where the peer was nobody knows here; from inside more attributes are right.
        let context = Context {
            families: Families::from_iter(Family::ALL),
            four_octet_as: message.four_octet_as,
            accept_as_sets: true,
            ..Context::new(Neighbour::Internal)
        };
        let body = message.bytes.get(HEADER_LEN..).unwrap_or_default();
        let Ok(update) = Update::new_checked(body, &context) else { return };
        let judged = update.judge(&context);
        for (family, nlri) in update.withdrawn() {
            self.steps.extend(nlri.iter().map(|(_, prefix)| Step::Withdraw(family, prefix)));
        }
        let is_usable = match judged.disposition {
            Disposition::Use | Disposition::DiscardAttributes => true,
            Disposition::TreatAsWithdraw => false,
            Disposition::DisableFamily { .. } | Disposition::ResetSession(_) => return,
        };
        for reach in update.reach() {
            let next_hop = reach.next_hop.or(judged.attributes.next_hop);
            let attributes = Attributes { next_hop, ..judged.attributes.clone() };
            self.steps.extend(reach.nlri.iter().map(|(_, prefix)| match is_usable {
                true => Step::Announce(reach.family, prefix, Box::new(attributes.clone())),
                false => Step::Withdraw(reach.family, prefix),
            }));
        }
    }
}

impl<R: Read> Iterator for Source<R> {
    type Item = Result<Step, String>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return Some(Ok(step));
            }
            let read = self.records.next()?.map_err(|error: MrtError| error.to_string());
            if let Err(why) = read.and_then(|(_, record)| self.read(record)) {
                return Some(Err(why));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_bgp::mrt::{Peer, RibEntry, emit_message, emit_peers, emit_rib};
    use weft_bgp::wire::{AsPath, NextHop, UpdateEncoder, withdraw};

    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn attributes(path: &[u32]) -> Attributes {
        Attributes {
            as_path: AsPath::from_sequence(path),
            next_hop: Some(NextHop::V4([192, 0, 2, 9].into())),
            ..Attributes::default()
        }
    }

    fn prefix(last: u8) -> Prefix {
        Prefix::new(&[10, last], 16).unwrap()
    }

    fn announce(last: u8, path: &[u32]) -> Step {
        Step::Announce(Family::IPV4_UNICAST, prefix(last), Box::new(attributes(path)))
    }

    /// Both peers announce 10.1.0.0/16, the other 10.2.0.0/16, too.
    fn table() -> Vec<u8> {
        let peer = |address, number| Peer {
            address,
            autonomous_system: number,
            identifier: [192, 0, 2, 1].into(),
        };
        let peers = vec![peer(ONE, 65_001), peer(OTHER, 65_002)];
        let table = PeerTable { collector: [192, 0, 2, 1].into(), view: String::new(), peers };
        let mut file = Vec::new();
        emit_peers(0, &table, &mut file);
        let entry = |peer: u16| RibEntry {
            peer,
            since: 0,
            path_id: None,
            attributes: attributes(&[65_001 + u32::from(peer)]),
        };
        for (sequence, peers) in [(1, &[0, 1][..]), (2, &[1])] {
            let rib = Rib {
                sequence,
                family: Family::IPV4_UNICAST,
                prefix: prefix(sequence as u8),
                entries: peers.iter().map(|peer| entry(*peer)).collect(),
            };
            emit_rib(0, &rib, &mut file);
        }
        file
    }

    fn steps(file: &[u8], from: &[IpAddr]) -> (Vec<Result<Step, String>>, u64) {
        let mut source = Source::new(file, from);
        (source.by_ref().collect(), source.passed_over())
    }

    #[test]
    fn of_each_prefix_the_first_entry_counts_or_that_of_a_peer_that_is_asked_for() {
        let file = table();
        let first = vec![Ok(announce(1, &[65_001])), Ok(announce(2, &[65_002]))];
        assert_eq!(steps(&file, &[]), (first.clone(), 0));
        assert_eq!(steps(&file, &[ONE]), (first[..1].to_vec(), 1));
        let other = vec![Ok(announce(1, &[65_002])), Ok(announce(2, &[65_002]))];
        assert_eq!(steps(&file, &[OTHER, ONE]), (other, 0));
        let (nobody, _) = steps(&file, &["192.0.2.3".parse().unwrap()]);
        let why = nobody[0].clone().unwrap_err();
        assert_eq!(why, "it has no peer 192.0.2.3: there are 2: 192.0.2.1, 192.0.2.2");
    }

    #[test]
    fn a_file_that_is_cut_off_says_where() {
        let file = table();
        let (steps, _) = steps(&file[..file.len() - 1], &[]);
        assert_eq!(steps.len(), 2);
        let why = steps[1].clone().unwrap_err();
        assert!(why.contains("the file ends within the record at byte "), "{why}");
    }

    #[test]
    fn messages_are_those_of_one_peer() {
        let context = Context::new(Neighbour::External);
        let message = |peer, bytes| Message {
            autonomous_systems: [65_001, 65_000],
            four_octet_as: true,
            is_sent: false,
            has_path_ids: false,
            addresses: [peer, "192.0.2.9".parse().unwrap()],
            bytes,
        };
        let mut update = Vec::new();
        UpdateEncoder::new(&attributes(&[65_001]), Family::IPV4_UNICAST, &context)
            .unwrap()
            .all([(0, prefix(1)), (0, prefix(2))], &mut update);
        let mut gone = Vec::new();
        withdraw(Family::IPV4_UNICAST, &context, [(0, prefix(1))], &mut gone);
        let mut file = Vec::new();
        for one in [message(ONE, update.clone()), message(OTHER, update), message(ONE, gone)] {
            emit_message(0, &one, &mut file);
        }
        let all = vec![
            Ok(announce(1, &[65_001])),
            Ok(announce(2, &[65_001])),
            Ok(Step::Withdraw(Family::IPV4_UNICAST, prefix(1))),
        ];
        assert_eq!(steps(&file, &[]), (all.clone(), 1));
        assert_eq!(steps(&file, &[OTHER]), (all[..2].to_vec(), 2));
    }
}
