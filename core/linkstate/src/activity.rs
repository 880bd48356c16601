//! What the engine counts.

weft_base::reasons! {
    /// What was done with messages, advertisements and routes.
    pub enum Activity {
        MessagesReceived = "messages-received", "messages of neighbours";
        MessagesSent = "messages-sent", "messages to neighbours";
        Malformed = "malformed", "messages that are none";
        UnknownLink = "unknown-link", "messages of links that are down";
        OwnMessage = "own-message", "messages that this node has sent itself";
        Stranger = "stranger", "messages of another node than the link leads to, or than the session that is up is with";
        Replayed = "replayed", "greetings of sessions that are over";
        TooManyGreetings = "too-many-greetings", "greetings that were not verified, because there were too many";
        BadProof = "bad-proof", "greetings and advertisements whose proof is wrong";
        BadTag = "bad-tag", "messages of no session, or that were there already";
        TooManyAdvertisements = "too-many-advertisements", "advertisements that were not verified yet, because there were too many";
        TooOften = "too-often", "advertisements not taken yet, because their originator changes them too often";
        DatabaseFull = "database-full", "advertisements not taken, because there are too many";
        Learned = "learned", "advertisements that were new";
        Known = "known", "advertisements that were known";
        Older = "older", "advertisements that were older than what is known";
        OwnFromBefore = "own-from-before", "advertisements of this node from before it was started";
        Issued = "issued", "advertisements that this node issued";
        LeftOut = "left-out", "times that this node had more to advertise than fits";
        Expired = "expired", "advertisements that were not refreshed in time";
        Retransmitted = "retransmitted", "advertisements sent again, because no acknowledgement came";
        Trees = "trees", "computations of all shortest paths";
        Partial = "partial", "computations of routes without new paths";
        NeighboursUp = "neighbours-up", "neighbours that told all they know";
        NeighboursDown = "neighbours-down", "neighbours that were lost";
    }
}
