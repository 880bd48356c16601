//! The state of RIP, for operators.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};
use weft_base::Instant;
use weft_protocol::{Show, Table};
use weft_xrl::XrlError;

use crate::Rip;
use crate::speaker::{Link, Neighbour};
use crate::table::{Source, Stored};

impl Show for Rip {
    const VIEWS: &'static [(&'static str, &'static str)] = &[
        ("routes", "the routes that neighbours are told, and those that they have told"),
        ("neighbours", "the routers that have told routes"),
        ("interfaces", "the interfaces on which it is spoken"),
    ];

    fn table(
        &self,
        now: Instant,
        view: &str,
        from: Option<&str>,
        at_most: usize,
    ) -> Result<Table, XrlError> {
        let wrong = |_| XrlError::bad_args("the page before says behind which row to go on");
        match view {
            "routes" => {
                let columns = &["prefix", "metric", "tag", "gateway", "interface", "from", "state"];
                let from: Option<IpNet> = from.map(str::parse).transpose().map_err(wrong)?;
                let rows = self.speaker.table.iter();
                let rows = rows.filter(|(net, _)| from.is_none_or(|from| **net > from));
                Ok(Table::page(columns, rows, at_most, |net, stored| self.route(net, stored)))
            }
            "neighbours" => {
                let columns = &["address", "interface", "silent-for", "messages", "bad"];
                let all = self.speaker.neighbours.iter();
                let rows = all.map(|(key, one)| self.neighbour(now, key, one));
                Ok(Table { columns, rows: rows.collect(), next: None })
            }
            _ => {
                let columns = &["interface", "open", "addresses", "cost", "passive"];
                let rows = self.speaker.links.values().map(link);
                Ok(Table { columns, rows: rows.collect(), next: None })
            }
        }
    }
}

impl Rip {
    fn name(&self, index: u32) -> Option<&str> {
        self.links.name(index)
    }

    fn route(&self, net: &IpNet, stored: &Stored) -> Value {
        let route = &stored.route;
        let from = match route.source {
            Source::Learned { router } => router.to_string(),
            Source::Connected => "connected".to_owned(),
            Source::Redistributed => "redistributed".to_owned(),
        };
        json!({
            "prefix": net.to_string(), "metric": route.metric, "tag": route.tag,
            "gateway": route.gateway.map(|gateway| gateway.to_string()),
            "interface": self.name(route.link), "from": from,
            "state": if stored.is_valid() { "valid" } else { "gone" },
        })
    }

    fn neighbour(&self, now: Instant, (link, address): &(u32, IpAddr), one: &Neighbour) -> Value {
        let silent = format!("{}s", now.since(one.heard).as_secs());
        json!({
            "address": address.to_string(), "interface": self.name(*link),
            "silent-for": silent, "messages": one.messages, "bad": one.bad,
        })
    }
}

fn link(link: &Link) -> Value {
    let addresses: Vec<_> = link.addresses.iter().map(ToString::to_string).collect();
    json!({
        "interface": link.name, "open": link.mtu.is_some(), "addresses": addresses.join(" "),
        "cost": link.config.cost, "passive": link.config.passive,
    })
}
