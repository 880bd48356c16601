//! What may be configured of BGP, in the language of schemas (`weft_config`).

/// What may be said of a peer, and of a group for all its peers.
macro_rules! peer_statements {
    () => {
        r#"
        leaf local-address address { help "this router's address of the session"; }
        leaf passive switch { default off; help "whether the peer must open the session"; }
        leaf hold-time duration { default 90s; help "after which silence the session ends: 0s for never, or from 3s on"; }
        leaf graceful-restart one-of both helper off { help "as the mode for all peers"; }
        leaf-list family one-of ipv4-unicast ipv6-unicast ipv4-multicast ipv6-multicast { help "which routes are exchanged; those of the address without it"; }
        leaf add-path one-of receive send both { help "whether several routes to a destination are exchanged (RFC 7911), if the peer wants that too"; }
        leaf route-reflector-client switch { default off; help "whether the peer is a client of this route reflector (RFC 4456)"; }
        leaf route-server-client switch { default off; help "whether the peer is a client of this route server (RFC 7947)"; }
        leaf next-hop-self switch { default off; help "whether a peer in this system is told to send packets for other systems here"; }
        leaf-list import name { alone all none; help "which of its routes are taken: all, none, or those that these policies accept, which are asked in order; of a peer outside of this system and its confederation none without it"; }
        leaf-list export name { alone all none; help "which routes it is told: all, none, or those that these policies accept, which are asked in order; a peer outside of this system and its confederation none without it"; }
        leaf md5-key text { secret; help "the key by which both sides sign what they send (RFC 2385)"; }
        leaf ttl-security number { range 1 254; help "at how many hops at most the peer is, which both sides check (RFC 5082)"; }
        leaf multihop number { range 1 255; help "at how many hops a peer in another system may be; it is a neighbour without it"; }
        leaf local-role one-of provider route-server route-server-client customer peer { help "what this router is to the peer (RFC 9234)"; }
        leaf role-strict switch { default off; help "whether a peer that says no role is refused"; }
        leaf enforce-first-as switch { help "whether routes are used only if their paths begin with the peer's system; off for a route server, which is in no path: so it is with `local-role route-server-client`, else on"; }
        leaf accept-as-sets switch { default off; help "whether routes are taken whose paths have systems without an order (RFC 9774)"; }
        leaf connect-retry duration { default 120s; help "when to connect again after a connection could not be opened"; }
        leaf delay-open duration { range 0s 240s; default 0s; help "for how long the peer may introduce itself first on a new connection"; }
        leaf advertisement-interval duration { range 0s 600s; default 0s; help "how long the peer is told nothing new after it was told something (RFC 4271 section 9.2.1.1): 0s to be told at once"; }
        leaf extended-next-hop switch { default off; help "whether routes of IPv4 may have next hops of IPv6 (RFC 8950)"; }
        container prefix-limit {
            help "how many prefixes of each family the peer may announce";
            leaf most number { mandatory; range 1 4294967295; help "this many"; }
            leaf action one-of end warn { default end; help "what is done beyond"; }
            leaf restart-after duration { help "when the session that was ended for it begins again; when an operator says so without it"; }
        }
        leaf graceful-shutdown switch { default off; help "whether the peer is told to use other ways, since this one will be closed (RFC 8326)"; }
        words shutdown { usage "[TEXT]"; help "there is no session, and the peer's operator is told this text"; }
        leaf blackhole switch { default off; help "whether packets are dropped for routes that are accepted with the community blackhole (RFC 7999)"; }
        leaf damping switch { help "whether routes of it that come and go are damped, if it is in another system; as the statement of all without it"; }
        leaf description text { help "for people"; }
"#
    };
}

/// What may be configured.
pub const SCHEMA: &str = concat!(
    r#"
container bgp {
    help "the Border Gateway Protocol";
    leaf as number { mandatory; known-as local-as; range 1 4294967294; help "the number of this router's autonomous system"; }
    container confederation {
        help "the confederation that this router's system is a member of: one system to all others (RFC 5065)";
        leaf id number { mandatory; range 1 4294967294; help "the number of the confederation, by which others know it"; }
        leaf-list members number { range 1 4294967294; help "the numbers of the other members"; }
    }
    leaf router-id ipv4 { mandatory; help "a number that no other router of the system has, in the form of an address of IPv4"; }
    leaf cluster-id ipv4 { help "what marks the routes that this router reflects, the same for all reflectors of the same clients; the router-id without it"; }
    leaf multipath number { default 1; range 1 64; help "among how many next hops packets to a destination are shared out, of paths that are equally good"; }
    container graceful-restart {
        help "routes serve on while this router's BGP, or a peer's, restarts";
        leaf mode one-of both helper off { default both; help "whether peers are asked to keep our routes, and theirs are kept, or only the latter"; }
        leaf restart-time duration { default 120s; help "how long peers keep our routes while we are away"; }
        leaf stale-time duration { default 360s; help "how long routes of a peer that is back may take to be announced again"; }
        leaf deferral-time duration { default 120s; help "how long peers may take after our restart until new routes are told"; }
        list long-lived {
            help "routes of this family serve on for much longer, but only where there are no others (RFC 9494)";
            key family one-of ipv4-unicast ipv6-unicast ipv4-multicast ipv6-multicast { help "the family"; }
            leaf stale-time duration { range 0s 16777215s; default 24h; help "how long peers keep our routes behind the restart-time; 0s: they are not asked to"; }
            leaf limit duration { help "how long theirs are kept behind their restart time at most; as long as they say without it"; }
        }
        leaf long-lived-partial switch { default off; help "whether routers of this system are told of such routes that do not know of this; those routes have the lowest preference in the whole system then"; }
    }
    container damping {
        help "routes of peers in other systems that come and go are not used until they have been still for a while (RFC 2439, RFC 7196)";
        leaf suppress number { range 1 49999; default 6000; help "with more points than these a route is not used: a withdrawal is 1000, a change 500"; }
        leaf reuse number { range 1 49999; default 750; help "with fewer points it is used again"; }
        leaf half-life duration { range 1min 45min; default 15min; help "in which a route that does not change has half of its points"; }
        leaf max-suppress duration { range 1min 255min; default 60min; help "how long a route that does not change is not used at most"; }
    }
    list network {
        help "a network of this system: peers are told of it while the RIB uses a route to exactly it that is not of BGP";
        key prefix prefix { help "the network"; }
        leaf always switch { default off; help "whether they are told of it without such a route, too"; }
        leaf-list policy name { help "what becomes of it: these policies are asked in order, and it is told if they accept it"; }
    }
    list redistribute {
        help "a protocol whose routes peers are told while the RIB uses them";
        key protocol name { help "its name, such as connected, static, rip or aggregate"; }
        leaf-list policy name { help "which of them, and what becomes of them: those that these policies accept, which are asked in order; all without it"; }
    }
    list peer {
        known-as neighbor neighbour;
        help "a router to exchange routes with";
        key address address { help "the peer's address"; }
        leaf as number { mandatory; known-as remote-as; range 1 4294967294; help "the number of its autonomous system"; }"#,
    peer_statements!(),
    r#"
    }
    list range {
        help "neighbours that are not named: whoever connects from this network";
        key prefix prefix { help "the network"; }
        leaf as text { mandatory; form "a number of an autonomous system, or external"; help "the number of their autonomous system, or external for any but this one"; }
        leaf limit number { range 1 10000; default 100; help "how many there may be at a time"; }"#,
    peer_statements!(),
    r#"
    }
    list group {
        help "peers that are alike";
        key name name { help "its name"; }
        leaf as number { range 1 4294967294; help "the number of their autonomous system"; }"#,
    peer_statements!(),
    r#"
        list peer {
            help "one of them; what is said of it here counts before what is said of the group";
            key address address { help "the peer's address"; }
            leaf as number { range 1 4294967294; help "the number of its autonomous system"; }"#,
    peer_statements!(),
    r#"
        }
    }
}
"#
);
