//! The stack's ends of a flow's rings, and an application that writes what it wants into the shared memory.
//!
//! Input: a byte that says whether the flow carries datagrams (even) or a stream, and then steps of four
//! bytes: what to do, where, and a number in two octets, little-endian (see `Step`). Whatever the
//! application does, the stack is told of what it can have, or that the application is hostile; it never
//! panics, reads beyond, or goes on for ever.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_flow::ring::{Hostile, Memory, Reader, Writer};
use weft_flow::testing::{CONTROL_BYTES, DATA_BEGIN, Scribbler, stack_side};
use weft_flow::{Kind, LONGEST};

/// Bytes of a line, which holds one word.
const LINE: usize = 128;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, steps)) = bytes.split_first() else { return };
    let kind = if first % 2 == 0 { Kind::Datagram } else { Kind::Stream };
    let (mut writer, mut reader, scribbler) = stack_side(kind);
    for step in steps.as_chunks::<4>().0 {
        let [what, place, low, high] = *step;
        let number = u16::from_le_bytes([low, high]);
        let word = usize::from(place) % (CONTROL_BYTES / LINE) * LINE;
        match what % 8 {
            // A word gets a value near zero, or near the largest there is.
            0 => put(&scribbler, word, u64::from(number)),
            1 => put(&scribbler, word, u64::MAX - u64::from(number)),
            // A word moves, as an application that keeps the rules would move it, or back.
            2 => add(&scribbler, word, u64::from(number) * 8),
            3 => add(&scribbler, word, u64::from(number).wrapping_neg()),
            // A length, or any four bytes.
            4 => {
                let at = DATA_BEGIN + usize::from(place) * 8;
                scribbler.scribble(at, &u32::from(number).to_le_bytes());
            }
            5 => scribbler.scribble(usize::from(number) * 5, &[what, place, low, high]),
            6 => {
                if read(kind, &mut reader, usize::from(number)).is_err() {
                    return;
                }
            }
            _ => {
                if write(kind, &mut writer, usize::from(number)).is_err() {
                    return;
                }
            }
        }
    }
});

fn put(scribbler: &Scribbler, word: usize, value: u64) {
    scribbler.scribble(word, &value.to_le_bytes());
}

fn add(scribbler: &Scribbler, word: usize, more: u64) {
    let mut bytes = [0; 8];
    scribbler.look(word, &mut bytes);
    put(scribbler, word, u64::from_le_bytes(bytes).wrapping_add(more));
}

/// The stack receives a few messages, or bytes, and goes to sleep if there are no more.
fn read(kind: Kind, reader: &mut Reader<impl Memory>, count: usize) -> Result<(), Hostile> {
    let mut buffer = [0; LONGEST];
    match kind {
        Kind::Datagram => {
            for _ in 0..count % 8 {
                let Some(len) = reader.next_len()? else { break };
                assert!((1..=LONGEST).contains(&len), "a datagram of {len} bytes");
                assert_eq!(reader.next_len()?, Some(len), "its length is another one now");
                reader.take(&mut buffer[..len]);
            }
        }
        Kind::Stream => {
            let ready = reader.ready()?;
            assert!(ready <= 4096, "{ready} bytes in the smallest ring");
            let len = reader.read(&mut buffer[..count]);
            assert_eq!(len, count.min(ready));
        }
    }
    let _ = reader.release();
    let asked = reader.ask()?;
    assert!((-1..=1).contains(&asked.owed));
    Ok(())
}

/// The stack sends a message, or bytes, and waits for room if there is none.
fn write(kind: Kind, writer: &mut Writer<impl Memory>, len: usize) -> Result<(), Hostile> {
    let bytes = [7; LONGEST];
    let sent = match kind {
        Kind::Datagram => writer.put(&bytes[..=len])?,
        Kind::Stream => {
            let sent = writer.append(&bytes[..len])?;
            assert!(sent <= len.min(4096));
            sent > 0
        }
    };
    let _ = writer.publish();
    if !sent {
        let _ = writer.ask(len + 1)?;
    }
    Ok(())
}
