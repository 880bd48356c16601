//! What is counted besides what the engine counts.

weft_base::reasons! {
    /// What was done with frames.
    pub enum Activity {
        BeaconsSent = "beacons-sent", "broadcasts that tell that this node speaks link-state routing";
        BeaconsReceived = "beacons-received", "beacons of other nodes";
        BadFrame = "bad-frame", "frames that are neither a beacon nor a message";
        OtherHost = "other-host", "frames addressed to another host, or sent by this one";
        TooManyNeighbours = "too-many-neighbours", "frames of new hardware addresses that no other gave way to, at the limit of an interface";
        GreetingsOfInterface = "greetings-of-interface", "greetings that were not verified, because there were too many from a hardware address or on an interface";
    }
}
