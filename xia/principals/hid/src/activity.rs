//! What the neighbour discovery of HID counts.

weft_base::reasons! {
    /// What was done with NWP messages.
    pub enum Activity {
        AnnouncementsSent = "announcements-sent", "broadcast announcements of this node's HIDs";
        IntroductionsSent = "introductions-sent", "announcements sent to one new neighbour only";
        ListsSent = "lists-sent", "neighbour lists sent to announcers";
        AnnouncementsReceived = "announcements-received", "announcements of other nodes";
        ListsReceived = "lists-received", "neighbour lists of other nodes";
        ProbesSent = "probes-sent", "silent neighbours that were asked whether they are there";
        AnnouncementsToSilent = "announcements-to-silent", "announcements sent to one silent neighbour only";
        ProbesReceived = "probes-received", "probes of other nodes";
        AnswersSent = "answers-sent", "answers to probes";
        AnswersReceived = "answers-received", "answers of neighbours that were asked";
        ChallengesSent = "challenges-sent", "announcers and silent neighbours that were asked for a proof of their HID";
        ChallengesReceived = "challenges-received", "challenges of other nodes";
        ProofsSent = "proofs-sent", "proofs of this node's HID";
        ProofsReceived = "proofs-received", "proofs of other nodes";
        Proven = "proven", "places of neighbours that were proven first";
        WithdrawalsSent = "withdrawals-sent", "HIDs that were withdrawn on an interface";
        WithdrawalsReceived = "withdrawals-received", "withdrawals of other nodes";
        Withdrawn = "withdrawn", "places of neighbours that were withdrawn with proof";
        Doubted = "doubted", "places of neighbours that were withdrawn without proof, and probed";
        Expired = "expired", "places of neighbours that were silent and did not answer";
        Learned = "learned", "places of neighbours that were new";
        Malformed = "malformed", "frames that are no NWP message";
        OtherHost = "other-host", "frames addressed to another host, or sent by this one";
        OwnHid = "own-hid", "places refused because the HID is this node";
        BadAddress = "bad-address", "places refused because the hardware address is zero or a group's";
        Gone = "gone", "places refused because others speak of a neighbour that is gone";
        Unproven = "unproven", "places not believed because proof is required";
        BadProof = "bad-proof", "proofs that are wrong";
        BadNonce = "bad-nonce", "answers to questions that were not asked";
        OverBudget = "over-budget", "questions not answered and proofs not checked because there were too many";
        Displaced = "displaced", "places not proven that gave way to proven ones, at a limit";
        TableFull = "table-full", "places refused because the neighbour table is full";
        TooManyAddresses = "too-many-addresses", "places refused because the HID has too many already";
    }
}
