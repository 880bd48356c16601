//! What the neighbour discovery of HID counts.

weft_base::reasons! {
    /// What was done with NWP messages.
    pub enum Activity {
        AnnouncementsSent = "announcements-sent", "broadcast announcements of this node's HIDs";
        IntroductionsSent = "introductions-sent", "announcements sent to one new neighbour only";
        ListsSent = "lists-sent", "neighbour lists sent to announcers";
        AnnouncementsReceived = "announcements-received", "announcements of other nodes";
        ListsReceived = "lists-received", "neighbour lists of other nodes";
        Learned = "learned", "places of neighbours that were new";
        Malformed = "malformed", "frames that are no NWP message";
        OtherHost = "other-host", "frames addressed to another host, or sent by this one";
        OwnHid = "own-hid", "places refused because the HID is this node";
        BadAddress = "bad-address", "places refused because the hardware address is zero or a group's";
        TableFull = "table-full", "places refused because the neighbour table is full";
        TooManyAddresses = "too-many-addresses", "places refused because the HID has too many already";
    }
}
