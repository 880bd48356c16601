//! `weft show bgp peers ADDRESS`: one session, for people.

use serde_json::Value;

use super::super::pages::{items, text};
use super::super::table::{Align, duration, lines};

/// All that is known of a session: what it is, what was exchanged, and what both sides can do.
pub(super) fn shown(peer: &Value) -> Vec<String> {
    let mut all = vec![title(peer)];
    let facts: Vec<_> = facts(peer).into_iter().filter(|(_, text)| !text.is_empty()).collect();
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    all.extend(facts.iter().map(|(name, text)| format!("  {name:width$}  {text}")));
    for table in [prefixes(peer), messages(peer), capabilities(peer)] {
        if table.len() > 1 {
            all.push(String::new());
            all.extend(table);
        }
    }
    all
}

/// `10.0.1.2, AS 65001, upstream`.
fn title(peer: &Value) -> String {
    let system = match &peer["as"] {
        Value::Null => String::new(),
        number => format!(", AS {number}"),
    };
    let more = peer["description"].as_str().map(|text| format!(", {text}")).unwrap_or_default();
    format!("{}{system}{more}", text(&peer["address"]))
}

/// What stands in a line each; what has nothing to say is empty.
fn facts(peer: &Value) -> Vec<(&'static str, String)> {
    let said = |value: &Value| if value.is_null() { String::new() } else { text(value) };
    let agreed = &peer["agreed"];
    let place = match (peer["is-internal"].as_bool(), peer["is-confederation"].as_bool()) {
        (Some(true), _) => "in the same system",
        (_, Some(true)) => "in another member of the confederation",
        (Some(false), _) => "in another system",
        (None, _) => "",
    };
    let router = |system: &Value, router: &Value| {
        let id = router.as_str().map(|id| format!(", router-id {id}")).unwrap_or_default();
        format!("AS {}{id}", text(system))
    };
    let faults = peer["faults"].as_u64().filter(|count| *count > 0);
    vec![
        ("state", state(peer)),
        ("connection", connection(&peer["connection"])),
        ("this router", router(&peer["own-as"], &peer["own-router-id"])),
        ("the peer", format!("{}, {place}", router(&peer["as"], &agreed["router-id"]))),
        ("configured", configured(peer)),
        ("times", times(peer)),
        ("import", list(&peer["import"])),
        ("export", list(&peer["export"])),
        ("prefix limit", limit(peer)),
        ("protection", protection(&peer["protection"])),
        ("options", options(&peer["options"])),
        ("stale routes", stale(&peer["stale"])),
        ("damped routes", said(&peer["damping"]["damped"])),
        ("faults in UPDATEs", faults.map(|count| count.to_string()).unwrap_or_default()),
        ("last ending", said(&peer["ending"])),
        ("last sent", notification(&peer["last-sent"])),
        ("last received", notification(&peer["last-received"])),
    ]
}

/// `Established for 4m3s, session 1`.
fn state(peer: &Value) -> String {
    let since = peer["state-for"]
        .as_u64()
        .map_or_else(String::new, |seconds| format!(" for {}", duration(seconds)));
    let number = match peer["sessions"].as_u64() {
        None | Some(0) => "no session yet".to_owned(),
        Some(number) => format!("{number} session{} so far", if number == 1 { "" } else { "s" }),
    };
    let shutdown = match peer["shutdown"].as_str() {
        None => String::new(),
        Some("") => ", shut down".to_owned(),
        Some(why) => format!(", shut down: {why}"),
    };
    format!("{}{since}, {number}{shutdown}", text(&peer["state"]))
}

/// `10.0.1.1 port 179, 10.0.1.2 port 40000`: this router's end first.
fn connection(connection: &Value) -> String {
    if connection.is_null() {
        return "none".to_owned();
    }
    let end = |end: &Value| format!("{} port {}", text(&end["address"]), text(&end["port"]));
    format!("from {} to {}", end(&connection["own"]), end(&connection["peer"]))
}

/// By what it is a peer, if not by an address alone.
fn configured(peer: &Value) -> String {
    match (peer["group"].as_str(), peer["range"].as_str()) {
        (Some(group), _) => format!("in the group {group}"),
        (None, Some(range)) => format!("by the range {range}, AS {}", text(&peer["configured-as"])),
        (None, None) => String::new(),
    }
}

/// The times that were agreed on, or else those that are offered.
fn times(peer: &Value) -> String {
    let (agreed, options) = (&peer["agreed"], &peer["options"]);
    let seconds = |value: &Value| format!("{}s", text(value));
    let never = |value: &Value| value.as_u64() == Some(0);
    let retry = seconds(&options["connect-retry"]);
    match agreed.is_null() {
        false if never(&agreed["hold-time"]) => "hold time none, keepalive none".to_owned(),
        false => {
            let [hold, keepalive] = ["hold-time", "keepalive"].map(|name| seconds(&agreed[name]));
            format!("hold time {hold}, keepalive {keepalive}")
        }
        true => format!(
            "hold time {} is offered, connect-retry {retry}",
            seconds(&options["hold-time"])
        ),
    }
}

fn limit(peer: &Value) -> String {
    let limit = &peer["limit"];
    let Some(most) = limit["most"].as_u64() else { return String::new() };
    let action = match limit["action"].as_str() {
        Some("warn") => "beyond it the log says so",
        _ => "beyond it the session ends",
    };
    let over = match (peer["over-limit"].as_bool(), limit["restarts-in"].as_u64()) {
        (Some(true), Some(seconds)) => format!("; it was exceeded: again in {}", duration(seconds)),
        (Some(true), None) => "; it was exceeded: `weft bgp clear` begins again".to_owned(),
        _ => String::new(),
    };
    format!("{most} of each family, {action}{over}")
}

fn protection(protection: &Value) -> String {
    let hops = |name: &str| protection[name].as_u64().map(|hops| format!("{name} {hops}"));
    let key = (protection["md5"] == Value::Bool(true)).then(|| "md5-key".to_owned());
    let all: Vec<_> = [key, hops("ttl-security"), hops("multihop")].into_iter().flatten().collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

/// Those that are on, and the role.
fn options(options: &Value) -> String {
    let Some(all) = options.as_object() else { return String::new() };
    let role = options["local-role"].as_str().map(|role| format!("local-role {role}"));
    let on = all.iter().filter(|(_, value)| **value == Value::Bool(true));
    role.into_iter().chain(on.map(|(name, _)| name.clone())).collect::<Vec<_>>().join(", ")
}

fn stale(stale: &Value) -> String {
    let Some(seconds) = stale["seconds"].as_u64() else { return String::new() };
    let long = match items(&stale["long-lived"]) {
        [] => String::new(),
        _ => format!(", long-lived {}", list(&stale["long-lived"])),
    };
    format!("{} for {} at most{long}", list(&stale["families"]), duration(seconds))
}

/// `cease, administrative reset (6/4), 3s ago`.
fn notification(told: &Value) -> String {
    let Some(seconds) = told["seconds-ago"].as_u64() else { return String::new() };
    let (code, subcode) = (text(&told["code"]), text(&told["subcode"]));
    let data = match told["data"].as_str() {
        None | Some("") => String::new(),
        Some(data) => format!(", data {data}"),
    };
    format!("{} ({code}/{subcode}{data}), {} ago", text(&told["text"]), duration(seconds))
}

/// How many routes there are.
fn prefixes(peer: &Value) -> Vec<String> {
    let columns = [
        ("family", Align::Left),
        ("received", Align::Right),
        ("accepted", Align::Right),
        ("advertised", Align::Right),
    ];
    let rows = entries(&peer["prefixes"]).map(|(family, count)| {
        let counts = ["received", "accepted", "advertised"].map(|name| text(&count[name]));
        [vec![family.clone()], counts.into()].concat()
    });
    lines(&columns, &rows.collect::<Vec<_>>())
}

/// How many messages there were.
fn messages(peer: &Value) -> Vec<String> {
    let columns = [("message", Align::Left), ("sent", Align::Right), ("received", Align::Right)];
    let (sent, received) = (&peer["messages"]["sent"], &peer["messages"]["received"]);
    let rows =
        entries(sent).map(|(kind, count)| vec![kind.clone(), text(count), text(&received[kind])]);
    lines(&columns, &rows.collect::<Vec<_>>())
}

/// What both sides have said in their OPENs, and what was agreed on.
fn capabilities(peer: &Value) -> Vec<String> {
    let (sent, received) = (&peer["open"]["sent"], &peer["open"]["received"]);
    if sent.is_null() {
        return Vec::new();
    }
    let agreed = &peer["agreed"];
    let add_path = |way: &str| match list(&agreed["add-path"][way]) {
        families if families.is_empty() => None,
        families => Some(format!("{way} {families}")),
    };
    let add_path: Vec<_> = ["receive", "send"].into_iter().filter_map(add_path).collect();
    let role = if agreed["peer-role"].is_null() { "no" } else { "yes" };
    type Said = fn(&Value) -> String;
    let rows: [(&str, Said, String); 11] = [
        ("families", |open| list(&open["families"]), list(&agreed["families"])),
        ("route-refresh", |open| word(&open["route-refresh"]), word(&agreed["route-refresh"])),
        (
            "enhanced-route-refresh",
            |open| word(&open["enhanced-route-refresh"]),
            word(&agreed["enhanced-route-refresh"]),
        ),
        ("four-octet-as", |open| word(&open["four-octet-as"]), word(&agreed["four-octet-as"])),
        (
            "extended-message",
            |open| word(&open["extended-message"]),
            word(&agreed["extended-message"]),
        ),
        ("add-path", |open| by_family(&open["add-path"], text), add_path.join(", ")),
        (
            "extended-next-hop",
            |open| list(&open["extended-next-hop"]),
            list(&agreed["extended-next-hop"]),
        ),
        (
            "graceful-restart",
            |open| restart(&open["graceful-restart"]),
            word(&agreed["graceful-restart"]),
        ),
        ("long-lived", |open| by_family(&open["long-lived"], kept), word(&agreed["long-lived"])),
        ("role", |open| word(&open["role"]), role.to_owned()),
        ("unknown", |open| list(&open["unknown"]), String::new()),
    ];
    let columns = [
        ("capability", Align::Left),
        ("sent", Align::Left),
        ("received", Align::Left),
        ("agreed", Align::Left),
    ];
    let dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let rows = rows.map(|(name, said, agreed)| {
        vec![name.to_owned(), dash(said(sent)), dash(said(received)), dash(agreed)]
    });
    lines(&columns, &rows)
}

/// `120s, ipv4, ipv6 (restarted)`: families whose forwarding went on stand for themselves.
fn restart(restart: &Value) -> String {
    let Some(seconds) = restart["seconds"].as_u64() else { return String::new() };
    let is_on = |name: &str| restart[name] == Value::Bool(true);
    let restarted = if is_on("restarted") { ", restarted" } else { "" };
    let notification = if is_on("notification") { ", notification" } else { "" };
    let families = by_family(&restart["families"], |forwards| {
        if *forwards == Value::Bool(true) { "forwards" } else { "" }.to_owned()
    });
    let families = if families.is_empty() { families } else { format!(": {families}") };
    format!("{seconds}s{restarted}{notification}{families}")
}

/// `86400s`: how long routes are kept.
fn kept(tuple: &Value) -> String {
    let forwards = if tuple["forwarding"] == Value::Bool(true) { " forwards" } else { "" };
    format!("{}s{forwards}", text(&tuple["seconds"]))
}

/// The entries of an object.
fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Something of each family, with its name in front.
fn by_family(families: &Value, said: impl Fn(&Value) -> String) -> String {
    let one = |(family, value): (&String, &Value)| format!("{family} {}", said(value));
    entries(families).map(|entry| one(entry).trim_end().to_owned()).collect::<Vec<_>>().join(", ")
}

/// A list of words, or a word.
fn list(value: &Value) -> String {
    match value {
        Value::Array(all) => all.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Null => String::new(),
        other => text(other),
    }
}

fn word(value: &Value) -> String {
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => list(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn open(families: &[&str], role: Option<&str>) -> Value {
        json!({
            "families": families, "route-refresh": true, "enhanced-route-refresh": role.is_some(),
            "four-octet-as": true, "extended-message": true, "role": role,
            "add-path": { "ipv4": "both" }, "extended-next-hop": [], "unknown": [73],
            "graceful-restart": {
                "seconds": 120, "restarted": false, "notification": true, "families": { "ipv4": true, "ipv6": false },
            },
            "long-lived": { "ipv4": { "seconds": 86400, "forwarding": true } },
        })
    }

    #[test]
    fn a_session_is_blocks() {
        let counts = json!({ "open": 1, "update": 2 });
        let peer = json!({
            "address": "10.0.1.2", "as": 65001, "description": "upstream", "state": "Established",
            "state-for": 243, "sessions": 1, "own-as": 65000, "own-router-id": "192.0.2.9",
            "is-internal": false, "configured-as": 65001, "group": "transit", "range": null,
            "connection": {
                "own": { "address": "10.0.1.1", "port": 179 },
                "peer": { "address": "10.0.1.2", "port": 40000 },
            },
            "agreed": {
                "router-id": "10.0.1.2", "hold-time": 9, "keepalive": 3, "families": ["ipv4"],
                "four-octet-as": true, "route-refresh": true, "enhanced-route-refresh": false,
                "extended-message": true, "add-path": { "receive": [], "send": ["ipv4"] },
                "extended-next-hop": [], "peer-role": null, "graceful-restart": true, "long-lived": false,
            },
            "open": { "sent": open(&["ipv4", "ipv6"], Some("customer")), "received": open(&["ipv4"], None) },
            "messages": { "sent": counts, "received": counts },
            "prefixes": {
                "ipv4": { "received": 3, "accepted": 1, "advertised": 1 },
                "ipv6": { "received": 0, "accepted": 0, "advertised": null },
            },
            "limit": { "most": 7, "action": "warn", "restarts-in": null }, "over-limit": false,
            "import": ["some", "others"], "export": "all", "faults": 2,
            "protection": { "md5": true, "ttl-security": 2, "multihop": null },
            "options": { "passive": true, "client": false, "local-role": "customer" },
            "last-sent": null, "ending": null,
            "last-received": { "seconds-ago": 300, "code": 6, "subcode": 4, "data": "", "text": "cease, administrative reset" },
        });
        let expected = "\
10.0.1.2, AS 65001, upstream
  state              Established for 4m3s, 1 session so far
  connection         from 10.0.1.1 port 179 to 10.0.1.2 port 40000
  this router        AS 65000, router-id 192.0.2.9
  the peer           AS 65001, router-id 10.0.1.2, in another system
  configured         in the group transit
  times              hold time 9s, keepalive 3s
  import             some, others
  export             all
  prefix limit       7 of each family, beyond it the log says so
  protection         md5-key, ttl-security 2
  options            local-role customer, passive
  faults in UPDATEs  2
  last received      cease, administrative reset (6/4), 5m0s ago

FAMILY  RECEIVED  ACCEPTED  ADVERTISED
ipv4           3         1           1
ipv6           0         0           -

MESSAGE  SENT  RECEIVED
open        1         1
update      2         2

CAPABILITY              SENT                                       RECEIVED                                   AGREED
families                ipv4, ipv6                                 ipv4                                       ipv4
route-refresh           yes                                        yes                                        yes
enhanced-route-refresh  yes                                        no                                         no
four-octet-as           yes                                        yes                                        yes
extended-message        yes                                        yes                                        yes
add-path                ipv4 both                                  ipv4 both                                  send ipv4
extended-next-hop       -                                          -                                          -
graceful-restart        120s, notification: ipv4 forwards, ipv6    120s, notification: ipv4 forwards, ipv6    yes
long-lived              ipv4 86400s forwards                       ipv4 86400s forwards                       no
role                    customer                                   -                                          no
unknown                 73                                         73                                         -";
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = shown(&peer);
        assert_eq!(
            shown.iter().map(|line| squeeze(line)).collect::<Vec<_>>(),
            expected.lines().map(squeeze).collect::<Vec<_>>()
        );
        // Names and texts stand below one another.
        assert!(shown[1].starts_with("  state              Established"), "{}", shown[1]);
    }

    #[test]
    fn of_a_peer_without_a_session_it_is_said_why() {
        let peer = json!({
            "address": "10.0.1.2", "as": null, "state": "Idle", "state-for": 3, "sessions": 0,
            "own-as": 65000, "own-router-id": "192.0.2.9", "is-internal": false,
            "is-confederation": true, "configured-as": "external", "range": "10.0.0.0/8", "shutdown": "back at eight",
            "connection": null, "agreed": null, "open": null,
            "messages": { "sent": {}, "received": {} }, "prefixes": {},
            "limit": { "most": 7, "action": "end", "restarts-in": 61 }, "over-limit": true,
            "options": { "hold-time": 90, "connect-retry": 120 }, "protection": {},
            "stale": { "families": ["ipv4"], "long-lived": ["ipv4"], "seconds": 60 },
            "last-sent": { "seconds-ago": 3, "code": 6, "subcode": 1, "data": "07", "text": "cease" },
        });
        let shown = shown(&peer).join("\n");
        for line in [
            "10.0.1.2\n",
            "Idle for 3s, no session yet, shut down: back at eight\n",
            "AS -, in another member of the confederation\n",
            "none\n",
            "by the range 10.0.0.0/8, AS external\n",
            "hold time 90s is offered, connect-retry 120s\n",
            "it was exceeded: again in 1m1s\n",
            "ipv4 for 1m0s at most, long-lived ipv4\n",
            "cease (6/1, data 07), 3s ago",
        ] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
        assert!(!shown.contains("CAPABILITY") && !shown.contains("MESSAGE"), "{shown}");
    }
}
