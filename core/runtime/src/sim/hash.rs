//! The trace hash: one number that stands for everything nodes received from links.
//!
//! Two runs with equal hashes took the same course. The hash is a chain: time, node and the XXH64 of
//! the packet's bytes are mixed into it in turn with XXH64's own round and final functions. XXH64 is
//! fast (a large run hashes tens of gigabytes), has a public specification and test vectors, and
//! works on little-endian 64-bit arithmetic alone, so that builds and machines agree. It finds
//! accidents, not forgeries.
//!
//! Bytes are hashed when they are put on the wire, where they are still in the processor's cache,
//! and enter the chain when they are received.
//!
//! Reference: Y. Collet, "xxHash fast digest algorithm", specification version 0.1.1, "XXH64
//! algorithm description".

use weft_base::Instant;

const PRIME_1: u64 = 0x9e37_79b1_85eb_ca87;
const PRIME_2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const PRIME_3: u64 = 0x1656_67b1_9e37_79f9;
const PRIME_4: u64 = 0x85eb_ca77_c2b2_ae63;
const PRIME_5: u64 = 0x27d4_eb2f_1656_67c5;

/// Bytes that the four lanes take in one step.
const STRIPE: usize = 32;

/// A chain of hashed receptions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TraceHash(u64);

impl TraceHash {
    /// Adds the reception of bytes with this [`digest`] by the node numbered `node` at `time`.
    pub(super) fn feed(&mut self, time: Instant, node: u32, digest: u64) {
        let words = [time.as_nanos(), u64::from(node), digest];
        self.0 = avalanche(words.into_iter().fold(self.0, round));
    }

    /// The hash of everything fed so far; zero if nothing was.
    pub(super) fn value(self) -> u64 {
        self.0
    }
}

/// What stands for `bytes` in the chain.
pub(super) fn digest(bytes: &[u8]) -> u64 {
    xxh64(bytes, 0)
}

/// XXH64 of `bytes` with `seed`.
pub(super) fn xxh64(bytes: &[u8], seed: u64) -> u64 {
    let (stripes, tail) = bytes.split_at(bytes.len() - bytes.len() % STRIPE);
    let start = if stripes.is_empty() {
        seed.wrapping_add(PRIME_5)
    } else {
        converge(consume(stripes, seed))
    };
    let hash = start.wrapping_add(bytes.len() as u64);
    avalanche(consume_tail(tail, hash))
}

/// Steps 1 and 2 of the specification: four lanes over whole stripes.
fn consume(stripes: &[u8], seed: u64) -> [u64; 4] {
    let mut lanes = [
        seed.wrapping_add(PRIME_1).wrapping_add(PRIME_2),
        seed.wrapping_add(PRIME_2),
        seed,
        seed.wrapping_sub(PRIME_1),
    ];
    let (stripes, _) = stripes.as_chunks::<STRIPE>();
    for stripe in stripes {
        let (words, _) = stripe.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = round(*lane, u64::from_le_bytes(*word));
        }
    }
    lanes
}

/// Step 3: the lanes become one number.
fn converge(lanes: [u64; 4]) -> u64 {
    let [a, b, c, d] = lanes;
    let sum = a
        .rotate_left(1)
        .wrapping_add(b.rotate_left(7))
        .wrapping_add(c.rotate_left(12))
        .wrapping_add(d.rotate_left(18));
    lanes
        .into_iter()
        .fold(sum, |hash, lane| (hash ^ round(0, lane)).wrapping_mul(PRIME_1).wrapping_add(PRIME_4))
}

/// Step 5: what is left over, in words of eight, four and one bytes.
fn consume_tail(tail: &[u8], mut hash: u64) -> u64 {
    let (words, tail) = tail.as_chunks::<8>();
    for word in words {
        hash ^= round(0, u64::from_le_bytes(*word));
        hash = hash.rotate_left(27).wrapping_mul(PRIME_1).wrapping_add(PRIME_4);
    }
    let (halves, tail) = tail.as_chunks::<4>();
    for half in halves {
        hash ^= u64::from(u32::from_le_bytes(*half)).wrapping_mul(PRIME_1);
        hash = hash.rotate_left(23).wrapping_mul(PRIME_2).wrapping_add(PRIME_3);
    }
    for byte in tail {
        hash ^= u64::from(*byte).wrapping_mul(PRIME_5);
        hash = hash.rotate_left(11).wrapping_mul(PRIME_1);
    }
    hash
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(PRIME_2)).rotate_left(31).wrapping_mul(PRIME_1)
}

/// Step 6: every input bit reaches every output bit.
fn avalanche(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(PRIME_2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(PRIME_3);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_published_values() {
        // Values that the reference program `xxhsum -H1` prints, as found in many implementations.
        assert_eq!(xxh64(b"", 0), 0xef46_db37_51d8_e999);
        assert_eq!(xxh64(b"a", 0), 0xd24e_c4f1_a98c_6e5b);
        assert_eq!(xxh64(b"abc", 0), 0x44bc_2cf5_ad77_0999);
        assert_eq!(xxh64(b"Nobody inspects the spammish repetition", 0), 0xfbce_a83c_8a37_8bf1);
    }

    #[test]
    fn time_node_bytes_and_order_all_matter() {
        let hash = |feeds: &[(u64, u32, &[u8])]| {
            let mut trace = TraceHash::default();
            for (time, node, bytes) in feeds {
                trace.feed(Instant::from_nanos(*time), *node, digest(bytes));
            }
            trace.value()
        };
        let base = hash(&[(1, 2, b"x"), (1, 3, b"x")]);
        assert_eq!(base, hash(&[(1, 2, b"x"), (1, 3, b"x")]));
        assert_ne!(base, hash(&[(2, 2, b"x"), (1, 3, b"x")]));
        assert_ne!(base, hash(&[(1, 3, b"x"), (1, 2, b"x")]));
        assert_ne!(base, hash(&[(1, 2, b"y"), (1, 3, b"x")]));
        assert_ne!(base, hash(&[(1, 2, b"x")]));
        assert_eq!(hash(&[]), 0);
    }
}
