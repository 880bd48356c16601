//! Arguments on the wire and as text: both carry every value, and neither is harmed by garbage.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use weft_xrl::text::{Xrl, decode_arguments, encode_arguments};
use weft_xrl::{
    Arguments, Binary, Calls, Decoder, Encoded, Encoder, Id, IpNet, Ipv4Net, Ipv6Net, Limits, Mac,
    Request,
};

mod probe {
    #![allow(missing_docs, unreachable_pub, dead_code, reason = "made for these tests")]
    include!(concat!(env!("OUT_DIR"), "/probe.rs"));
}

use probe::{Call, Echo, Route};

fn interface() -> weft_xif::Interface {
    weft_xif::Interface::parse(probe::INTERFACE.text).unwrap()
}

fn net4() -> impl Strategy<Value = Ipv4Net> {
    (any::<[u8; 4]>(), 0..=32_u8).prop_map(|(a, len)| Ipv4Net::new(a.into(), len).unwrap())
}

fn net6() -> impl Strategy<Value = Ipv6Net> {
    (any::<[u8; 16]>(), 0..=128_u8).prop_map(|(a, len)| Ipv6Net::new(a.into(), len).unwrap())
}

fn net() -> impl Strategy<Value = IpNet> {
    prop_oneof![net4().prop_map(IpNet::V4), net6().prop_map(IpNet::V6)]
}

fn route() -> impl Strategy<Value = Route> {
    (net(), any::<IpAddr>(), any::<u32>(), any::<String>())
        .prop_map(|(net, nexthop, metric, comment)| Route { net, nexthop, metric, comment })
}

prop_compose! {
    fn numbers()(i: i32, u: u32, il: i64, ul: u64, f in any::<f64>().prop_filter("a number", |f| !f.is_nan()), b: bool)
        -> (i32, u32, i64, u64, f64, bool) { (i, u, il, ul, f, b) }
}

prop_compose! {
    fn addresses()(mac: [u8; 6], ip: IpAddr, v4: Ipv4Addr, v6: Ipv6Addr, net in net(), net4 in net4(), net6 in net6())
        -> (Mac, IpAddr, Ipv4Addr, Ipv6Addr, IpNet, Ipv4Net, Ipv6Net) { (Mac(mac), ip, v4, v6, net, net4, net6) }
}

prop_compose! {
    fn echo()(
        numbers in numbers(),
        addresses in addresses(),
        t: String,
        bytes: Vec<u8>,
        id in (any::<u16>(), proptest::collection::vec(any::<u8>(), 0..255)),
        list in proptest::collection::vec(proptest::collection::vec(any::<String>(), 0..3), 0..3),
        route in route(),
        routes in proptest::collection::vec(route(), 0..4),
        note in any::<Option<String>>(),
    ) -> Echo {
        let (i, u, il, ul, f, b) = numbers;
        let (mac, ip, v4, v6, net, net4, net6) = addresses;
        Echo {
            i, u, il, ul, f, b, t, mac, ip, v4, v6, net, net4, net6, list, route, routes, note,
            bytes: Binary(bytes),
            id: Id { family: id.0, bytes: id.1 },
        }
    }
}

proptest! {
    #[test]
    fn arguments_survive_the_wire(echo in echo()) {
        let encoded = Encoded::new(echo.clone());
        let mut from = Decoder::new(encoded.args.bytes(), Vec::new());
        prop_assert_eq!(Echo::decode(&mut from).unwrap(), echo);
        prop_assert!(from.finish().is_ok());
    }

    #[test]
    fn arguments_survive_text(echo in echo()) {
        let interface = interface();
        let method = &interface.methods[usize::from(Echo::METHOD)];
        let encoded = Encoded::new(echo.clone());
        let mut from = Decoder::new(encoded.args.bytes(), Vec::new());
        let args = decode_arguments(&mut from, &method.args, &interface).unwrap();
        let text = format!("finder://probe/probe/1.2/echo?{args}");
        let xrl: Xrl = text.parse().unwrap();
        prop_assert_eq!(xrl.to_string(), text);
        let mut to = Encoder::new();
        encode_arguments(&xrl.args, &method.args, &interface, &mut to).unwrap();
        let (again, _) = to.finish();
        prop_assert_eq!(again.bytes(), encoded.args.bytes());
    }

    #[test]
    fn what_is_cut_off_is_an_error(echo in echo(), cut in 0.0..1.0) {
        let encoded = Encoded::new(echo);
        let bytes = encoded.args.bytes();
        let len = (bytes.len() as f64 * cut) as usize;
        let result = Echo::decode(&mut Decoder::new(&bytes[..len], Vec::new()));
        // Only the optional argument at the end may be missing.
        if let Ok(echo) = result {
            prop_assert_eq!(echo.note, None);
        }
    }

    #[test]
    fn garbage_never_panics(bytes: Vec<u8>, method in 0..10_u16) {
        let _ = Call::decode(method, &mut Decoder::new(&bytes, Vec::new()));
        let interface = interface();
        for method in &interface.methods {
            let _ = decode_arguments(&mut Decoder::new(&bytes, Vec::new()), &method.args, &interface);
        }
    }

    #[test]
    fn garbage_text_never_panics(text in ".{0,80}", tail in "[ -~]{0,60}") {
        let _ = text.parse::<Xrl>();
        let interface = interface();
        if let Ok(xrl) = format!("finder://a/b/1.0/c?{tail}").parse::<Xrl>() {
            for method in &interface.methods {
                let _ = encode_arguments(&xrl.args, &method.args, &interface, &mut Encoder::new());
            }
        }
    }
}

#[test]
fn the_papers_example_reads_and_prints() {
    let text = "finder://bgp/bgp/1.0/set_local_as?as:u32=1777";
    let xrl: Xrl = text.parse().unwrap();
    assert_eq!((xrl.target.as_str(), xrl.path().as_str()), ("bgp", "bgp/1.0/set_local_as"));
    assert_eq!(xrl.args[0].value.as_deref(), Some("1777"));
    assert_eq!(xrl.to_string(), text);
    let spec = "finder://rib/rib/1.0/lookup?addr:ipv4->net:ipv4net&hops:list<u32>";
    assert_eq!(spec.parse::<Xrl>().unwrap().to_string(), spec);
}

#[test]
fn mistakes_in_text_have_their_place() {
    for (text, offset, part) in [
        ("bgp/1.0/x", 0, "begins with a protocol"),
        ("finder://bgp/bgp/1.0", 20, "the method is missing"),
        ("finder://bgp/bgp/one/x", 17, "is no version"),
        ("finder://bgp/b gp/1.0/x", 14, "is no name of a interface"),
        ("finder://bgp/bgp/1.0/x/y", 22, "arguments begin with"),
        ("finder://bgp/bgp/1.0/x?as=5", 23, "name:type=value"),
        ("finder://bgp/bgp/1.0/x?as:u_33>=5", 26, "is no type"),
        ("finder://bgp/bgp/1.0/x?a:u32=5&a:u32=6", 31, "there twice"),
    ] {
        let error = text.parse::<Xrl>().unwrap_err();
        assert_eq!(error.offset, offset, "{text}: {error}");
        assert!(error.text.contains(part), "{text}: {error}");
    }
    let interface = interface();
    let method = interface.method("add").unwrap();
    for (text, offset, part) in [
        ("finder://p/probe/1.2/add?a:u32=5", 0, "`b:u32` is missing"),
        ("finder://p/probe/1.2/add?a:u32=5&b:txt=6", 39, "is a u32, not a txt"),
        ("finder://p/probe/1.2/add?a:u32=5&b:u32=-6", 39, "no u32"),
        ("finder://p/probe/1.2/add?a:u32=5&c:u32=6", 39, "no argument `c`"),
        ("finder://p/probe/1.2/add?a:u32=%zz&b:u32=6", 31, "two hexadecimal digits"),
    ] {
        let xrl: Xrl = text.parse().unwrap();
        let result = encode_arguments(&xrl.args, &method.args, &interface, &mut Encoder::new());
        let error = result.unwrap_err();
        assert_eq!(error.offset, offset, "{text}: {error}");
        assert!(error.text.contains(part), "{text}: {error}");
    }
}

#[test]
fn empty_lists_and_empty_texts_differ() {
    let interface = interface();
    let method = interface.method("echo").unwrap();
    let list = method.args.iter().find(|arg| arg.name == "list").unwrap();
    let fields =
        [weft_xif::Field { kind: weft_xif::Type::from_word("list<txt>").unwrap(), ..list.clone() }];
    for (values, text) in [
        (vec![], "list:list<txt>="),
        (vec![""], "list:list<txt>=,"),
        (vec!["", ""], "list:list<txt>=,,"),
        (vec!["a", ""], "list:list<txt>=a,,"),
        (vec!["a", "b,c"], "list:list<txt>=a,b%2Cc"),
    ] {
        let values: Vec<String> = values.into_iter().map(str::to_owned).collect();
        let mut to = Encoder::new();
        to.put(values);
        let (packet, _) = to.finish();
        let mut from = Decoder::new(packet.bytes(), Vec::new());
        assert_eq!(decode_arguments(&mut from, &fields, &interface).unwrap(), text);
        let args = weft_xrl::text::parse_arguments(text).unwrap();
        let mut again = Encoder::new();
        encode_arguments(&args, &fields, &interface, &mut again).unwrap();
        assert_eq!(again.finish().0.bytes(), packet.bytes(), "{text}");
    }
}

#[test]
fn limits_hold_for_every_element() {
    let interface = interface();
    let take = interface.method("take").unwrap();
    let limits =
        Limits::parse("routes.net=10.0.0.0/8|2001:db8::/32 routes.metric=1..9", take, &interface)
            .unwrap();
    let check = |net: &str, metric| {
        let route = Route {
            net: net.parse().unwrap(),
            nexthop: "192.0.2.1".parse().unwrap(),
            metric,
            comment: String::new(),
        };
        let inside = Route { net: "10.1.0.0/16".parse().unwrap(), metric: 1, ..route.clone() };
        let encoded = Encoded::new(probe::Take { routes: vec![inside, route] });
        limits.check(encoded.args.bytes(), take, &interface)
    };
    assert_eq!(check("10.2.0.0/16", 9), Ok(()));
    assert_eq!(check("2001:db8:1::/48", 9), Ok(()));
    assert!(check("0.0.0.0/0", 9).unwrap_err().contains("`routes.net` may not be 0.0.0.0/0"));
    assert!(check("11.0.0.0/16", 9).is_err());
    assert!(check("10.2.0.0/16", 10).unwrap_err().contains("`routes.metric` may not be 10"));
    for (text, part) in [
        ("x=1", "no argument `x`"),
        ("routes=1", "name a field"),
        ("routes.x=1", "no field `x`"),
        ("routes.net", "no range"),
    ] {
        assert!(Limits::parse(text, take, &interface).unwrap_err().contains(part), "{text}");
    }
}
