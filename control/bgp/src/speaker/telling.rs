//! What peers are told leaves in pieces, and is not made long before it can leave.
//!
//! Reference: Handley et al. (XORP), §5.1.1 (each peer is told at its own pace).
//!
//! What this process sends leaves when everything that has come with one wake-up was heard, and only then does it show which
//! sockets are full. That may be hundreds of things, and after each of them a thousand peers could be told more. So some megabytes are
//! made at once, and what is still to be told waits for the next slice of background work, before which what was made
//! leaves. Whoever has little to say, says it at once.

use std::collections::BTreeMap;

use weft_base::{Buffer, Instant};
use weft_routing::OriginId;
use weft_xrl::Output;

use super::{Activity, Bgp};
use crate::fanout::Sending;

/// Bytes of messages that a peer is sent in one piece.
const PIECE: usize = 16 << 10;
/// Bytes for all peers together from which on nothing more is made before the next slice.
pub(super) const AHEAD: usize = 2 << 20;

/// How much was made since the last slice, in bytes.
#[derive(Debug, Default)]
pub(super) struct Ahead(usize);

impl Ahead {
    /// What was made has left, as far as it can.
    pub(super) fn begin(&mut self) {
        self.0 = 0;
    }

    fn is_far(&self) -> bool {
        self.0 >= AHEAD
    }
}

impl Bgp {
    /// Tells peers some of what they have not heard.
    pub(super) fn tell_peers(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.ahead.is_far() || !self.fanout.has_work(&self.routes) {
            return;
        }
        let sendings = self.fanout.tell(&mut self.routes);
        self.counters.add(Activity::Told, sendings.len() as u64);
        let mut by_peer: BTreeMap<OriginId, Vec<&[u8]>> = BTreeMap::new();
        for Sending { to, bytes } in &sendings {
            to.iter().for_each(|origin| by_peer.entry(*origin).or_default().push(bytes));
        }
        for (origin, said) in by_peer {
            let Some(address) = self.by_origin.get(&origin).copied() else { continue };
            for piece in pieces(&said) {
                self.ahead.0 += piece.len();
                self.with_peer(now, address, out, |peer, world| peer.tell(piece, world));
            }
        }
    }
}

/// Puts together what stands one behind the other: it takes one call of the system, and no more memory than it is long.
fn pieces(mut said: &[&[u8]]) -> Vec<Buffer> {
    let mut pieces = Vec::new();
    while !said.is_empty() {
        let mut len = 0;
        let fits = |one: &&&[u8]| {
            len += one.len();
            len <= PIECE
        };
        let (first, rest) = said.split_at(said.iter().take_while(fits).count().max(1));
        let mut piece = Buffer::with_capacity(first.iter().map(|one| one.len()).sum());
        first.iter().for_each(|one| piece.extend(one));
        pieces.push(piece);
        said = rest;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_as_long_as_one_may_be_or_one_part() {
        let parts = [vec![1; PIECE - 1], vec![2; 1], vec![3; 1], vec![4; PIECE + 5], vec![5; 3]];
        let said: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let pieces = pieces(&said);
        let lens: Vec<_> = pieces.iter().map(Buffer::len).collect();
        assert_eq!(lens, [PIECE, 1, PIECE + 5, 3]);
        let joined: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes().to_vec()).collect();
        assert_eq!(joined, parts.concat());
    }
}
