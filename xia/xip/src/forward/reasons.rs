//! Why XIP drops packets: the counters of the forwarder.

weft_base::reasons! {
    /// Why a packet was dropped while it was routed.
    pub enum DropReason {
        Malformed = "malformed-header", "the header is cut off, of another version or out of range";
        MalformedEdges = "malformed-edges", "the edges at the last node have a gap, a chosen mark or lead nowhere";
        AtSink = "already-at-sink", "the address was walked to its end before the packet arrived";
        Unreachable = "unreachable", "no edge of the last node leads anywhere from here";
        RedirectLoop = "redirect-loop", "a chain of redirects came back to an XID that it had left";
        RedirectDepth = "redirect-depth", "a chain of redirects is longer than configured, or asks about too many XIDs";
        NotASink = "not-a-sink", "the address ends in an XID that is this node but cannot receive data";
        NotPassable = "not-passable", "the address goes on behind a local XID that ends every address";
        HopLimit = "hop-limit", "the hop limit was used up";
        TooBig = "too-big", "the packet is longer than the MTU of the port it would leave by";
        PortGone = "port-gone", "the port it would leave by has been closed";
        MalformedXid = "malformed-xid", "the principal says that the XID cannot be right";
        FilterTooFull = "filter-too-full", "more than half of the zFilter's bits are set";
        CopyLimit = "copy-limit", "the packet asked for more copies than one packet may cause";
        CameBack = "came-back", "a packet that branched here came back with fewer hops left: its filter holds a cycle";
        SlowPathFull = "slow-path-full", "the routing cache has nothing for it, and its port has sent too many such packets lately";
        BranchUnreachable = "branch-unreachable", "one of several ways at once leads nowhere from here";
    }
}
