//! RaptorQ for one block: symbols from bytes and bytes from symbols.
//!
//! Reference: RFC 6330 §5.3 (systematic encoder), §5.4 (decoders). The code itself is the `raptorq`
//! crate's; here are the limits that keep it from being asked the impossible, and a cache of encoding
//! plans: which row operations encode a block depends on K alone.

use std::collections::BTreeMap;

use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder,
    SourceBlockEncoder, SourceBlockEncodingPlan,
};

use crate::object::{ESI_END, MAX_BLOCK_SYMBOLS};

/// Plans kept at a time: a file needs two, one for its last block.
const MAX_PLANS: usize = 4;

/// Makes repair symbols.
#[derive(Default)]
pub(crate) struct Encoder {
    plans: BTreeMap<u16, SourceBlockEncodingPlan>,
}

impl Encoder {
    /// The repair symbols `first..first + count` of a block. Ids count on from the end of the id
    /// space at K; the block is padded with zeros to whole symbols.
    pub(crate) fn repair(
        &mut self,
        mut block: Vec<u8>,
        symbol_size: u16,
        first: u32,
        count: u32,
    ) -> Vec<(u32, Vec<u8>)> {
        let symbols = block.len().div_ceil(usize::from(symbol_size));
        let Ok(symbols @ 1..) = u16::try_from(symbols) else { return Vec::new() };
        block.resize(usize::from(symbols) * usize::from(symbol_size), 0);
        let parameters = parameters(symbol_size);
        let encoder =
            SourceBlockEncoder::with_encoding_plan(0, &parameters, &block, self.plan(symbols));
        drop(block);
        id_ranges(u32::from(symbols), first, count)
            .into_iter()
            .flat_map(|(from, count)| encoder.repair_packets(from - u32::from(symbols), count))
            .map(|packet| {
                let (id, symbol) = packet.split();
                (id.encoding_symbol_id(), symbol)
            })
            .collect()
    }

    fn plan(&mut self, symbols: u16) -> &SourceBlockEncodingPlan {
        if self.plans.len() >= MAX_PLANS && !self.plans.contains_key(&symbols) {
            self.plans.pop_first();
        }
        self.plans.entry(symbols).or_insert_with(|| SourceBlockEncodingPlan::generate(symbols))
    }
}

/// The repair ids `first..first + count`, cut where the 24-bit space ends and begins again at K.
fn id_ranges(symbols: u32, first: u32, count: u32) -> Vec<(u32, u32)> {
    let space = ESI_END - symbols;
    let count = count.min(space);
    let first = symbols + first.saturating_sub(symbols) % space;
    let before_end = count.min(ESI_END - first);
    [(first, before_end), (symbols, count - before_end)]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// The repair id that lies `steps` after `id`.
pub(crate) fn advance(symbols: u32, id: u32, steps: u32) -> u32 {
    let space = u64::from(ESI_END - symbols);
    let place = u64::from(id.saturating_sub(symbols)) + u64::from(steps);
    symbols + (place % space) as u32
}

/// The source symbols of a block of `symbols` symbols, from different symbols of it, or `None` if
/// they do not determine it. Ids must be below 2^24 and symbols of the right size; others are left
/// out.
pub(crate) fn decode(
    symbols: u32,
    symbol_size: u16,
    received: impl IntoIterator<Item = (u32, Vec<u8>)>,
) -> Option<Vec<u8>> {
    if !(1..=MAX_BLOCK_SYMBOLS).contains(&symbols) || symbol_size == 0 {
        return None;
    }
    let bytes = u64::from(symbols) * u64::from(symbol_size);
    let packets = received
        .into_iter()
        .filter(|(id, symbol)| *id < ESI_END && symbol.len() == usize::from(symbol_size))
        .map(|(id, symbol)| EncodingPacket::new(PayloadId::new(0, id), symbol));
    SourceBlockDecoder::new(0, &parameters(symbol_size), bytes).decode(packets)
}

/// What the code has to know of the object; its length plays no part for one block.
fn parameters(symbol_size: u16) -> ObjectTransmissionInformation {
    ObjectTransmissionInformation::new(0, symbol_size, 0, 1, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_base::Random;

    fn block(len: usize, seed: u64) -> Vec<u8> {
        let mut bytes = vec![0; len];
        Random::from_seed(seed).fill(&mut bytes);
        bytes
    }

    fn padded(mut bytes: Vec<u8>, size: usize) -> Vec<u8> {
        bytes.resize(bytes.len().div_ceil(size) * size, 0);
        bytes
    }

    /// K, encoding symbol id, and the symbol for 8-byte symbols of a block whose byte i is
    /// i² + 7i + 3 modulo 256. Computed with nanorq (sleepybishop/nanorq, commit b622dfa), an
    /// independent implementation of RFC 6330 in C.
    const NANORQ: &[(u32, u32, u64)] = &[
        (1, 1, 0x030b_1521_2f3f_5165),
        (1, 2, 0x4a6c_9255_e7ab_ac6b),
        (1, 3, 0xe3da_4a4e_acde_0d09),
        (10, 10, 0xc551_9476_6e0c_cc2e),
        (10, 11, 0xc7ad_7437_8380_f8bb),
        (10, 12, 0x5315_83e6_9a45_0d68),
        (10, 1000, 0xc4bb_3df4_66b6_e128),
        (10, 16_777_215, 0x4cae_6dbb_f8d2_3ee8),
        (11, 11, 0x7ff3_4fae_a4a3_6f8e),
        (11, 12, 0x54de_642a_8a9d_347a),
        (11, 13, 0x54ba_b66e_d725_e038),
        (11, 500, 0x0603_9097_27bb_eee9),
        (11, 16_777_210, 0xf7ed_33e5_4f3e_a87e),
        (200, 200, 0x7a3a_c349_8719_25af),
        (200, 201, 0x4a53_e853_68dd_e05b),
        (200, 4096, 0x640c_2563_2124_f4b2),
        (512, 512, 0x7a01_bb0f_15e8_fc48),
        (512, 513, 0x4a07_791c_f363_b9dc),
        (512, 100_000, 0xeb6d_d8b0_47af_d4bc),
    ];

    #[test]
    fn repair_symbols_are_those_of_another_implementation() {
        let mut encoder = Encoder::default();
        for (symbols, id, expected) in NANORQ {
            let block: Vec<u8> =
                (0..u64::from(symbols * 8)).map(|i| (i * i + 7 * i + 3) as u8).collect();
            let repair = encoder.repair(block, 8, *id, 1);
            assert_eq!(repair, [(*id, expected.to_be_bytes().to_vec())], "K = {symbols}");
        }
    }

    #[test]
    fn repair_symbols_alone_are_enough_for_every_small_block() {
        let mut encoder = Encoder::default();
        for symbols in 1..=40 {
            let bytes = block(symbols * 16 - 3, symbols as u64);
            let count = symbols as u32 + 4;
            let repair = encoder.repair(bytes.clone(), 16, symbols as u32, count);
            assert_eq!(repair.len(), count as usize);
            let decoded = decode(symbols as u32, 16, repair);
            assert_eq!(decoded, Some(padded(bytes, 16)), "K = {symbols}");
        }
    }

    #[test]
    fn the_code_is_systematic() {
        let bytes = block(50 * 8, 1);
        let source = bytes.chunks(8).enumerate().map(|(id, symbol)| (id as u32, symbol.to_vec()));
        assert_eq!(decode(50, 8, source), Some(bytes));
    }

    #[test]
    fn k_plus_two_symbols_almost_always_decode() {
        // RFC 6330 promises a failure rate of about 1e-6 at K + 2; the table of seeds is fixed.
        let mut encoder = Encoder::default();
        let mut random = Random::from_seed(9);
        let mut failed = 0;
        for seed in 0..200 {
            let bytes = block(100 * 4, seed);
            let mut symbols: Vec<_> = bytes
                .chunks(4)
                .enumerate()
                .map(|(id, symbol)| (id as u32, symbol.to_vec()))
                .collect();
            symbols.retain(|_| random.chance(7, 10));
            let missing = 100 - symbols.len() as u32;
            symbols.extend(encoder.repair(bytes.clone(), 4, 100 + seed as u32 * 1000, missing + 2));
            failed += usize::from(decode(100, 4, symbols) != Some(bytes));
        }
        assert_eq!(failed, 0);
    }

    #[test]
    fn repair_ids_start_again_at_k() {
        let mut encoder = Encoder::default();
        let bytes = block(64, 2);
        let symbols = encoder.repair(bytes.clone(), 8, ESI_END - 3, 6);
        let ids: Vec<_> = symbols.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [ESI_END - 3, ESI_END - 2, ESI_END - 1, 8, 9, 10]);
        assert_eq!(advance(8, ESI_END - 3, 4), 9);
        let more = encoder.repair(bytes.clone(), 8, advance(8, ESI_END - 3, 6), 4);
        assert_eq!(more[0].0, 11);
        assert_eq!(decode(8, 8, symbols.into_iter().chain(more)), Some(bytes));
    }

    #[test]
    fn too_few_or_impossible_symbols_give_nothing() {
        assert_eq!(decode(3, 4, [(0, vec![1; 4]), (1, vec![2; 4])]), None);
        assert_eq!(decode(1, 4, [(ESI_END, vec![1; 4])]), None);
        assert_eq!(decode(1, 4, [(0, vec![1; 5])]), None);
        assert_eq!(decode(0, 4, []), None);
        assert_eq!(decode(u32::MAX, 4, []), None);
        assert!(Encoder::default().repair(Vec::new(), 4, 0, 9).is_empty());
    }
}
