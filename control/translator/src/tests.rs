//! The translator between a RIB and a stack that come and go: what the stack believes in the end is what the RIB uses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use weft_protocol::rib;
use weft_runtime::InterfaceAddress;
use weft_runtime::{IpChange, IpWay};
use weft_xrl::{Calls, Decoder, Encoded, Method, Reply, Request};

use super::*;
use crate::xia::Tell;

const WITH_ZEROS: usize = 45;

/// The translator, what the RIB uses, and what the stack was told.
struct World {
    translator: Translator,
    now: Instant,
    rib: BTreeMap<IpNet, rib::Used>,
    ways: Vec<rib::UsedWay>,
    /// What the RIB has not told yet, whether that is the beginning, and who waits.
    untold: BTreeSet<IpNet>,
    begins: bool,
    asks: Option<u64>,
    stack: BTreeMap<IpNet, Vec<String>>,
    /// What was not told again since `begin`.
    stale: BTreeSet<IpNet>,
    has_begun: bool,
    /// Who waits to hear that all is lost.
    waits: Option<u64>,
    tells: usize,
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

/// The XID of a neighbour at this address.
fn at(last: u8) -> Vec<String> {
    vec![format!("{:0<WITH_ZEROS$}", format!("x4id-c00002{last:02x}"))]
}

fn read<C: Calls>(call: weft_xrl::Call) -> C {
    let Method::Known(_, method) = call.method else { panic!("by text") };
    let Encoded { args, handles } = call.arguments;
    C::decode(method, &mut Decoder::new(args.bytes(), handles)).unwrap()
}

fn replied<R: Request>(token: u64, reply: R::Reply) -> Input {
    Input::Replied { token, result: Ok(Reply::Arguments(Encoded::new(reply))) }
}

impl World {
    fn new(config: &str) -> Self {
        let mut world = Self {
            translator: Translator::new(),
            now: Instant::ZERO,
            rib: BTreeMap::new(),
            ways: Vec::new(),
            untold: BTreeSet::new(),
            begins: false,
            asks: None,
            stack: BTreeMap::new(),
            stale: BTreeSet::new(),
            has_begun: false,
            waits: None,
            tells: 0,
        };
        world.configure(config);
        world
    }

    fn configure(&mut self, config: &str) {
        let config = config::read("t", &format!("translator {{ {config} }}")).unwrap();
        let mut out = Vec::new();
        self.translator.configure(self.now, config, &mut out);
        self.carry_out(out);
        self.input(Input::World(Event::Tick));
    }

    fn born(&mut self, class: &str) {
        self.input(Input::Born { class: class.to_owned(), instance: class.to_owned() });
    }

    fn died(&mut self, class: &str) {
        match class {
            "rib" => self.asks = None,
            _ => (self.waits, self.has_begun) = (None, false),
        }
        self.input(Input::Died { class: class.to_owned(), instance: class.to_owned() });
    }

    /// Something happens, with all that follows at once.
    fn input(&mut self, input: Input) {
        let mut out = Vec::new();
        self.translator.handle(self.now, input, &mut out);
        self.carry_out(out);
    }

    fn carry_out(&mut self, out: Vec<Output>) {
        let mut replies = Vec::new();
        for output in out {
            let Output::Call(call) = output else { continue };
            let token = call.token;
            match &*call.target {
                "rib" => match read::<rib::Call>(call) {
                    rib::Call::Redistribute(request) => {
                        self.asks = Some(token);
                        if request.begin {
                            self.begins = true;
                            self.untold = self.rib.keys().copied().collect();
                        }
                    }
                    other => panic!("{other:?}"),
                },
                _ => match read::<xia::Call>(call) {
                    xia::Call::Tell(request) => {
                        assert!(self.has_begun || request.begin, "the stack knows nothing");
                        self.told(request);
                        replies.push(replied::<Tell>(token, ()));
                    }
                    xia::Call::Lost(_) => self.waits = Some(token),
                },
            }
        }
        replies.extend(self.rib_tells());
        replies.into_iter().for_each(|reply| self.input(reply));
    }

    /// What the RIB has to say to who waits.
    fn rib_tells(&mut self) -> Option<Input> {
        if !self.begins && self.untold.is_empty() {
            return None;
        }
        let token = self.asks.take()?;
        let (there, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.untold)
            .into_iter()
            .partition(|net| self.rib.contains_key(net));
        let again = std::mem::take(&mut self.begins);
        let ways = self.ways.iter().filter(|way| there.contains(&way.net)).cloned().collect();
        let routes = there.iter().map(|net| self.rib[net].clone()).collect();
        let reply =
            rib::RedistributeReply { again, routes, gone, complete: again, ways: Some(ways) };
        Some(replied::<rib::Redistribute>(token, reply))
    }

    fn told(&mut self, request: Tell) {
        assert_eq!(request.table, "lpm");
        self.tells += 1;
        if request.begin {
            self.has_begun = true;
            self.stale = self.stack.keys().copied().collect();
        }
        for xia::Prefix { net, set } in request.prefixes {
            let gateways = request.gateways.iter().filter(|one| one.set == set);
            let to = match set {
                0 => vec!["nowhere".to_owned()],
                1 => vec!["here".to_owned()],
                _ => gateways.map(|one| one.identifier.clone()).collect(),
            };
            assert!(!to.is_empty(), "the set {set} was not told");
            self.stale.remove(&net);
            self.stack.insert(net, to);
        }
        for net in request.gone {
            self.stale.remove(&net);
            self.stack.remove(&net);
        }
        if request.complete {
            std::mem::take(&mut self.stale).iter().for_each(|net| drop(self.stack.remove(net)));
        }
    }

    /// The RIB uses a route now, or none any more.
    fn uses(&mut self, to: &str, protocol: &str, way: Option<(Option<u8>, u32)>) {
        let net = net(to);
        self.ways.retain(|way| way.net != net);
        let router = |last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
        let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        match way {
            Some((gateway, interface)) => drop(self.rib.insert(
                net,
                rib::Used {
                    net,
                    protocol: protocol.to_owned(),
                    metric: 0,
                    tag: 0,
                    distance: 20,
                    gateway: gateway.map_or(nobody, router),
                    interface,
                },
            )),
            None => drop(self.rib.remove(&net)),
        }
        self.untold.insert(net);
        let tells = self.rib_tells();
        tells.into_iter().for_each(|input| self.input(input));
    }

    fn lead(&self, to: &str) -> Option<Vec<String>> {
        self.stack.get(&net(to)).cloned()
    }
}

fn words(words: &[&str]) -> Option<Vec<String>> {
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}

#[test]
fn routes_of_the_rib_become_prefixes_of_the_stack() {
    let mut world = World::new("from ebgp connected;");
    world.born("rib");
    world.born("xia");
    world.uses("198.51.100.0/24", "ebgp", Some((Some(1), 3)));
    world.uses("192.0.2.0/24", "connected", Some((None, 3)));
    world.uses("203.0.113.0/24", "ebgp", Some((None, 0)));
    world.uses("2001:db8::/32", "ebgp", Some((Some(1), 3)));
    assert_eq!(world.lead("198.51.100.0/24"), Some(at(1)));
    assert_eq!(world.lead("192.0.2.0/24"), words(&["here"]));
    assert_eq!(world.lead("203.0.113.0/24"), words(&["nowhere"]), "a blackhole");
    assert_eq!(world.lead("2001:db8::/32"), None, "of the other version");
    world.uses("198.51.100.0/24", "ebgp", Some((Some(2), 3)));
    assert_eq!(world.lead("198.51.100.0/24"), Some(at(2)));
    world.uses("198.51.100.0/24", "ebgp", None);
    assert_eq!(world.lead("198.51.100.0/24"), None);
}

#[test]
fn a_route_over_several_routers_has_several_gateways() {
    let mut world = World::new("from ebgp;");
    let net = net("198.51.100.0/24");
    world.rib.insert(
        net,
        rib::Used {
            net,
            protocol: "ebgp".to_owned(),
            metric: 0,
            tag: 0,
            distance: 20,
            gateway: Ipv4Addr::UNSPECIFIED.into(),
            interface: 0,
        },
    );
    world.ways = [2, 1]
        .map(|last| rib::UsedWay {
            net,
            gateway: Ipv4Addr::new(192, 0, 2, last).into(),
            interface: 3,
            weight: 1,
        })
        .into();
    world.born("xia");
    world.born("rib");
    assert_eq!(world.stack[&net], [at(1), at(2)].concat());
}

#[test]
fn whoever_comes_back_is_told_everything_and_what_was_not_told_goes() {
    let mut world = World::new("from ebgp;");
    world.stack.insert(net("10.9.0.0/16"), vec!["of an earlier life".to_owned()]);
    world.born("xia");
    assert_eq!(world.stack.len(), 1, "who does not know what there is takes nothing away");
    world.uses("198.51.100.0/24", "ebgp", Some((Some(1), 3)));
    world.born("rib");
    assert_eq!(world.stack, BTreeMap::from([(net("198.51.100.0/24"), at(1))]));

    // While the RIB is away nothing changes, and what went meanwhile goes when it is back.
    world.uses("203.0.113.0/24", "ebgp", Some((Some(1), 3)));
    world.died("rib");
    world.rib.remove(&net("203.0.113.0/24"));
    assert_eq!(world.stack.len(), 2);
    world.born("rib");
    assert_eq!(world.stack, BTreeMap::from([(net("198.51.100.0/24"), at(1))]));

    // The stack is another one.
    world.died("xia");
    world.stack.clear();
    world.uses("203.0.113.0/24", "ebgp", Some((Some(2), 3)));
    world.born("xia");
    assert_eq!((world.stack.len(), world.lead("203.0.113.0/24")), (2, Some(at(2))));

    // Its table was taken out, and put in again.
    let (token, tells) = (world.waits.take().unwrap(), world.tells);
    world.input(replied::<xia::Lost>(token, xia::LostReply { again: false }));
    assert_eq!(world.tells, tells, "nothing is lost");
    world.stack.clear();
    world.has_begun = false;
    let token = world.waits.take().unwrap();
    world.input(replied::<xia::Lost>(token, xia::LostReply { again: true }));
    assert_eq!(world.stack.len(), 2);
}

#[test]
fn a_stack_that_refuses_is_told_everything_again_after_a_time() {
    let mut world = World::new("from ebgp;");
    world.born("rib");
    world.uses("198.51.100.0/24", "ebgp", Some((Some(1), 3)));
    // It has no such table yet.
    let born = Input::Born { class: "xia".to_owned(), instance: "xia".to_owned() };
    let mut out = Vec::new();
    world.translator.handle(world.now, born, &mut out);
    let Some(Output::Call(call)) = out.iter().find(|one| matches!(one, Output::Call(_))) else {
        panic!("it tells nothing")
    };
    let refused = Input::Replied { token: call.token, result: Err(XrlError::failed("no lpm")) };
    world.input(refused);
    world.uses("203.0.113.0/24", "ebgp", Some((Some(1), 3)));
    assert!(world.stack.is_empty());
    world.now = world.translator.deadline().expect("it is tried again");
    assert!(world.now <= Instant::ZERO + Duration::from_secs(10));
    world.input(Input::World(Event::Tick));
    assert_eq!(world.stack.len(), 2);
}

#[test]
fn another_configuration_changes_what_is_different_and_nothing_else() {
    let mut world = World::new("from ebgp;");
    world.born("rib");
    world.born("xia");
    world.uses("198.51.100.0/24", "ebgp", Some((Some(1), 3)));
    let host = format!("hid-{}", "1".repeat(40));
    world.configure(&format!("from ebgp; neighbour 192.0.2.1 {{ via {host}; }}"));
    assert_eq!(world.lead("198.51.100.0/24"), Some(vec![host]));
    // What comes from the kernel is not what the RIB has said.
    world.configure("from kernel;");
    assert_eq!(world.lead("198.51.100.0/24"), None);
    let route = |to: &str, way| {
        let net = net(to);
        let destination = InterfaceAddress { ip: net.addr(), prefix_length: net.prefix_len() };
        IpChange::Route { destination, way }
    };
    let out = |gateway: Option<u8>| {
        let gateway = gateway.map(|last| Ipv4Addr::new(192, 0, 2, last).into());
        Some(IpWay::Out { interface: 3, gateway })
    };
    let changes = vec![
        IpChange::Again,
        route("0.0.0.0/0", out(Some(1))),
        route("10.1.0.0/16", out(None)),
        route("10.1.0.1/32", Some(IpWay::Local)),
        route("127.0.0.0/8", Some(IpWay::Local)),
        route("10.2.0.0/16", Some(IpWay::Nowhere)),
        IpChange::Complete,
    ];
    world.input(Input::World(Event::Ip { changes }));
    let told = |to: &[&str]| words(to).unwrap();
    let all = BTreeMap::from([
        (net("0.0.0.0/0"), at(1)),
        (net("10.1.0.0/16"), told(&["here"])),
        (net("10.1.0.1/32"), told(&["here"])),
        (net("10.2.0.0/16"), told(&["nowhere"])),
    ]);
    assert_eq!(world.stack, all);
    // The FEA is another one, and tells everything anew.
    let changes = vec![IpChange::Again, route("0.0.0.0/0", out(Some(2))), IpChange::Complete];
    world.input(Input::World(Event::Ip { changes }));
    assert_eq!(world.stack, BTreeMap::from([(net("0.0.0.0/0"), at(2))]));
    let shown = world.translator.table(world.now, "routes", None, 10).unwrap();
    assert_eq!(shown.rows[0]["to"], at(2)[0]);
}
