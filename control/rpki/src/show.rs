//! What operators see.

use ipnet::IpNet;
use serde_json::{Value, json};
use weft_base::Instant;
use weft_protocol::{Show, Table};
use weft_xrl::XrlError;

use crate::Rpki;
use crate::cache::Cache;
use crate::payload::Payload;

impl Show for Rpki {
    const VIEWS: &'static [(&'static str, &'static str)] = &[
        ("caches", "the caches, and how far the sessions with them are"),
        ("payloads", "which system may announce which prefix"),
    ];

    fn table(
        &self,
        now: Instant,
        view: &str,
        from: Option<&str>,
        at_most: usize,
    ) -> Result<Table, XrlError> {
        if view == "caches" {
            let columns = &[
                "cache",
                "address",
                "preference",
                "state",
                "payloads",
                "serial",
                "expires-in",
                "failure",
            ];
            let rows = self.caches.iter().map(|(name, cache)| self.cache(now, name, cache));
            return Ok(Table { columns, rows: rows.collect(), next: None });
        }
        let wrong = |_| XrlError::bad_args("the page before says behind which payload to go on");
        let from: Option<Payload> = from.map(str::parse).transpose().map_err(wrong)?;
        let columns = &["prefix", "max-length", "as", "caches"];
        let rows = self.payloads.behind(from).map(|payload| (*payload, ()));
        Ok(Table::page(columns, rows, at_most, |payload, ()| self.payload(payload)))
    }
}

impl Rpki {
    fn cache(&self, now: Instant, name: &str, cache: &Cache) -> Value {
        let session = &cache.session;
        let expires = session.expires().map(|then| then.since(now).as_secs());
        json!({
            "cache": name, "address": cache.config.remote.address.to_string(),
            "preference": cache.config.preference, "state": session.state(),
            "version": session.version().to_string(), "counts": self.counts(cache),
            "payloads": self.payloads.count_of(cache.id),
            "session": session.known().map(|(session, _)| session),
            "serial": session.known().map(|(_, serial)| serial),
            "expires-in": expires, "failure": cache.failure,
        })
    }

    fn payload(&self, payload: &Payload) -> Value {
        let net: IpNet = payload.net();
        let names: Vec<_> =
            self.payloads.caches_of(payload).filter_map(|id| self.name(id)).collect();
        json!({
            "prefix": net.to_string(), "max-length": payload.max_length(), "as": payload.system(),
            "caches": names.join(" "),
        })
    }
}
