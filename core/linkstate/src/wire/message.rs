//! Messages between two neighbours.

use super::{
    HEADER_LEN, LSA_HEADER_LEN, LsaView, Reader, TYPE_ACK, TYPE_GREETING, TYPE_HELLO, TYPE_SUMMARY,
    TYPE_UPDATE, VERSION, WireError, emit_header,
};
use crate::ids::{LsaHeader, NodeId};

/// A message that was checked. Whether it is the sender's is for the seal to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Who says so.
    pub sender: NodeId,
    /// The number that the sender has drawn for talking with this neighbour.
    pub session: u64,
    /// Different for each message of a session.
    pub counter: u64,
    /// Such as [`FLAG_COMPLETE`](super::FLAG_COMPLETE); unknown ones mean nothing.
    pub flags: u8,
    /// What is said.
    pub body: Body<'a>,
    /// What the seal is about.
    pub sealed: &'a [u8],
    /// That the sender said so.
    pub seal: &'a [u8],
}

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// "Here I am", before there is a session.
    Greeting {
        /// The receiver's session, as the sender has heard it; 0 if it has not.
        heard: u64,
        /// For how many milliseconds to believe that the sender is there.
        hold: u32,
    },
    /// "I am still here", in a session.
    Hello {
        /// For how many milliseconds to believe that; 0: no longer.
        hold: u32,
    },
    /// "This is what I have."
    Summary {
        /// Which of the summaries, from 0.
        index: u16,
        /// How many there are.
        count: u16,
        /// What the sender has.
        headers: Headers<'a>,
    },
    /// "This is new to you."
    Update(Lsas<'a>),
    /// "I have got this."
    Ack(Headers<'a>),
}

/// The headers of a summary or an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a>(&'a [u8]);

impl<'a> Headers<'a> {
    fn check(reader: Reader<'a>) -> Result<Self, WireError> {
        match reader.0.len() % LSA_HEADER_LEN {
            0 => Ok(Self(reader.0)),
            surplus => Err(WireError::Surplus(surplus)),
        }
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = LsaHeader> + use<'a> {
        let mut reader = Reader(self.0);
        std::iter::from_fn(move || reader.header().ok())
    }
}

/// The advertisements of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lsas<'a>(&'a [u8]);

impl<'a> Lsas<'a> {
    fn check(reader: Reader<'a>) -> Result<Self, WireError> {
        let mut rest = reader;
        while !rest.0.is_empty() {
            let len = rest.u16()?;
            LsaView::new_checked(rest.take(usize::from(len))?)?;
        }
        Ok(Self(reader.0))
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = LsaView<'a>> + use<'a> {
        let mut reader = Reader(self.0);
        std::iter::from_fn(move || {
            let len = reader.u16().ok()?;
            LsaView::new_checked(reader.take(usize::from(len)).ok()?).ok()
        })
    }
}

impl<'a> Message<'a> {
    /// Whether bytes say that they are a greeting, which costs the receiver the check of a proof. Carriers ask, where
    /// many links share a medium, so that they together cost no more than one.
    #[must_use]
    pub fn is_greeting(bytes: &[u8]) -> bool {
        bytes.starts_with(&[VERSION, TYPE_GREETING])
    }

    /// Views the front of `bytes` as a message; what lies behind it is padding.
    ///
    /// # Errors
    /// The bytes are no message; see [`WireError`].
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader(bytes);
        let version = reader.u8()?;
        if version != VERSION {
            return Err(WireError::Version(version));
        }
        let [kind, flags, seal_len] = reader.array()?;
        let len = usize::from(reader.u16()?);
        let whole = Reader(bytes).take(len)?;
        let body_len = whole.len().checked_sub(HEADER_LEN + usize::from(seal_len));
        let needed = HEADER_LEN + usize::from(seal_len);
        let body_len = body_len.ok_or(WireError::Truncated { needed, available: whole.len() })?;
        let (sender, session, counter) = (NodeId(reader.array()?), reader.u64()?, reader.u64()?);
        let body = Body::check(kind, Reader(reader.take(body_len)?))?;
        let (sealed, seal) = whole.split_at(HEADER_LEN + body_len);
        Ok(Self { sender, session, counter, flags, body, sealed, seal })
    }
}

impl<'a> Body<'a> {
    fn check(kind: u8, mut reader: Reader<'a>) -> Result<Self, WireError> {
        match kind {
            TYPE_GREETING => {
                let body = Self::Greeting { heard: reader.u64()?, hold: reader.u32()? };
                reader.end().map(|()| body)
            }
            TYPE_HELLO => {
                let body = Self::Hello { hold: reader.u32()? };
                reader.end().map(|()| body)
            }
            TYPE_SUMMARY => {
                let (index, count) = (reader.u16()?, reader.u16()?);
                if index >= count {
                    return Err(WireError::SummaryIndex { index, count });
                }
                Ok(Self::Summary { index, count, headers: Headers::check(reader)? })
            }
            TYPE_UPDATE => Lsas::check(reader).map(Self::Update),
            TYPE_ACK => Headers::check(reader).map(Self::Ack),
            _ => Err(WireError::Type(kind)),
        }
    }
}

/// A message as a value, without its seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRepr {
    kind: u8,
    flags: u8,
    sender: NodeId,
    session: u64,
    counter: u64,
    body: Vec<u8>,
}

impl MessageRepr {
    /// What all messages of a session have beside their body, in bytes.
    pub(crate) const HEADER_LEN: usize = HEADER_LEN;
    /// What a header takes in a summary or an acknowledgement, in bytes.
    pub(crate) const LSA_HEADER_LEN: usize = LSA_HEADER_LEN;

    /// "Here I am"; see [`Body::Greeting`].
    #[must_use]
    pub fn greeting(heard: u64, hold: u32) -> Self {
        Self::new(TYPE_GREETING, [&heard.to_be_bytes()[..], &hold.to_be_bytes()].concat())
    }

    /// "I am still here"; see [`Body::Hello`].
    #[must_use]
    pub fn hello(hold: u32) -> Self {
        Self::new(TYPE_HELLO, hold.to_be_bytes().to_vec())
    }

    /// "This is what I have"; see [`Body::Summary`].
    #[must_use]
    pub fn summary(index: u16, count: u16, headers: &[LsaHeader]) -> Self {
        let mut body = [index.to_be_bytes(), count.to_be_bytes()].concat();
        headers.iter().for_each(|header| emit_header(header, &mut body));
        Self::new(TYPE_SUMMARY, body)
    }

    /// "This is new to you"; see [`Body::Update`].
    #[must_use]
    pub fn update<'a>(lsas: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut body = Vec::new();
        for lsa in lsas {
            // An advertisement has 1280 bytes at most.
            body.extend_from_slice(&(lsa.len() as u16).to_be_bytes());
            body.extend_from_slice(lsa);
        }
        Self::new(TYPE_UPDATE, body)
    }

    /// "I have got this"; see [`Body::Ack`].
    #[must_use]
    pub fn ack(headers: &[LsaHeader]) -> Self {
        let mut body = Vec::with_capacity(headers.len() * LSA_HEADER_LEN);
        headers.iter().for_each(|header| emit_header(header, &mut body));
        Self::new(TYPE_ACK, body)
    }

    fn new(kind: u8, body: Vec<u8>) -> Self {
        Self { kind, flags: 0, sender: NodeId([0; 20]), session: 0, counter: 0, body }
    }

    /// With who says so, in which session and as its how many-th message.
    #[must_use]
    pub fn from(mut self, sender: NodeId, session: u64, counter: u64, flags: u8) -> Self {
        (self.sender, self.session, self.counter, self.flags) = (sender, session, counter, flags);
        self
    }

    /// The message as it is sent. `seal` makes the seal, of `seal_len` bytes, for the bytes it gets.
    ///
    /// # Panics
    /// The seal has another length, or the message is longer than 65,535 bytes.
    #[must_use]
    pub fn emit(&self, seal_len: u8, seal: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
        let len = HEADER_LEN + self.body.len() + usize::from(seal_len);
        let length = u16::try_from(len).expect("the caller keeps to the length of messages");
        let mut bytes = Vec::with_capacity(len);
        bytes.extend_from_slice(&[VERSION, self.kind, self.flags, seal_len]);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&self.sender.0);
        bytes.extend_from_slice(&self.session.to_be_bytes());
        bytes.extend_from_slice(&self.counter.to_be_bytes());
        bytes.extend_from_slice(&self.body);
        let seal = seal(&bytes);
        assert_eq!(seal.len(), usize::from(seal_len), "the seal has the length that was announced");
        bytes.extend_from_slice(&seal);
        bytes
    }
}
