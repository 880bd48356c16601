//! How long routes take from the first profile point to each other one.
//!
//! Reference: Handley et al. (XORP), §8.2, the tables of Figures 10 to 12.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weft_xrl::IpNet;

/// A profile point.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Whose it is.
    pub(crate) component: String,
    /// Its name there.
    pub(crate) point: String,
    /// What happens there.
    pub(crate) help: String,
    /// Whether it is switched on.
    pub(crate) enabled: bool,
}

impl Place {
    /// As in `rib/arrived`.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.component, self.point)
    }
}

/// A route that has passed one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    /// The number of the place.
    pub(crate) place: usize,
    /// When, in nanoseconds.
    pub(crate) time: u64,
    /// Where it leads.
    pub(crate) net: IpNet,
    /// Whether it went, there.
    pub(crate) gone: bool,
}

/// What a node has recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gathered {
    /// In the order of the way.
    pub(crate) places: Vec<Place>,
    /// Oldest first.
    pub(crate) marks: Vec<Passed>,
    /// How many marks were forgotten.
    pub(crate) lost: u64,
}

/// How long routes took to a place, from where their ways began.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The number of the place.
    pub(crate) place: usize,
    /// Of routes that were taken back where the way began; of those that were announced otherwise.
    pub(crate) gone: bool,
    /// In milliseconds, one for each route.
    delays: Vec<f64>,
    /// Whether the ways begin here.
    is_first: bool,
}

/// The rows of the table: announced routes first, places in their order.
///
/// A way begins with each mark of the first place that has marks, and ends where the next one of the same network begins.
/// Of several marks of a place on one way the first counts.
pub(crate) fn rows(gathered: &Gathered) -> Vec<Row> {
    let Some(first) = gathered.marks.iter().map(|mark| mark.place).min() else { return Vec::new() };
    // Of each network, when its way began, whether it was taken back there, and which places it has passed.
    let mut ways: BTreeMap<IpNet, (u64, bool, Vec<usize>)> = BTreeMap::new();
    let mut delays: BTreeMap<(bool, usize), Vec<f64>> = BTreeMap::new();
    for mark in &gathered.marks {
        if mark.place == first {
            ways.insert(mark.net, (mark.time, mark.gone, Vec::new()));
        }
        let Some((begin, gone, passed)) = ways.get_mut(&mark.net) else { continue };
        if !passed.contains(&mark.place) {
            passed.push(mark.place);
            let delay = mark.time.saturating_sub(*begin) as f64 / 1e6;
            delays.entry((*gone, mark.place)).or_default().push(delay);
        }
    }
    let row = |((gone, place), delays)| Row { place, gone, delays, is_first: place == first };
    delays.into_iter().map(row).collect()
}

impl Row {
    /// How many routes there were.
    pub(crate) fn count(&self) -> usize {
        self.delays.len()
    }

    fn average(&self) -> f64 {
        self.delays.iter().sum::<f64>() / self.delays.len() as f64
    }

    /// How far they lie apart: the root of their mean square distance from the average.
    fn deviation(&self) -> f64 {
        let average = self.average();
        let squares = self.delays.iter().map(|delay| (delay - average).powi(2));
        (squares.sum::<f64>() / self.delays.len() as f64).sqrt()
    }

    /// Average, standard deviation, least and greatest, in milliseconds.
    fn figures(&self) -> [f64; 4] {
        let least = self.delays.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.delays.iter().copied().fold(0.0, f64::max);
        [self.average(), self.deviation(), least, most]
    }

    /// For programs.
    pub(crate) fn json(&self, place: &Place) -> Value {
        let round = |value: f64| (value * 1e6).round() / 1e6;
        let [average, deviation, least, most] = self.figures().map(round);
        json!({
            "change": self.change(), "component": place.component, "point": place.point,
            "help": place.help, "routes": self.count(), "average": average,
            "deviation": deviation, "min": least, "max": most,
        })
    }

    /// What became of these routes where their ways began.
    fn change(&self) -> &'static str {
        if self.gone { "withdrawn" } else { "announced" }
    }

    /// For people: the change, the place, how many routes, and the figures.
    pub(crate) fn cells(&self, place: &Place) -> Vec<String> {
        let figures = self.figures().map(|value| match self.is_first {
            true => "-".to_owned(),
            false => format!("{value:.3}"),
        });
        let words = [self.change().to_owned(), place.name(), place.help.clone()];
        words.into_iter().chain([self.count().to_string()]).chain(figures).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(marks: &[(usize, u64, u8, bool)]) -> Gathered {
        let place = |name: &str| Place {
            component: "bgp".to_owned(),
            point: name.to_owned(),
            help: format!("at {name}"),
            enabled: true,
        };
        let mark = |(place, time, net, gone): &(usize, u64, u8, bool)| Passed {
            place: *place,
            time: *time,
            net: IpNet::new_assert([10, *net, 0, 0].into(), 16),
            gone: *gone,
        };
        let places = ["off", "in", "between", "out"].map(place).to_vec();
        Gathered { places, marks: marks.iter().map(mark).collect(), lost: 0 }
    }

    #[test]
    fn delays_are_those_since_a_route_came_in() {
        let all = gathered(&[
            // On its way before anything was recorded.
            (3, 500_000, 1, false),
            (1, 1_000_000, 1, false),
            (1, 1_500_000, 2, false),
            (2, 2_000_000, 1, false),
            (3, 3_000_000, 1, false),
            // Told to two peers.
            (3, 3_100_000, 1, false),
            (3, 5_500_000, 2, false),
            // Taken back, where another one is used instead.
            (1, 9_000_000, 1, true),
            (3, 9_250_000, 1, false),
        ]);
        let rows = rows(&all);
        let told: Vec<_> =
            rows.iter().map(|row| (row.gone, row.place, row.delays.clone())).collect();
        assert_eq!(
            told,
            [
                (false, 1, vec![0.0, 0.0]),
                (false, 2, vec![1.0]),
                (false, 3, vec![2.0, 4.0]),
                (true, 1, vec![0.0]),
                (true, 3, vec![0.25]),
            ]
        );
        assert_eq!(rows[2].figures(), [3.0, 1.0, 2.0, 4.0]);
        let cells = |row: usize| rows[row].cells(&all.places[rows[row].place]).join(" ");
        assert_eq!(cells(0), "announced bgp/in at in 2 - - - -");
        assert_eq!(cells(2), "announced bgp/out at out 2 3.000 1.000 2.000 4.000");
        assert_eq!(rows[4].json(&all.places[3])["average"], 0.25);
    }

    #[test]
    fn nothing_recorded_is_no_row() {
        assert!(rows(&gathered(&[])).is_empty());
    }
}
