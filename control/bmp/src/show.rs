//! What operators see.

use serde_json::{Value, json};
use weft_base::Instant;
use weft_protocol::{Show, Table};
use weft_xrl::XrlError;

use crate::Bmp;
use crate::station::Station;

impl Show for Bmp {
    const VIEWS: &'static [(&'static str, &'static str)] =
        &[("stations", "the stations, and how far they have been told")];

    fn table(&self, _: Instant, _: &str, _: Option<&str>, _: usize) -> Result<Table, XrlError> {
        let columns = &["station", "address", "state", "told", "failure"];
        let rows = self.stations.iter().map(|(name, station)| self.station(name, station));
        Ok(Table { columns, rows: rows.collect(), next: None })
    }
}

impl Bmp {
    fn station(&self, name: &str, station: &Station) -> Value {
        let state = match self.dialogue.is_there() {
            true => station.state(),
            false => "waits for BGP",
        };
        json!({
            "station": name, "address": station.config.remote.address.to_string(), "state": state,
            "told": station.told, "failure": station.failure,
        })
    }
}
