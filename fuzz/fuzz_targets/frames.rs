//! Frames on a stream of bytes: however the stream is cut into pieces, the same messages come out, and
//! written again they are the same bytes.
//!
//! Input: the length of each piece but the last in an octet each, up to a zero; then the stream.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_runtime::frames::{Cutter, FrameError, LONGEST_FRAME, emit};

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|octet| *octet == 0).unwrap_or(input.len());
    let (lengths, stream) = input.split_at(end);
    let stream = stream.get(1..).unwrap_or(stream);
    let (whole, result) = cut(&[stream]);

    let mut pieces = Vec::new();
    let mut rest = stream;
    for len in lengths {
        let (piece, behind) = rest.split_at(usize::from(*len).min(rest.len()));
        pieces.push(piece);
        rest = behind;
    }
    pieces.push(rest);
    assert_eq!(cut(&pieces), (whole.clone(), result));

    let mut written = Vec::new();
    for (begin, message) in &whole {
        assert_eq!(*begin, written.len() as u64);
        assert!(emit(message, &mut written), "what was read can be written");
    }
    assert!(stream.starts_with(&written));
    assert_eq!(result.is_ok(), written.len() == stream.len());
});

type Messages = Vec<(u64, Vec<u8>)>;

fn cut(pieces: &[&[u8]]) -> (Messages, Result<(), FrameError>) {
    let (mut cutter, mut messages) = (Cutter::new(LONGEST_FRAME), Vec::new());
    for piece in pieces {
        let result = cutter.cut(piece, |begin, bytes| messages.push((begin, bytes.to_vec())));
        if result.is_err() {
            return (messages, result);
        }
    }
    (messages, cutter.end())
}
