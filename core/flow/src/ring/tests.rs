use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::layout::Kind;
use crate::testing::{CONTROL_BYTES, DATA_BEGIN, both_sides, stack_side};

/// What a well-behaved pair does.
#[derive(Clone, Debug)]
enum Step {
    Put(usize),
    Publish,
    Take,
    Release,
    ReaderAsks,
    WriterAsks(usize),
}

fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![1..100_usize, 1..=LONGEST, Just(LONGEST), Just(1)]
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => lengths().prop_map(Step::Put),
        2 => Just(Step::Publish),
        4 => Just(Step::Take),
        1 => Just(Step::Release),
        1 => Just(Step::ReaderAsks),
        1 => lengths().prop_map(Step::WriterAsks),
    ]
}

/// A message that differs from others of its length.
fn message(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + number * 13) as u8).collect()
}

/// What a ring of datagrams should do, without one.
#[derive(Default)]
struct Model {
    /// Written, and not seen by the reader.
    hidden: VecDeque<Vec<u8>>,
    visible: VecDeque<Vec<u8>>,
    /// Bytes of the ring that the writer cannot use.
    used: usize,
    /// Of those, bytes that were read.
    unreleased: usize,
    reader_asks: bool,
    writer_asks: bool,
}

proptest! {
    #[test]
    fn a_ring_of_datagrams_is_a_bounded_queue(steps in vec(steps(), 1..200)) {
        let ((mut writer, _), (_, mut reader)) = both_sides(Kind::Datagram);
        let capacity = Kind::Datagram.smallest() as usize;
        let mut model = Model { reader_asks: true, ..Model::default() };
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Put(len) => {
                    let message = message(number, len);
                    let fits = record(len) <= capacity - model.used;
                    prop_assert_eq!(writer.put(&message), Ok(fits));
                    if fits {
                        model.used += record(len);
                        model.hidden.push_back(message);
                    }
                }
                Step::Publish => {
                    let wakes = model.reader_asks && !model.hidden.is_empty();
                    prop_assert_eq!(writer.publish(), wakes);
                    model.reader_asks &= !wakes;
                    model.visible.append(&mut model.hidden);
                }
                Step::Take => {
                    let expected = model.visible.pop_front();
                    let len = reader.next_len().unwrap();
                    prop_assert_eq!(len, expected.as_ref().map(Vec::len));
                    if let Some(expected) = expected {
                        let mut bytes = vec![0; expected.len()];
                        reader.take(&mut bytes);
                        model.unreleased += record(expected.len());
                        prop_assert_eq!(bytes, expected);
                    }
                }
                Step::Release => {
                    let wakes = model.writer_asks && model.unreleased > 0;
                    prop_assert_eq!(reader.release(), wakes);
                    model.writer_asks &= !wakes;
                    model.used -= std::mem::take(&mut model.unreleased);
                }
                Step::ReaderAsks => {
                    if model.unreleased > 0 { continue }
                    let sleep = model.visible.is_empty();
                    let owed = i8::from(!model.reader_asks) - i8::from(!sleep);
                    prop_assert_eq!(reader.ask(), Ok(Asked { sleep, owed }));
                    model.reader_asks = sleep;
                }
                Step::WriterAsks(len) => {
                    if !model.hidden.is_empty() { continue }
                    let sleep = record(len) > capacity - model.used;
                    let owed = i8::from(!model.writer_asks) - i8::from(!sleep);
                    prop_assert_eq!(writer.ask(record(len)), Ok(Asked { sleep, owed }));
                    model.writer_asks = sleep;
                }
            }
        }
    }

    #[test]
    fn a_stream_is_the_same_bytes_whatever_the_pieces(
        pieces in vec((1..6000_usize, 1..6000_usize), 1..100),
    ) {
        let ((mut writer, _), (_, mut reader)) = both_sides(Kind::Stream);
        let (mut written, mut read) = (Vec::<u8>::new(), Vec::<u8>::new());
        for (number, (more, fewer)) in pieces.into_iter().enumerate() {
            let bytes = message(number, more);
            let taken = writer.append(&bytes).unwrap();
            written.extend(&bytes[..taken]);
            let _ = writer.publish();
            let ready = reader.ready().unwrap();
            // What was seen before is read first.
            prop_assert!(ready <= written.len() - read.len());
            prop_assert_eq!(ready == 0, written.len() == read.len());
            let mut buffer = vec![0; fewer];
            let len = reader.read(&mut buffer);
            prop_assert_eq!(len, fewer.min(ready));
            read.extend(&buffer[..len]);
            let _ = reader.release();
        }
        prop_assert_eq!(&read[..], &written[..read.len()]);
    }

    /// What the other side writes into the memory, wherever and whenever, is either refused or read
    /// as what it says.
    #[test]
    fn no_scribbling_makes_a_side_panic_or_read_beyond(
        datagrams: bool,
        scribbles in vec((any::<prop::sample::Index>(), any::<u64>(), 0..8_u8), 1..200),
    ) {
        let kind = if datagrams { Kind::Datagram } else { Kind::Stream };
        let (mut writer, mut reader, scribbler) = stack_side(kind);
        let mut buffer = vec![0; LONGEST];
        for (place, value, step) in scribbles {
            // Mostly where it matters: words of the control parts, and small values.
            let (at, value) = match step % 4 {
                0 => (place.index(scribbler.len), value),
                1 => (place.index(DATA_BEGIN), value),
                2 => (place.index(CONTROL_BYTES / 128) * 128, value % 262_144),
                _ => (place.index(CONTROL_BYTES / 128) * 128, value % 4096 * 8),
            };
            scribbler.scribble(at, &value.to_le_bytes());
            if serve(kind, &mut writer, &mut reader, &mut buffer).is_err() {
                return Ok(());
            }
        }
    }
}

/// What a stack does with a flow in one turn.
fn serve(
    kind: Kind,
    writer: &mut Writer<impl Memory>,
    reader: &mut Reader<impl Memory>,
    buffer: &mut [u8],
) -> Result<(), Hostile> {
    match kind {
        Kind::Datagram => {
            for _ in 0..4 {
                let Some(len) = reader.next_len()? else { break };
                assert!((1..=LONGEST).contains(&len));
                reader.take(&mut buffer[..len]);
                writer.put(&buffer[..len])?;
            }
        }
        Kind::Stream => {
            let ready = reader.ready()?;
            assert!(ready <= Kind::Stream.smallest() as usize);
            let len = reader.read(buffer);
            writer.append(&buffer[..len])?;
        }
    }
    let _ = (writer.publish(), reader.release());
    reader.ask()?;
    writer.ask(100)?;
    Ok(())
}

/// Where the words of the ring from the application lie.
const TAIL: usize = 0;
/// Where those of the other ring do: the head is its second.
const HEAD: usize = 512 + 128;

#[test]
fn an_index_that_goes_back_or_too_far_is_seen() {
    let capacity = u64::from(Kind::Datagram.smallest());
    for tail in [capacity + 8, u64::MAX, 1 << 63, 4] {
        let (_, mut reader, scribbler) = stack_side(Kind::Datagram);
        scribbler.scribble(TAIL, &tail.to_le_bytes());
        assert!(reader.next_len().is_err(), "{tail}");
    }
    for head in [17, 24, u64::MAX, capacity] {
        let (mut writer, _, scribbler) = stack_side(Kind::Datagram);
        let _ = (writer.put(b"published"), writer.publish());
        let _ = writer.put(&[7; LONGEST]);
        scribbler.scribble(HEAD, &head.to_le_bytes());
        assert!(writer.put(&[7; LONGEST]).is_err(), "{head}");
    }
    // Back, after it was somewhere else.
    let (_, mut reader, scribbler) = stack_side(Kind::Stream);
    scribbler.scribble(TAIL, &100_u64.to_le_bytes());
    assert_eq!(reader.ready(), Ok(100));
    reader.read(&mut [0; 100]);
    scribbler.scribble(TAIL, &92_u64.to_le_bytes());
    assert!(reader.ready().is_err());
}

#[test]
fn a_length_is_believed_only_if_the_bytes_are_there_and_only_once() {
    for len in [0, 13, LONGEST as u32 + 1, u32::MAX] {
        let (_, mut reader, scribbler) = stack_side(Kind::Datagram);
        scribbler.scribble(DATA_BEGIN, &len.to_le_bytes());
        scribbler.scribble(TAIL, &16_u64.to_le_bytes());
        assert!(reader.next_len().is_err(), "{len}");
    }
    let (_, mut reader, scribbler) = stack_side(Kind::Datagram);
    scribbler.scribble(DATA_BEGIN, &12_u32.to_le_bytes());
    scribbler.scribble(TAIL, &16_u64.to_le_bytes());
    assert_eq!(reader.next_len(), Ok(Some(12)));
    scribbler.scribble(DATA_BEGIN, &60_000_u32.to_le_bytes());
    assert_eq!(reader.next_len(), Ok(Some(12)));
    let mut bytes = [0; 12];
    reader.take(&mut bytes);
    assert_eq!(reader.next_len(), Ok(None));
}
