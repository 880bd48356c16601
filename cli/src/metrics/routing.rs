//! What routing is like, as gauges that an operator is alarmed by: sessions of BGP, sizes of tables, what the kernel refuses.
//!
//! It is made of the calls of `weft show`. Where a component is not there, or does not let whoever asks call it, its metrics are not
//! there either.

use serde_json::Value;
use weft_xrl::fib;

use super::exposition::Families;
use crate::show::{Asker, kernel_version};

/// Peers that are told of; of more there is only the number.
const MOST_PEERS: usize = 10_000;
/// The tables of routes, as views call them.
const FAMILIES: [&str; 4] = ["ipv4", "ipv6", "ipv4-multicast", "ipv6-multicast"];

/// What the components have said.
#[derive(Default)]
pub(super) struct Routing {
    /// `bgp/1.0/show` of peers and of its tables.
    pub(super) peers: Option<Value>,
    pub(super) bgp: Option<Value>,
    /// `rib/1.0/show` of its tables.
    pub(super) rib: Option<Value>,
    /// `fib/1.0/tables`.
    pub(super) kernel: Option<fib::TablesReply>,
}

impl Routing {
    pub(super) fn ask(asker: &Asker) -> Self {
        let bgp = |what: &str| {
            let request = weft_bgp::interface::Show { what: what.to_owned(), ..Default::default() };
            serde_json::from_str(&asker.try_ask("bgp", request).ok()?.json).ok()
        };
        let rib = || {
            let what = "summary".to_owned();
            let request = weft_rib::interface::Show { what, ..Default::default() };
            serde_json::from_str(&asker.try_ask("rib", request).ok()?.json).ok()
        };
        let peers = bgp("peers");
        Self {
            // Where the first is not answered, the other is not either.
            bgp: peers.is_some().then(|| bgp("summary")).flatten(),
            peers,
            rib: rib(),
            kernel: asker.try_ask("fea", fib::Tables).ok(),
        }
    }

    /// Adds what there is.
    pub(super) fn add_to(&self, families: &mut Families<'_>) {
        if let Some(peers) = self.peers.as_ref().and_then(Value::as_array) {
            add_peers(peers, families);
        }
        if let Some(bgp) = &self.bgp {
            add_bgp(bgp, families);
        }
        if let Some(rib) = &self.rib {
            add_rib(rib, families);
        }
        for table in self.kernel.iter().flat_map(|reply| &reply.tables) {
            add_kernel(table, families);
        }
    }
}

fn add_peers(peers: &[Value], families: &mut Families<'_>) {
    let help = "how many peers of BGP there are";
    families.add("weft_bgp_peers", "gauge", help, &[], peers.len() as f64);
    for peer in peers.iter().take(MOST_PEERS) {
        let number = peer["as"].as_u64().map(|number| number.to_string()).unwrap_or_default();
        let address = peer["address"].as_str().unwrap_or_default();
        let labels = [("peer", address), ("as", &number)];
        let is_up = f64::from(u8::from(peer["state"] == "Established"));
        let help = "whether the session with the peer is established";
        families.add("weft_bgp_peer_up", "gauge", help, &labels, is_up);
        let help = "for how long it is, in seconds; 0 if it is not";
        let seconds = peer["up-for"].as_f64().unwrap_or_default();
        families.add("weft_bgp_peer_up_seconds", "gauge", help, &labels, seconds);
        let help = "how many paths the peer has announced";
        for family in FAMILIES {
            let Some(count) = peer[family].as_f64() else { continue };
            let labels = [labels[0], labels[1], ("family", family)];
            families.add("weft_bgp_peer_paths", "gauge", help, &labels, count);
        }
    }
}

fn add_bgp(bgp: &Value, families: &mut Families<'_>) {
    for family in FAMILIES {
        let help = "how many prefixes BGP knows paths to";
        let Some(count) = bgp[family].as_f64() else { continue };
        families.add("weft_bgp_prefixes", "gauge", help, &[("family", family)], count);
    }
    if let Some(is_there) = bgp["rib"].as_bool() {
        let help = "whether BGP tells the RIB its routes";
        families.add("weft_bgp_tells_rib", "gauge", help, &[], f64::from(u8::from(is_there)));
    }
}

fn add_rib(rib: &Value, families: &mut Families<'_>) {
    for family in FAMILIES {
        let labels = [("family", family)];
        if let Some(count) = rib[family]["routes"].as_f64() {
            let help = "how many prefixes the RIB knows routes to";
            families.add("weft_rib_prefixes", "gauge", help, &labels, count);
        }
        if let Some(count) = rib[family]["told"].as_f64() {
            let help = "how many changes the RIB has told the FEA";
            families.add("weft_rib_changes_told_total", "counter", help, &labels, count);
        }
        if let Some(count) = rib[family]["refused"].as_f64() {
            let help = "how many of these the kernel has refused";
            families.add("weft_rib_changes_refused_total", "counter", help, &labels, count);
        }
    }
}

fn add_kernel(table: &fib::Table, families: &mut Families<'_>) {
    let number = table.table.to_string();
    let labels =
        [("table", number.as_str()), ("family", kernel_version(table)), ("owner", &table.owner)];
    let mut add = |name, help, value| families.add(name, "gauge", help, &labels, value);
    let help = "how many prefixes have a route that the kernel does not take";
    add("weft_kernel_routes_refused", help, table.refused.into());
    let help = "how many prefixes wait for the kernel";
    add("weft_kernel_routes_waiting", help, table.waiting.into());
    let help =
        "whether changes of the table are followed; not if it is told anew, or its owner is gone";
    let follows = f64::from(u8::from(table.state == "following"));
    add("weft_kernel_table_following", help, follows);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::exposition::of_routing;
    use super::*;

    #[test]
    fn what_is_not_there_is_not_told() {
        assert_eq!(of_routing(&Routing::default()), "");
    }

    #[test]
    fn a_session_that_is_down_is_zero_and_peers_are_bounded() {
        let peer = |number: usize| json!({ "address": format!("192.0.2.{number}"), "as": 7, "state": "Idle", "up-for": null, "ipv4": 3 });
        let peers: Vec<_> = (0..=MOST_PEERS).map(peer).collect();
        let text = of_routing(&Routing { peers: Some(peers.into()), ..Routing::default() });
        for line in [
            "weft_bgp_peers{node=\"r1\"} 10001\n",
            "weft_bgp_peer_up{node=\"r1\",peer=\"192.0.2.7\",as=\"7\"} 0\n",
            "weft_bgp_peer_up_seconds{node=\"r1\",peer=\"192.0.2.7\",as=\"7\"} 0\n",
            "weft_bgp_peer_paths{node=\"r1\",peer=\"192.0.2.7\",as=\"7\",family=\"ipv4\"} 3\n",
        ] {
            assert!(text.contains(line), "{line}");
        }
        assert_eq!(text.matches("\nweft_bgp_peer_up{").count(), MOST_PEERS);
    }

    #[test]
    fn what_the_kernel_refuses_is_told_by_table() {
        let table = fib::Table {
            table: 254,
            is_ipv6: true,
            owner: "rib".to_owned(),
            metric: 40,
            state: "told".to_owned(),
            waiting: 5,
            refused: 2,
        };
        let kernel = Some(fib::TablesReply { tables: vec![table] });
        let text = of_routing(&Routing { kernel, ..Routing::default() });
        let labels = "{node=\"r1\",table=\"254\",family=\"ipv6\",owner=\"rib\"}";
        for (name, value) in [("routes_refused", 2), ("routes_waiting", 5), ("table_following", 0)]
        {
            let line = format!("weft_kernel_{name}{labels} {value}\n");
            assert!(text.contains(&line), "{line}: {text}");
        }
    }
}
