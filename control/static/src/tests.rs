//! What the RIB believes, as interfaces and next hops come and go.

use weft_protocol::testing::{TestRib, interface};

use super::*;

const NOW: Instant = Instant::ZERO;

/// A protocol, a metric, and gateways with interfaces.
type Believed<'a> = (&'a str, u32, Vec<(String, u32)>);

/// The component, and the RIB that it talks to.
struct World {
    routes: Static,
    rib: TestRib,
}

impl World {
    fn new(text: &str) -> Self {
        let mut world = Self { routes: Static::new(), rib: TestRib::default() };
        world.configure(text);
        world.interface(1, "eth0", true);
        world.interface(2, "eth1", true);
        world.hear(Input::World(Event::Interface { change: InterfaceChange::Complete }));
        world
    }

    /// One whose RIB is there from the beginning.
    fn with_rib(text: &str, reached: &[&str]) -> Self {
        let mut world = Self::new(text);
        reached.iter().for_each(|net| drop(world.rib.reach(net.parse().unwrap(), true)));
        world.born();
        world
    }

    fn born(&mut self) {
        self.hear(Input::Born { class: "rib".to_owned(), instance: "rib".to_owned() });
    }

    fn hear(&mut self, input: Input) {
        let mut out = Vec::new();
        self.routes.handle(NOW, input, &mut out);
        self.rib.take(&mut out);
        while self.rib.has_calls() {
            self.rib.talk(NOW, &mut self.routes);
        }
    }

    fn configure(&mut self, text: &str) {
        let (config, mut out) = (config::read("t", text).unwrap(), Vec::new());
        self.routes.configure(NOW, config, &mut out);
        self.rib.take(&mut out);
        self.hear(Input::World(Event::Tick));
    }

    fn interface(&mut self, index: u32, name: &str, running: bool) {
        self.interface_with(index, name, running, &[]);
    }

    fn interface_with(&mut self, index: u32, name: &str, running: bool, addresses: &[&str]) {
        let change = InterfaceChange::Changed(interface(index, name, running, addresses));
        self.hear(Input::World(Event::Interface { change }));
    }

    fn reach(&mut self, net: &str, is_reached: bool) {
        if let Some(told) = self.rib.reach(net.parse().unwrap(), is_reached) {
            self.hear(told);
        }
    }

    /// What the RIB believes of the one destination.
    fn believed(&self) -> Option<Believed<'_>> {
        assert!(self.rib.routes.len() <= 1, "{:?}", self.rib.routes);
        let ((protocol, _), route) = self.rib.routes.iter().next()?;
        let hops = match &route.to {
            To::Hops(hops) => hops.iter().map(|hop| {
                let gateway = hop.gateway.map_or(String::new(), |gateway| gateway.to_string());
                (gateway, hop.interface.unwrap_or(0))
            }),
            other => return Some((protocol, route.metric, vec![(format!("{other:?}"), 0)])),
        };
        Some((protocol, route.metric, hops.collect()))
    }
}

fn hops(all: &[(&str, u32)]) -> Vec<(String, u32)> {
    all.iter().map(|(gateway, interface)| ((*gateway).to_owned(), *interface)).collect()
}

#[test]
fn a_route_uses_those_of_its_next_hops_that_are_reached() {
    let text = "static { route 198.51.100.0/24 {
        next-hop 192.0.2.1; next-hop 203.0.113.1; next-hop 192.0.2.9 { interface eth1; } metric 5;
    } }";
    let mut world = World::with_rib(text, &["192.0.2.0/24"]);
    let two = hops(&[("192.0.2.1", 0), ("192.0.2.9", 2)]);
    assert_eq!(world.believed(), Some(("static", 5, two)));
    world.reach("203.0.113.0/24", true);
    assert_eq!(world.believed().unwrap().2.len(), 3);
    world.interface(2, "eth1", false);
    world.reach("192.0.2.0/24", false);
    assert_eq!(world.believed(), Some(("static", 5, hops(&[("203.0.113.1", 0)]))));
    world.reach("203.0.113.0/24", false);
    assert_eq!(world.believed(), None);
    assert_eq!(world.routes.status().1, "0 of 1 routes are used");
}

/// So the RIB knows a way to what lies behind it.
#[test]
fn a_next_hop_on_a_link_names_the_link() {
    let text = "static { route 198.51.100.1/32 { next-hop 192.0.2.1; } }";
    let mut world = World::with_rib(text, &["192.0.2.0/24"]);
    let reached = Some(("static", 0, hops(&[("192.0.2.1", 0)])));
    assert_eq!(world.believed(), reached, "on a link that nobody has told");
    world.interface_with(2, "eth1", true, &["192.0.2.200/24", "2001:db8::1/64"]);
    assert_eq!(world.believed(), Some(("static", 0, hops(&[("192.0.2.1", 2)]))));
    // The smallest network counts, which the RIB takes, too.
    world.interface_with(1, "eth0", true, &["192.0.2.2/29"]);
    assert_eq!(world.believed(), Some(("static", 0, hops(&[("192.0.2.1", 1)]))));
    world.interface_with(1, "eth0", false, &["192.0.2.2/29"]);
    assert_eq!(world.believed(), Some(("static", 0, hops(&[("192.0.2.1", 2)]))));
    world.interface_with(2, "eth1", true, &[]);
    assert_eq!(world.believed(), reached);
    world.reach("192.0.2.0/24", false);
    assert_eq!(world.believed(), None);
    // This router itself is no next hop.
    world.interface_with(2, "eth1", true, &["192.0.2.1/24"]);
    assert_eq!(world.believed(), None);
}

#[test]
fn backups_serve_in_their_order_while_nothing_better_is_reached() {
    let text = "static { route 198.51.100.0/24 {
        interface eth0;
        backup 2 { blackhole; }
        backup 1 { next-hop 192.0.2.1; metric 10; }
    } }";
    let mut world = World::with_rib(text, &["192.0.2.0/24"]);
    assert_eq!(world.believed(), Some(("static", 0, hops(&[("", 1)]))));
    world.interface(1, "eth0", false);
    assert_eq!(world.believed(), Some(("static", 10, hops(&[("192.0.2.1", 0)]))));
    world.reach("192.0.2.0/24", false);
    assert_eq!(world.believed(), Some(("static", 0, hops(&[("Blackhole", 0)]))));
    // An interface of another name is another one; the old one comes back with another number.
    world.interface(3, "eth3", true);
    assert_eq!(world.believed(), Some(("static", 0, hops(&[("Blackhole", 0)]))));
    world.interface(4, "eth0", true);
    assert_eq!(world.believed(), Some(("static", 0, hops(&[("", 4)]))));
}

#[test]
fn another_configuration_leaves_what_is_the_same() {
    let text = "static { route 198.51.100.0/24 { blackhole; } }";
    let mut world = World::with_rib(text, &[]);
    assert_eq!(world.believed(), Some(("static", 0, hops(&[("Blackhole", 0)]))));
    world.configure("static { route 198.51.100.0/24 { prohibit; distance 200; } }");
    assert_eq!(world.believed(), Some(("static-200", 0, hops(&[("Prohibit", 0)]))));
    assert_eq!(world.rib.origins, [("static".to_owned(), 1), ("static-200".to_owned(), 200)]);
    world.configure("");
    assert_eq!(world.believed(), None);
}

#[test]
fn a_rib_that_comes_back_is_told_everything() {
    let text = "static { route 198.51.100.0/24 { next-hop 192.0.2.1; backup 1 { blackhole; } } }";
    let mut world = World::new(text);
    assert_eq!(world.believed(), None);
    world.reach("192.0.2.0/24", true);
    world.born();
    assert_eq!(world.believed(), Some(("static", 0, hops(&[("192.0.2.1", 0)]))));
    world.rib.die();
    world.hear(Input::Died { class: "rib".to_owned(), instance: "rib".to_owned() });
    world.reach("192.0.2.0/24", false);
    world.born();
    assert_eq!(world.believed(), Some(("static", 0, hops(&[("Blackhole", 0)]))));
}

#[test]
fn a_view_says_which_way_is_used() {
    let text = "static {
        route 198.51.100.0/24 { interface eth0; tag 3; backup 1 { prohibit; } }
        route 203.0.113.0/24 { next-hop 192.0.2.1 { interface eth1; } }
        route 2001:db8::/32 { next-hop 2001:db8:1::1; }
    }";
    let mut world = World::with_rib(text, &[]);
    world.interface(1, "eth0", false);
    let table = world.routes.table(weft_base::Instant::ZERO, "routes", None, 2).unwrap();
    let states = |table: &Table| {
        let row = |row: &Value| format!("{} {} {}", row["prefix"], row["to"], row["state"]);
        table.rows.iter().map(row).collect::<Vec<_>>()
    };
    let first = [
        r#""198.51.100.0/24" "prohibit" "backup 1""#,
        r#""203.0.113.0/24" "via 192.0.2.1 interface eth1" "used""#,
    ];
    assert_eq!(states(&table), first);
    let table =
        world.routes.table(weft_base::Instant::ZERO, "routes", table.next.as_deref(), 2).unwrap();
    assert_eq!(states(&table), [r#""2001:db8::/32" null "unreachable next hops""#]);
    assert_eq!(table.next, None);
    assert!(world.routes.table(weft_base::Instant::ZERO, "routes", Some("here"), 2).is_err());
}
