//! The messages of weft's own, as they stand in a frame and as values, and what is signed.

use weft_keys::{PublicKey, Signature};
use weft_wire::MacAddr;
use weft_xip::xid::ID_LEN;
use weft_xip::{Xid, XidType};

use super::repr::emit_header;
use super::view::{hardware_address, require};
use super::{ADDRESS_LEN, HEADER_LEN, NwpError, field};

/// Length of a nonce in bytes.
pub const NONCE_LEN: usize = 16;
/// Length of an epoch in bytes.
pub const EPOCH_LEN: usize = 16;
/// Length of epoch, key and signature in bytes.
pub const SEAL_LEN: usize = EPOCH_LEN + PublicKey::LEN + Signature::LEN;

/// Where a nonce ends; it follows the hardware address.
const NONCE_END: usize = field::HARDWARE_ADDRESS.end + NONCE_LEN;

/// How many HIDs fit a question on a link with this MTU; at least one.
#[must_use]
pub fn hids_in_question(mtu: usize) -> usize {
    (mtu.saturating_sub(NONCE_END) / ID_LEN).clamp(1, super::MAX_HIDS)
}

/// What a proof signs: a text that no other signature begins with.
const PROOF_CONTEXT: &[u8] = b"weft NWP proof 1\0";
/// What a withdrawal signs.
const WITHDRAWAL_CONTEXT: &[u8] = b"weft NWP withdrawal 1\0";

/// A checked probe, challenge or answer to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// The message without padding.
    bytes: &'a [u8],
}

impl<'a> Question<'a> {
    pub(super) fn check(bytes: &'a [u8]) -> Result<Self, NwpError> {
        let len = NONCE_END + usize::from(bytes[field::HID_COUNT]) * ID_LEN;
        require(bytes, len)?;
        Ok(Self { bytes: &bytes[..len] })
    }

    /// Where the sender can be reached.
    #[must_use]
    pub fn hardware_address(&self) -> MacAddr {
        hardware_address(self.bytes)
    }

    /// What the answer repeats.
    #[must_use]
    pub fn nonce(&self) -> [u8; NONCE_LEN] {
        array(&self.bytes[field::HARDWARE_ADDRESS.end..])
    }

    /// The HIDs that the question is about, or that the answerer is; at least one.
    pub fn hids(&self) -> impl Iterator<Item = Xid> + use<'a> {
        let (ids, _) = self.bytes[NONCE_END..].as_chunks::<ID_LEN>();
        ids.iter().map(|id| Xid::new(XidType::HID, *id))
    }
}

/// A checked proof or withdrawal; that its lengths are right, not that its signature is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// The message without padding.
    bytes: &'a [u8],
}

impl<'a> Sealed<'a> {
    pub(super) fn check(bytes: &'a [u8]) -> Result<Self, NwpError> {
        if bytes[field::HID_COUNT] != 1 {
            return Err(NwpError::NotOneHid(bytes[field::HID_COUNT]));
        }
        let len = NONCE_END + ID_LEN + SEAL_LEN;
        require(bytes, len)?;
        Ok(Self { bytes: &bytes[..len] })
    }

    /// Where the sender can be reached.
    #[must_use]
    pub fn hardware_address(&self) -> MacAddr {
        hardware_address(self.bytes)
    }

    /// The nonce of the challenge; means nothing in a withdrawal.
    #[must_use]
    pub fn nonce(&self) -> [u8; NONCE_LEN] {
        array(&self.bytes[field::HARDWARE_ADDRESS.end..])
    }

    /// The HID that is proven or withdrawn.
    #[must_use]
    pub fn hid(&self) -> Xid {
        Xid::new(XidType::HID, array(&self.bytes[NONCE_END..]))
    }

    /// Epoch, key and signature.
    #[must_use]
    pub fn seal(&self) -> Seal {
        let bytes = &self.bytes[self.bytes.len() - SEAL_LEN..];
        Seal {
            epoch: array(bytes),
            key: array(&bytes[EPOCH_LEN..]),
            signature: array(&bytes[EPOCH_LEN + PublicKey::LEN..]),
        }
    }
}

/// The first bytes, of which there are enough in a checked message.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[..N]);
    array
}

/// A probe, a challenge or the answer to a probe, as a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionRepr {
    /// Where the sender can be reached.
    pub hardware_address: MacAddr,
    /// What the answer repeats.
    pub nonce: [u8; NONCE_LEN],
    /// 1 to [`MAX_HIDS`](super::MAX_HIDS) HIDs.
    pub hids: Vec<Xid>,
}

impl QuestionRepr {
    pub(super) fn parse(view: &Question) -> Self {
        let hids = view.hids().collect();
        Self { hardware_address: view.hardware_address(), nonce: view.nonce(), hids }
    }

    /// Length behind the header.
    pub(super) fn len(&self) -> usize {
        ADDRESS_LEN + NONCE_LEN + self.hids.len() * ID_LEN
    }

    /// `body` has the message's length.
    pub(super) fn emit(
        &self,
        header: &mut [u8],
        kind: u8,
        body: &mut [u8],
    ) -> Result<(), NwpError> {
        emit_header(header, kind, self.hids.len())?;
        let ids = self.hids.iter().map(|hid| &hid.id[..]);
        concat([&self.hardware_address.0[..], &self.nonce].into_iter().chain(ids), body);
        Ok(())
    }
}

/// Epoch, key and signature of a proof or a withdrawal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// The signer's epoch.
    pub epoch: [u8; EPOCH_LEN],
    /// An Ed25519 public key in its raw form, or anything else.
    pub key: [u8; PublicKey::LEN],
    /// The signature, or anything else.
    pub signature: [u8; Signature::LEN],
}

impl Seal {
    /// The seal of a node without a key.
    pub const NONE: Self =
        Self { epoch: [0; EPOCH_LEN], key: [0; PublicKey::LEN], signature: [0; Signature::LEN] };
}

/// A proof or a withdrawal as a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedRepr {
    /// Where the sender can be reached.
    pub hardware_address: MacAddr,
    /// The nonce of the challenge; zero in a withdrawal.
    pub nonce: [u8; NONCE_LEN],
    /// What is proven or withdrawn.
    pub hid: Xid,
    /// Epoch, key and signature.
    pub seal: Seal,
}

impl SealedRepr {
    /// Reads a checked message.
    #[must_use]
    pub fn parse(view: &Sealed) -> Self {
        Self {
            hardware_address: view.hardware_address(),
            nonce: view.nonce(),
            hid: view.hid(),
            seal: view.seal(),
        }
    }

    /// Length behind the header.
    pub(super) fn len(&self) -> usize {
        ADDRESS_LEN + NONCE_LEN + ID_LEN + SEAL_LEN
    }

    /// `body` has the message's length.
    pub(super) fn emit(
        &self,
        header: &mut [u8],
        kind: u8,
        body: &mut [u8],
    ) -> Result<(), NwpError> {
        emit_header(header, kind, 1)?;
        let Seal { epoch, key, signature } = &self.seal;
        let front = [&self.hardware_address.0[..], &self.nonce, &self.hid.id];
        concat(front.into_iter().chain([&epoch[..], key, signature]), body);
        Ok(())
    }

    /// The message before its signature, of this kind.
    fn signed(&self, kind: u8, context: &[u8], to: &[u8]) -> Vec<u8> {
        let (mut header, mut body) = ([0; HEADER_LEN], vec![0; self.len()]);
        self.emit(&mut header, kind, &mut body).expect("one HID can be counted");
        body.truncate(self.len() - Signature::LEN);
        [context, to, &header, &body].concat()
    }
}

/// What the signature of a proof for the node at `asker` is over; the signature in `proof` counts for nothing.
#[must_use]
pub fn signed_proof(proof: &SealedRepr, asker: MacAddr) -> Vec<u8> {
    proof.signed(super::TYPE_PROOF, PROOF_CONTEXT, &asker.0)
}

/// What the signature of a withdrawal is over; the signature in `withdrawal` counts for nothing.
#[must_use]
pub fn signed_withdrawal(withdrawal: &SealedRepr) -> Vec<u8> {
    withdrawal.signed(super::TYPE_WITHDRAWAL, WITHDRAWAL_CONTEXT, &[])
}

/// Writes the parts one behind the other; together they have the length of `body`.
fn concat<'a>(parts: impl IntoIterator<Item = &'a [u8]>, body: &mut [u8]) {
    let mut rest = body;
    for part in parts {
        let (front, behind) = rest.split_at_mut(part.len());
        front.copy_from_slice(part);
        rest = behind;
    }
}
