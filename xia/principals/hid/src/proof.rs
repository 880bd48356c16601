//! Proofs: that an announcer has the key of which its HID is the hash.
//!
//! Reference: Andersen et al., "Accountable Internet Protocol (AIP)" (SIGCOMM 2008), whose routers ask hosts for
//! such proofs before they believe addresses; here neighbours ask neighbours.
//!
//! A *challenge* names HIDs and a nonce; the answer is signed and names the hardware addresses of both sides, so that
//! it can be shown to nobody else and for no other place. Where proof is
//! * `off`, nobody is challenged and proofs change nothing;
//! * `preferred`, newcomers are challenged. Who does not prove its HID is believed, but packets go to places that
//!   are proven, if there are any; and at the limits of the table a place that is proven takes that of one that is not;
//! * `required`, an announcement is only a reason to challenge; a place is learned by a proof, and kept by proofs.
//!
//! Signatures cost a thousand times what other messages do, so how many are made and checked in a second is bounded for
//! each interface, and apart for strangers and for each neighbour whose HID is proven: a flood of strangers takes nothing
//! from neighbours, and one in the name of a neighbour takes from that neighbour alone. That it does: who asks cannot
//! be told from who sends frames with the same hardware address.

use weft_base::{Instant, Random};
use weft_keys::{KeyHash, PrivateKey, PublicKey, Signature};
use weft_wire::MacAddr;
use weft_xip::Xid;
use weft_xip::principal::Output;

use crate::Hid;
use crate::activity::Activity;
use crate::expiry::PROBE_PERIOD;
use crate::interfaces::{Asked, Interface, Sign};
use crate::nwp::{
    EPOCH_LEN, NONCE_LEN, NwpRepr, Question, QuestionRepr, Seal, Sealed, SealedRepr,
    hids_in_question, signed_proof, signed_withdrawal,
};

/// A newcomer that does not prove its HID is challenged so often at most.
pub(crate) const CHALLENGES: u32 = 3;

/// What is believed of announcers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Off,
    Preferred,
    Required,
}

impl Policy {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Preferred => "preferred",
            Self::Required => "required",
        }
    }
}

/// The key of this node, and randomness for epochs.
#[derive(Debug)]
pub(crate) struct Prover {
    key: Option<PrivateKey>,
    random: Random,
}

impl Prover {
    pub(crate) fn new(random: Random) -> Self {
        Self { key: None, random }
    }

    /// A number that says for how long proofs hold.
    pub(crate) fn epoch(&mut self) -> [u8; EPOCH_LEN] {
        let mut epoch = [0; EPOCH_LEN];
        self.random.fill(&mut epoch);
        epoch
    }

    pub(crate) fn set_key(&mut self, key: PrivateKey) {
        self.key = Some(key);
    }

    /// The key, if `hid` is its hash.
    fn key_of(&self, hid: Xid) -> Option<&PrivateKey> {
        let key = self.key.as_ref()?;
        (key.public_key().hash().as_bytes() == &hid.id).then_some(key)
    }

    fn seal(
        &self,
        interface: &Interface,
        hid: Xid,
        nonce: [u8; NONCE_LEN],
        signed: impl Fn(&SealedRepr) -> Vec<u8>,
    ) -> SealedRepr {
        let mut sealed =
            SealedRepr { hardware_address: interface.mac, nonce, hid, seal: Seal::NONE };
        if let Some(key) = self.key_of(hid) {
            let key_bytes = key.public_key().to_bytes();
            sealed.seal = Seal { epoch: interface.epoch, key: key_bytes, ..Seal::NONE };
            sealed.seal.signature = key.sign(&signed(&sealed)).to_bytes();
        }
        sealed
    }
}

/// Whether a seal is of the holder of the key that `hid` names.
fn verify(hid: Xid, seal: &Seal, message: &[u8]) -> bool {
    // The name is compared first: a hash costs a thirtieth of a signature.
    PublicKey::from_bytes(&seal.key).is_ok_and(|key| {
        key.hash() == KeyHash::from_bytes(hid.id)
            && key.verify(message, &Signature::from_bytes(seal.signature)).is_ok()
    })
}

impl Hid {
    pub(crate) fn policy(&self, name: &str) -> Policy {
        self.proofs.of(name).unwrap_or(self.version.proof)
    }

    /// Whether proofs alone count on an interface.
    pub(crate) fn needs_proof(&self, name: &str) -> bool {
        self.policy(name) == Policy::Required
    }

    /// Asks for proofs of HIDs at one hardware address, if the interface's budget allows it now.
    pub(crate) fn challenge(
        &mut self,
        now: Instant,
        name: &str,
        (hids, mac): (Vec<Xid>, MacAddr),
        out: &mut Vec<Output>,
    ) {
        let mtu = self.interfaces.get(name).map_or(0, |interface| interface.mtu);
        for hids in hids.chunks(hids_in_question(mtu)) {
            if !self.may_ask(now, name, Asked::Newcomer) {
                return;
            }
            for hid in hids {
                if let Some(life) = self.neighbours.places_mut(name).life_mut(*hid, mac) {
                    life.challenged += 1;
                }
            }
            let challenge = NwpRepr::Challenge(self.question(now, name, mac, hids.to_vec()));
            self.send(name, mac, &[challenge], Activity::ChallengesSent, out);
        }
    }

    /// The HIDs of an announcement that are to be challenged.
    pub(crate) fn claimed_by(
        &mut self,
        name: &str,
        hids: impl Iterator<Item = Xid>,
        mac: MacAddr,
    ) -> Vec<Xid> {
        let policy = self.policy(name);
        let places = self.neighbours.places_mut(name);
        let kind = self.version.kind;
        let hids = hids.map(|hid| Xid::new(kind, hid.id));
        let others = hids.filter(|hid| !self.locals.contains(hid));
        let wanted = others.filter(|hid| {
            let life = places.life(*hid, mac);
            match policy {
                Policy::Off => false,
                // What there was no room for gets some if it is proven.
                Policy::Preferred => {
                    life.is_none_or(|life| life.proven.is_none() && life.challenged < CHALLENGES)
                }
                Policy::Required => life.is_none(),
            }
        });
        wanted.collect()
    }

    /// Proves the HID whose key this node has, and answers for its other ones.
    pub(crate) fn on_challenge(
        &mut self,
        now: Instant,
        name: &str,
        challenge: &Question,
        out: &mut Vec<Output>,
    ) {
        self.counters.add(Activity::ChallengesReceived, 1);
        let (asker, nonce) = (challenge.hardware_address(), challenge.nonce());
        let ours = challenge.hids().map(|hid| self.own_kind(hid));
        let ours: Vec<_> = ours.filter(|hid| self.locals.contains(hid)).collect();
        let (proven, claimed): (Vec<_>, Vec<_>) =
            ours.into_iter().partition(|hid| self.prover.key_of(*hid).is_some());
        if let Some(hid) = proven.first()
            && self.may_sign(now, name, asker, Sign::Make)
        {
            let Some(interface) = self.interfaces.get(name) else { return };
            let signed = |proof: &SealedRepr| signed_proof(proof, asker);
            let proof = self.prover.seal(interface, *hid, nonce, signed);
            self.send(name, asker, &[NwpRepr::Proof(proof)], Activity::ProofsSent, out);
        }
        if !claimed.is_empty() && self.may_answer(now, name) {
            let Some(interface) = self.interfaces.get(name) else { return };
            let hardware_address = interface.mac;
            let answer = QuestionRepr { hardware_address, nonce, hids: claimed };
            self.send(name, asker, &[NwpRepr::Here(answer)], Activity::AnswersSent, out);
        }
    }

    /// Takes one signature for a hardware address from the budgets.
    fn may_sign(&mut self, now: Instant, name: &str, mac: MacAddr, what: Sign) -> bool {
        let Some(interface) = self.interfaces.get_mut(name) else { return false };
        let own = self.neighbours.places_mut(name).signatures(mac);
        let allowed = interface.budgets.sign(now, what, own);
        if !allowed {
            self.counters.add(Activity::OverBudget, 1);
        }
        allowed
    }

    /// Learns a HID that was proven.
    pub(crate) fn on_proof(
        &mut self,
        now: Instant,
        name: &str,
        proof: &Sealed,
        out: &mut Vec<Output>,
    ) {
        self.counters.add(Activity::ProofsReceived, 1);
        let (mac, hid) = (proof.hardware_address(), self.own_kind(proof.hid()));
        if !self.watch.knows(now, name, mac, proof.nonce()) {
            return self.counters.add(Activity::BadNonce, 1);
        }
        if !self.may_sign(now, name, mac, Sign::Check) {
            return;
        }
        let Some(interface) = self.interfaces.get(name) else { return };
        let message = signed_proof(&SealedRepr::parse(proof), interface.mac);
        let seal = proof.seal();
        if !verify(hid, &seal, &message) {
            return self.counters.add(Activity::BadProof, 1);
        }
        self.make_room(name, (hid, mac));
        self.enter(now, name, (hid, mac), true, out);
        let places = self.neighbours.places_mut(name);
        places.spoke_weft(mac);
        let Some(is_new) = places.prove(hid, mac, seal.epoch, now) else { return };
        if is_new {
            self.counters.add(Activity::Proven, 1);
            self.refresh(hid);
        }
        self.watch(now, name, (hid, mac));
    }

    /// Has places that are not proven give way to one that is, where there is no room.
    fn make_room(&mut self, name: &str, place: (Xid, MacAddr)) {
        if self.locals.contains(&place.0) {
            return;
        }
        for displaced in self.neighbours.make_room(name, place, self.limit) {
            self.counters.add(Activity::Displaced, 1);
            self.refresh(displaced);
        }
    }

    /// Forgets what is not proven where proof is required now, and asks for proofs of it.
    pub(crate) fn require_proofs(&mut self, now: Instant, out: &mut Vec<Output>) {
        for name in self.neighbours.interfaces() {
            if !self.needs_proof(&name) {
                continue;
            }
            for (hid, mac) in self.neighbours.forget_unproven(&name) {
                self.refresh(hid);
                if self.interfaces.get(&name).is_some_and(|one| one.nwp.port().is_some()) {
                    self.challenge(now, &name, (vec![hid], mac), out);
                }
            }
        }
        self.announcer.table_has_room();
    }

    /// Tells the neighbours on an interface that HIDs are not here any more, and begins a new epoch.
    pub(crate) fn withdraw(&mut self, name: &str, hids: &[Xid], out: &mut Vec<Output>) {
        let Some(interface) = self.interfaces.get_mut(name) else { return };
        if interface.nwp.port().is_none() || hids.is_empty() {
            return;
        }
        let withdrawal = |hid: &Xid| {
            let nonce = [0; NONCE_LEN];
            NwpRepr::Withdrawal(self.prover.seal(interface, *hid, nonce, signed_withdrawal))
        };
        let all: Vec<_> = hids.iter().map(withdrawal).collect();
        interface.epoch = self.prover.epoch();
        self.send(name, MacAddr::BROADCAST, &all, Activity::WithdrawalsSent, out);
    }

    /// Takes leave of all neighbours.
    pub(crate) fn withdraw_everywhere(&mut self, hids: &[Xid], out: &mut Vec<Output>) {
        for name in self.discovering() {
            self.withdraw(&name, hids, out);
        }
    }

    /// Removes a place whose node says, and proves, that it is there no more; asks if it does not prove it.
    pub(crate) fn on_withdrawal(&mut self, now: Instant, name: &str, withdrawal: &Sealed) {
        self.counters.add(Activity::WithdrawalsReceived, 1);
        let mac = withdrawal.hardware_address();
        let hid = self.own_kind(withdrawal.hid());
        let Some(life) = self.neighbours.places_mut(name).life(hid, mac) else { return };
        let seal = withdrawal.seal();
        // One of an earlier epoch was made before, and may be sent by anybody.
        let is_current = life.proven.is_some_and(|proven| proven.epoch == seal.epoch);
        let Some(interface) = self.interfaces.get_mut(name) else { return };
        let message = signed_withdrawal(&SealedRepr::parse(withdrawal));
        if is_current && interface.budgets.withdrawal(now) && verify(hid, &seal, &message) {
            self.counters.add(Activity::Withdrawn, 1);
            return self.remove_gone(now, name, hid, mac);
        }
        if self.watch.expiry.is_some() && self.neighbours.places_mut(name).doubt(hid, mac, now) {
            self.counters.add(Activity::Doubted, 1);
            // Who answers can be doubted again at once, which is not to cost more than it does when it is silent.
            let due = life.asked_at.map_or(now, |asked| now.max(asked + PROBE_PERIOD));
            self.neighbours.places_mut(name).schedule(hid, mac, Some(due));
        }
    }
}
