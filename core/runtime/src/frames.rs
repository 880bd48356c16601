//! Messages on a stream of bytes: each is a frame, which is its length and its bytes.
//!
//! The length is a `u32`, little-endian, and counts what follows it: 1 to [`LONGEST_FRAME`] bytes, of
//! strangers 1 to [`FIRST_FRAME`]. There is nothing else: no magic number, no checksum, no padding. A
//! stream ends between two frames.
//!
//! Nothing here does I/O: bytes go in as they come, in pieces of any size, and frames come out.

/// The longest message, in bytes (32 MiB).
pub const LONGEST_FRAME: usize = 32 << 20;
/// The longest message that is taken of whoever connects, before anybody knows who that is, in bytes
/// (1 MiB).
pub const FIRST_FRAME: usize = 1 << 20;
/// The bytes in front of each message: its length.
pub const HEADER: usize = 4;

/// Why a stream of frames cannot be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A length that no frame has.
    #[error("a frame says that it has {length} bytes: 1 to {longest} are allowed")]
    Length {
        /// What the frame says.
        length: u32,
        /// How many bytes are allowed.
        longest: usize,
    },
    /// The stream ended within a frame.
    #[error("the stream ends within a frame, {missing} bytes early")]
    CutOff {
        /// How many bytes are missing at least.
        missing: usize,
    },
}

/// Whether a message of `len` bytes can be a frame.
#[must_use]
pub fn fits(len: usize) -> bool {
    (1..=LONGEST_FRAME).contains(&len)
}

/// Appends `message` as a frame to `out`; false, and nothing happens, if it does not [fit](fits).
#[must_use]
pub fn emit(message: &[u8], out: &mut impl for<'a> Extend<&'a u8>) -> bool {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let fits = fits(message.len());
    if fits {
        out.extend(&length.to_le_bytes());
        out.extend(message);
    }
    fits
}

/// Cuts a stream of bytes into messages.
///
/// Bytes are copied only if their frame comes in more than one piece, and no memory is taken for what
/// a length promises before it is there.
#[derive(Debug)]
pub struct Cutter {
    /// The longest frame that is taken.
    longest: usize,
    /// The beginning of a frame whose end has not come, header included.
    partial: Vec<u8>,
    /// How many bytes of the stream have come.
    taken: u64,
    failed: Option<FrameError>,
}

impl Cutter {
    /// A cutter at the beginning of a stream, which takes frames of up to `longest` bytes.
    #[must_use]
    pub fn new(longest: usize) -> Self {
        Self { longest, partial: Vec::new(), taken: 0, failed: None }
    }

    /// Takes frames of up to `longest` bytes from now on; not fewer than until now.
    pub fn extend_to(&mut self, longest: usize) {
        self.longest = self.longest.max(longest);
    }

    /// Takes the next bytes of the stream and calls `message` for each message that they complete,
    /// with the position in the stream at which its frame begins.
    ///
    /// # Errors
    /// [`FrameError::Length`]. Messages before the bad frame were handed out; from then on there is
    /// the same error for whatever comes.
    pub fn cut(
        &mut self,
        bytes: &[u8],
        mut message: impl FnMut(u64, &[u8]),
    ) -> Result<(), FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut rest = bytes;
        let mut begin = self.begin();
        self.taken += bytes.len() as u64;
        if !self.partial.is_empty() {
            rest = self.complete(rest).map_err(|error| self.fail(error))?;
            let Some(whole) = frame(&self.partial, self.longest).ok().flatten() else {
                return Ok(());
            };
            message(begin, whole);
            begin += self.partial.len() as u64;
            self.partial.clear();
            // A long frame's memory is not kept for the short ones that follow.
            self.partial.shrink_to(KEPT);
        }
        while let Some(whole) = frame(rest, self.longest).map_err(|error| self.fail(error))? {
            message(begin, whole);
            let len = HEADER + whole.len();
            begin += len as u64;
            rest = &rest[len..];
        }
        self.partial.extend_from_slice(rest);
        Ok(())
    }

    /// The end of the stream.
    ///
    /// # Errors
    /// [`FrameError::CutOff`] if it is within a frame, and the error of [`Cutter::cut`], if there was
    /// one.
    pub fn end(&self) -> Result<(), FrameError> {
        match (self.failed, self.partial.is_empty()) {
            (Some(error), _) => Err(error),
            (None, true) => Ok(()),
            (None, false) => Err(FrameError::CutOff { missing: missing(&self.partial) }),
        }
    }

    /// The position in the stream at which the next frame begins, or began if a part of it has come.
    #[must_use]
    pub fn begin(&self) -> u64 {
        self.taken - self.partial.len() as u64
    }

    /// How many bytes of the stream have come.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Moves what `bytes` have of the partial frame there, and returns what is behind it.
    fn complete<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], FrameError> {
        let mut rest = bytes;
        // First what the header lacks, then what the frame lacks.
        for _ in 0..2 {
            let (now, later) = rest.split_at(missing(&self.partial).min(rest.len()));
            self.partial.extend_from_slice(now);
            rest = later;
            frame(&self.partial, self.longest)?;
        }
        Ok(rest)
    }

    fn fail(&mut self, error: FrameError) -> FrameError {
        self.failed = Some(error);
        // Nothing of it is used any more.
        self.partial = Vec::new();
        error
    }
}

/// Bytes of memory that a cutter keeps for frames that come in pieces.
const KEPT: usize = 64 << 10;

/// The length that a header at the front of `bytes` gives, if it is there.
fn length(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk::<HEADER>().map(|header| u32::from_le_bytes(*header))
}

/// The message of a frame at the front of `bytes`, if the frame is there as a whole.
fn frame(bytes: &[u8], longest: usize) -> Result<Option<&[u8]>, FrameError> {
    let Some(length) = length(bytes) else { return Ok(None) };
    match usize::try_from(length) {
        Ok(len) if (1..=longest).contains(&len) => Ok(bytes.get(HEADER..HEADER + len)),
        _ => Err(FrameError::Length { length, longest }),
    }
}

/// How many bytes a partial frame lacks at least: of its header, or else of its end.
fn missing(partial: &[u8]) -> usize {
    let len = length(partial).and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
    (HEADER + len).saturating_sub(partial.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Messages, and where their frames begin.
    type Messages = Vec<(u64, Vec<u8>)>;

    /// What comes out of a cutter that is given `pieces` one after the other.
    fn cut<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Messages, Result<(), FrameError>) {
        let (mut cutter, mut messages) = (Cutter::new(LONGEST_FRAME), Vec::new());
        for piece in pieces {
            let result = cutter.cut(piece, |begin, bytes| messages.push((begin, bytes.to_vec())));
            if result.is_err() {
                assert_eq!(cutter.cut(b"more", |_, _| panic!("after an error")), result);
                return (messages, result);
            }
        }
        (messages, cutter.end())
    }

    fn stream(messages: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for message in messages {
            assert!(emit(message, &mut bytes));
        }
        bytes
    }

    #[test]
    fn a_frame_is_its_length_in_little_endian_and_its_bytes() {
        assert_eq!(stream(&[b"abc".to_vec(), vec![9]]), b"\x03\0\0\0abc\x01\0\0\0\x09");
    }

    #[test]
    fn lengths_out_of_range_are_refused_both_ways() {
        let mut out = Vec::new();
        assert!(!emit(b"", &mut out) && !emit(&vec![0; LONGEST_FRAME + 1], &mut out));
        assert!(out.is_empty() && emit(&vec![0; LONGEST_FRAME], &mut out));
        assert_eq!(cut([&out[..]]).0[0].1.len(), LONGEST_FRAME);
        for length in [0, LONGEST_FRAME as u32 + 1, u32::MAX] {
            let mut bytes = stream(&[b"before".to_vec()]);
            bytes.extend(length.to_le_bytes());
            for split in 0..=bytes.len() {
                let (messages, result) = cut([&bytes[..split], &bytes[split..]]);
                assert_eq!(messages, [(0, b"before".to_vec())]);
                assert_eq!(result, Err(FrameError::Length { length, longest: LONGEST_FRAME }));
            }
        }
    }

    #[test]
    fn an_end_within_a_frame_is_an_error_and_between_frames_is_none() {
        let bytes = stream(&[b"one".to_vec(), b"three".to_vec()]);
        for len in 0..=bytes.len() {
            let (messages, result) = cut([&bytes[..len]]);
            let missing = match len {
                0 | 7 | 16 => None,
                1..4 => Some(4 - len),
                4..7 => Some(7 - len),
                8..11 => Some(11 - len),
                _ => Some(16 - len),
            };
            assert_eq!(result.err(), missing.map(|missing| FrameError::CutOff { missing }));
            assert_eq!(messages.len(), usize::from(len >= 7) + usize::from(len >= 16));
        }
    }

    #[test]
    fn of_a_stranger_long_frames_are_refused() {
        let mut out = Vec::new();
        assert!(emit(&vec![0; FIRST_FRAME], &mut out));
        let len = out.len();
        assert!(emit(&vec![0; FIRST_FRAME + 1], &mut out));
        let mut stranger = Cutter::new(FIRST_FRAME);
        let error = FrameError::Length { length: FIRST_FRAME as u32 + 1, longest: FIRST_FRAME };
        assert_eq!(stranger.cut(&out, |_, _| ()), Err(error));
        let mut known = Cutter::new(FIRST_FRAME);
        let mut count = 0;
        known.cut(&out[..len], |_, _| count += 1).unwrap();
        known.extend_to(LONGEST_FRAME);
        known.cut(&out[len..], |_, _| count += 1).unwrap();
        assert_eq!(count, 2);
    }

    #[test]
    fn a_long_frame_takes_memory_only_as_it_comes() {
        let mut cutter = Cutter::new(LONGEST_FRAME);
        cutter.cut(&(LONGEST_FRAME as u32).to_le_bytes(), |_, _| ()).unwrap();
        assert!(cutter.partial.capacity() < 64);
        cutter.cut(&vec![1; LONGEST_FRAME], |_, _| ()).unwrap();
        assert!(cutter.partial.capacity() <= KEPT);
    }

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in_wherever_the_stream_is_split(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8)
        ) {
            let bytes = stream(&messages);
            let mut begin = 0;
            let expected: Vec<_> = messages.into_iter().map(|message| {
                let at = begin;
                begin += (HEADER + message.len()) as u64;
                (at, message)
            }).collect();
            for split in 0..=bytes.len() {
                let (got, result) = cut([&bytes[..split], &bytes[split..]]);
                prop_assert_eq!(&got, &expected);
                prop_assert_eq!(result, Ok(()));
            }
            let (got, _) = cut(bytes.chunks(1));
            prop_assert_eq!(got, expected);
        }

        #[test]
        fn any_bytes_in_any_pieces_give_what_they_give_in_one(
            bytes in prop::collection::vec(prop_oneof![0_u8..3, any::<u8>()], 0..200),
            pieces in prop::collection::vec(1_usize..9, 1..40),
        ) {
            let mut rest = &bytes[..];
            let mut cuts = Vec::new();
            for len in pieces.into_iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at(len.min(rest.len()));
                cuts.push(now);
                rest = later;
            }
            prop_assert_eq!(cut(cuts), cut([&bytes[..]]));
        }
    }
}
