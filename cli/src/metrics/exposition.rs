//! Counters as the text that Prometheus scrapes.
//!
//! Reference: Prometheus, "Exposition formats", text format 0.0.4; "Metric and label naming".

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::SystemTime;

use weft_manager::interface::ProcessesReply;
use weft_xrl::fea;

use super::routing::Routing;
use crate::show::{Counted, monotonic, seconds};

/// The metrics of a node. `interfaces` are missing if the FEA does not answer.
pub(super) fn of(
    processes: &ProcessesReply,
    interfaces: Option<&fea::InterfacesReply>,
    counters: &[Counted],
    routing: &Routing,
) -> String {
    let mut families = Families { node: &processes.node, all: BTreeMap::new() };
    families.processes(processes);
    families.interfaces(interfaces);
    counters.iter().for_each(|counted| families.counters(counted));
    routing.add_to(&mut families);
    families.text()
}

/// What is told of routing alone.
#[cfg(test)]
pub(super) fn of_routing(routing: &Routing) -> String {
    let mut families = Families { node: "r1", all: BTreeMap::new() };
    routing.add_to(&mut families);
    families.text()
}

/// Metrics by name, since all samples of one must stand together.
pub(super) struct Families<'a> {
    node: &'a str,
    all: BTreeMap<String, Family>,
}

struct Family {
    kind: &'static str,
    help: String,
    samples: String,
}

impl Families<'_> {
    pub(super) fn add(
        &mut self,
        name: &str,
        kind: &'static str,
        help: &str,
        labels: &[(&str, &str)],
        value: f64,
    ) {
        let family = self.all.entry(name.to_owned()).or_insert_with(|| Family {
            kind,
            help: help.to_owned(),
            samples: String::new(),
        });
        let node = [("node", self.node)];
        let given = node.iter().chain(labels).filter(|(_, value)| !value.is_empty());
        let labels: Vec<_> =
            given.map(|(name, value)| format!("{}=\"{}\"", word(name), escaped(value))).collect();
        // Writing to a string cannot fail. Counts are exact up to 2^53.
        let _ = writeln!(family.samples, "{name}{{{}}} {value}", labels.join(","));
    }

    fn processes(&mut self, reply: &ProcessesReply) {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let (wall, now) = (since_1970.map_or(0.0, |time| time.as_secs_f64()), monotonic());
        for one in &reply.processes {
            let labels = [("process", one.instance.as_str()), ("class", one.class.as_str())];
            let mut add =
                |name: &str, kind, help: &str, value| self.add(name, kind, help, &labels, value);
            let runs = f64::from(u8::from(one.state == "running"));
            add(
                "weft_process_running",
                "gauge",
                "whether the process runs and has its configuration",
                runs,
            );
            let help = "how often the process was started again";
            add("weft_process_restarts_total", "counter", help, f64::from(one.restarts));
            if one.pid == 0 {
                continue;
            }
            let start = wall - seconds(now.saturating_sub(one.since));
            let help = "when the process was started, in seconds since 1970";
            add("weft_process_start_time_seconds", "gauge", help, start);
            let help = "resident memory of the process";
            add("weft_process_resident_memory_bytes", "gauge", help, one.memory as f64);
            let help = "processor time that the process has used";
            add("weft_process_cpu_seconds_total", "counter", help, seconds(one.processor));
        }
    }

    fn interfaces(&mut self, reply: Option<&fea::InterfacesReply>) {
        for one in reply.iter().flat_map(|reply| &reply.interfaces) {
            let labels = [("interface", one.name.as_str())];
            let help = "whether the network interface can carry packets";
            let running = f64::from(u8::from(one.running));
            self.add("weft_interface_running", "gauge", help, &labels, running);
        }
    }

    fn counters(&mut self, counted: &Counted) {
        for group in &counted.reply.groups {
            let name = format!("weft_{}_total", word(&group.name));
            for count in counted.reply.counts.iter().filter(|count| count.group == group.name) {
                let labels = [
                    ("component", counted.component.as_str()),
                    (group.label.as_str(), count.of.as_str()),
                    ("reason", count.reason.as_str()),
                ];
                self.add(&name, "counter", &group.help, &labels, count.value as f64);
            }
        }
    }

    fn text(self) -> String {
        let mut text = String::new();
        for (name, Family { kind, help, samples }) in self.all {
            let help = help.replace('\\', "\\\\").replace('\n', "\\n");
            // Writing to a string cannot fail.
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}");
        }
        text
    }
}

/// A name as the format allows it.
fn word(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    name.chars().map(allowed).collect()
}

/// The value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use weft_base::CounterGroup;
    use weft_xrl::monitor::CountersReply;

    use super::*;

    #[test]
    fn samples_of_one_metric_stand_together_and_names_and_values_are_escaped() {
        let counted = |component: &str, of: &str| {
            let mut group = CounterGroup::labelled("port-drops", "lost\\ \nhere", "port");
            group.add(of, 7);
            let reply = CountersReply::of(vec![group]);
            Counted { component: component.to_owned(), reply }
        };
        let node = ProcessesReply { node: "r1".to_owned(), processes: vec![], missing: vec![] };
        let text =
            of(&node, None, &[counted("a", "x\"y\n"), counted("b", "")], &Routing::default());
        assert_eq!(
            text,
            "# HELP weft_port_drops_total lost\\\\ \\nhere\n\
             # TYPE weft_port_drops_total counter\n\
             weft_port_drops_total{node=\"r1\",component=\"a\",port=\"x\\\"y\\n\"} 7\n\
             weft_port_drops_total{node=\"r1\",component=\"b\"} 7\n"
        );
    }
}
