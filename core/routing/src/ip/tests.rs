//! All versions in one, and what operators see of them.

use super::*;

struct First;

impl Decide<u32> for First {
    fn best(&self, candidates: Candidates<'_, u32>) -> Option<usize> {
        candidates.best_by(|_| true, |one, other| one.route < other.route)
    }
}

fn net(text: &str) -> (Version, Prefix) {
    split(text.parse().unwrap())
}

const NETS: [&str; 6] =
    ["10.0.0.0/8", "10.1.0.0/16", "192.0.2.0/24", "2001:db8::/32", "2001:db8:1::/48", "::/0"];

fn routes() -> (IpRoutes<u32>, OriginId) {
    let mut routes = IpRoutes::new();
    let origin = routes.add_origin();
    for (number, text) in (0..).zip(NETS) {
        let (version, prefix) = net(text);
        assert_eq!(routes.set((version, &prefix), origin, 0, number, &First), None);
    }
    (routes, origin)
}

fn texts(routes: &IpRoutes<u32>, page: &Page) -> Vec<String> {
    page.found.iter().map(|(version, number)| routes.net(*version, *number).to_string()).collect()
}

#[test]
fn networks_are_strings_of_bits_with_a_version() {
    for text in NETS {
        let (version, prefix) = net(text);
        assert_eq!(version.net(&prefix).to_string(), text);
    }
    let (version, prefix) = net("192.0.2.64/26");
    let addresses = version.addresses(&prefix);
    assert_eq!(addresses.start().to_string(), "192.0.2.64");
    assert_eq!(addresses.end().to_string(), "192.0.2.127");
    let (version, prefix) = net("2001:db8::/127");
    assert_eq!(version.addresses(&prefix).end().to_string(), "2001:db8::1");
    assert_eq!(Version::of(*addresses.start()), Version::V4);
}

const ALL: Asked<'static> = Asked { multicast: false, within: None, from: None, at_most: None };

#[test]
fn pages_follow_one_another_through_both_versions() {
    let (routes, _) = routes();
    for most in 1..8 {
        let (mut all, mut from) = (Vec::new(), None::<IpNet>);
        loop {
            let text = from.map(|from| from.to_string());
            let page =
                routes.page(&Asked { from: text.as_deref(), at_most: Some(most), ..ALL }).unwrap();
            assert!(page.found.len() <= most as usize);
            all.extend(texts(&routes, &page));
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        let expected = [
            "10.0.0.0/8",
            "10.1.0.0/16",
            "192.0.2.0/24",
            "::/0",
            "2001:db8::/32",
            "2001:db8:1::/48",
        ];
        assert_eq!(all, expected, "{most} at a time");
    }
    assert!(
        routes
            .page(&Asked { from: Some("10.0.0.1"), ..ALL })
            .unwrap_err()
            .to_string()
            .contains("10.0.0.1")
    );
}

#[test]
fn the_longest_that_has_routes_serves() {
    let (mut routes, origin) = routes();
    // Somebody must still hear that it is gone, so that its name is there.
    routes.open_reader(Version::V4, Hears::Best);
    let (version, prefix) = net("10.1.0.0/16");
    assert_eq!(routes.withdraw((version, &prefix), origin, 0, &First), Some(1));
    let served = |text: &str| {
        let found = routes.serving(false, text).unwrap();
        found.map(|(version, number)| routes.net(version, number).to_string())
    };
    assert_eq!(served("10.1.2.3").as_deref(), Some("10.0.0.0/8"));
    assert_eq!(served("192.0.2.0/25").as_deref(), Some("192.0.2.0/24"));
    assert_eq!(served("192.0.3.1"), None);
    assert_eq!(served("2001:db8:1::7").as_deref(), Some("2001:db8:1::/48"));
    assert_eq!(served("fe80::1").as_deref(), Some("::/0"));
    assert!(routes.serving(false, "here").unwrap_err().to_string().contains("`here`"));
}

#[test]
fn routes_for_multicast_are_apart_from_those_that_packets_follow() {
    let (mut routes, origin) = routes();
    for text in ["192.0.2.0/24", "2001:db8::/32"] {
        let (version, prefix) = split_for(text.parse().unwrap(), true);
        assert!(version.is_multicast() && version.with(false) == net(text).0);
        assert_eq!(version.net(&prefix).to_string(), text);
        assert_eq!(routes.set((version, &prefix), origin, 0, 7, &First), None);
    }
    let multicast = Asked { multicast: true, ..ALL };
    let page = routes.page(&multicast).unwrap();
    assert_eq!(texts(&routes, &page), ["192.0.2.0/24", "2001:db8::/32"]);
    let behind = routes.page(&Asked { from: Some("192.0.2.0/24"), ..multicast }).unwrap();
    assert_eq!(texts(&routes, &behind), ["2001:db8::/32"]);
    assert_eq!(routes.serving(true, "10.1.2.3"), Ok(None));
    let (version, number) = routes.serving(true, "192.0.2.1").unwrap().unwrap();
    assert_eq!(routes.best(version, number).unwrap().route, 7);
    let all = Version::ALL.map(|version| routes.len(version));
    assert_eq!(all, [3, 3, 1, 1]);
    // What is gone for one is there for the other.
    let (_, prefix) = net("192.0.2.0/24");
    assert_eq!(routes.withdraw((version, &prefix), origin, 0, &First), Some(7));
    assert!(routes.number(Version::V4, &prefix).is_some());
    routes.renew(Version::V6Multicast, origin);
    routes.sweep(Version::V6Multicast, origin);
    while routes.has_work() {
        routes.work(1, &First, |(version, _), _| assert_eq!(version, Version::V6Multicast));
    }
    assert_eq!(Version::ALL.map(|version| routes.len(version)), [3, 3, 0, 0]);
}

#[test]
fn packets_from_elsewhere_go_to_networks_that_are_not_on_a_host_or_a_link() {
    for (text, expected) in [
        ("0.0.0.0/0", true),
        ("0.0.0.0/1", true),
        ("128.0.0.0/1", true),
        ("0.0.0.0/7", true),
        ("126.0.0.0/7", true),
        ("192.0.0.0/2", true),
        ("1.0.0.0/8", true),
        ("169.254.0.0/16", true),
        ("223.255.255.0/24", true),
        ("0.0.0.0/8", false),
        ("0.1.0.0/16", false),
        ("127.0.0.0/8", false),
        ("127.1.2.3/32", false),
        ("127.255.255.255/1", true),
        ("224.0.0.0/3", false),
        ("224.0.0.0/4", false),
        ("240.0.0.0/4", false),
        ("255.255.255.255/32", false),
        ("::/0", true),
        ("::/1", true),
        ("8000::/1", true),
        ("::/127", true),
        ("fe00::/7", true),
        ("fe80::/9", true),
        ("2001:db8::/32", true),
        ("fc00::/7", true),
        ("::/128", false),
        ("::1/128", false),
        ("fe80::/10", false),
        ("fe80::/64", false),
        ("ff00::/8", false),
        ("ff02::1/128", false),
    ] {
        assert_eq!(super::is_destination(&text.parse().unwrap()), expected, "{text}");
    }
}

#[test]
fn a_page_may_be_of_what_is_within_a_prefix() {
    let mut routes = IpRoutes::new();
    let origin = routes.add_origin();
    let nets = [
        "9.0.0.0/8",
        "10.0.0.0/8",
        "10.0.0.0/16",
        "10.1.0.0/16",
        "10.1.2.0/24",
        "10.2.0.0/16",
        "11.0.0.0/8",
        "2001:db8::/32",
        "2001:db8:1::/48",
        "2001:db9::/32",
    ];
    for (number, text) in (0..).zip(nets) {
        let (version, prefix) = net(text);
        assert_eq!(routes.set((version, &prefix), origin, 0, number, &First), None);
    }
    let within = |prefix: &str, most| {
        let (mut all, mut from) = (Vec::new(), None::<IpNet>);
        loop {
            let text = from.map(|net| net.to_string());
            let (within, from_text) = (Some(prefix), text.as_deref());
            let asked = Asked { within, from: from_text, at_most: Some(most), ..ALL };
            let page = routes.page(&asked).unwrap();
            all.extend(texts(&routes, &page));
            from = page.next;
            if from.is_none() {
                return all;
            }
        }
    };
    for most in [1, 2, 3, 100] {
        assert_eq!(within("10.0.0.0/8", most), nets[1..6], "{most}");
        assert_eq!(within("10.1.0.0/16", most), nets[3..5], "{most}");
        assert_eq!(within("10.0.0.0/15", most), nets[2..5], "which is no destination itself");
        assert_eq!(within("10.3.0.0/16", most), [""; 0]);
        assert_eq!(within("2001:db8::/32", most), nets[7..9], "{most}");
        assert_eq!(within("::/0", most), nets[7..], "{most}");
    }
    let error = routes.page(&Asked { within: Some("10.1.0.0/8"), ..ALL }).unwrap_err();
    assert!(error.to_string().contains("without bits behind its length"), "{error}");
}
