//! What the configuration says of network interfaces.
//!
//! ```text
//! interfaces {
//!     interface eth0 {
//!         address 192.0.2.1/24;
//!         address 2001:db8::1/64;
//!         mtu 9000;
//!     }
//!     interface br0 { kind bridge; }
//!     interface v0 { kind veth v1; master br0; }
//!     interface v1 { up off; loss { rate 5%; seed 7; direction ingress; } }
//!     interface eth1 { gro on; napi { threaded on; priority fifo 5; processor 1; } }
//! }
//! ```
//!
//! What is not said is left as it is, but that an interface which is named is set up.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use weft_config::{Document, Entry, Error, Errors, Form, InterfaceName, Probability, gather};
use weft_runtime::{
    Direction, InterfaceAddress, LossProbability, NewInterface, Program, Scheduling, Tuning,
    read_scheduling,
};

/// The statement.
pub const STATEMENT: &str = "interfaces";

/// What may be configured.
pub const SCHEMA: &str = r#"
container interfaces {
    help "network interfaces: what is not said is left as it is";
    list interface {
        help "an interface, which may appear later";
        key name interface { help "an interface"; }
        leaf up switch { default on; help "whether it is set up"; }
        leaf mtu number { range 68 65535; help "the largest packet, in bytes"; }
        leaf-list address interface-address { help "an address with the length of its prefix"; }
        leaf master interface { help "the bridge that it belongs to"; }
        container loss {
            help "an eBPF program drops packets at random";
            leaf rate probability { mandatory; help "how likely each packet is dropped"; }
            leaf seed number { default 0; help "what follows from it is which packets are dropped"; }
            leaf direction one-of ingress egress { default ingress; help "of packets received, or sent"; }
        }
        leaf gro switch { help "whether received packets are joined to longer ones (GRO)"; }
        container napi {
            help "how the kernel takes packets from the driver";
            leaf threaded switch { help "by a thread, which can have a priority and processors"; }
            words priority { usage "nice N|fifo N"; help "of the thread: a share of the processors, -20 to 19, or before others, 1 to 99"; }
            leaf-list processor number { range 0 1023; help "on which the thread may run, from 0 on"; }
            leaf defer-interrupts number { range 0 2147483647; help "how often it may find nothing before it switches the interrupt on again"; }
            leaf flush-timeout duration { help "how long it waits then, and packets may wait to be joined with later ones"; }
        }
        words kind { usage "bridge|dummy|veth PEER|vlan INTERFACE ID"; help "made if it is not there, and deleted with the statement"; }
    }
}
"#;

/// The smallest and the largest MTU that Linux lets an interface with IPv4 have.
const MTU: RangeInclusive<u32> = 68..=65_535;
/// The numbers of VLANs (IEEE 802.1Q).
const VLANS: RangeInclusive<u16> = 1..=4094;
/// How often a NAPI may find nothing before it switches its interrupt on again (`netdev.yaml`).
const DEFERRED: RangeInclusive<u32> = 0..=i32::MAX.cast_unsigned();
const ADDRESS: Form = Form { what: "the address of an interface", example: "192.0.2.1/24" };
const DIRECTION: Form = Form { what: "the direction of the packets", example: "ingress" };

/// Everything that is said, by the interfaces' names.
pub(crate) type Statement = BTreeMap<String, Wanted>;

/// What is said of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) up: bool,
    pub(crate) mtu: Option<u32>,
    pub(crate) addresses: BTreeSet<InterfaceAddress>,
    pub(crate) master: Option<String>,
    pub(crate) kind: Option<NewInterface>,
    /// The eBPF program that it has, and where.
    pub(crate) program: Option<(Direction, Program)>,
    /// How packets are taken from it.
    pub(crate) tuning: Tuning,
}

/// Reads the statement; an empty text says nothing.
///
/// # Errors
/// Every mistake with its place.
pub(crate) fn read(source: &str, text: &str) -> Result<Statement, Errors> {
    let document = Document::parse(source, text)?;
    let mut block = document.block();
    let entry = block.one(STATEMENT)?;
    block.finish()?;
    let Some(entry) = entry else { return Ok(Statement::new()) };
    entry.read_block(|block| {
        let mut statement = Statement::new();
        let entries = block.many("interface").into_iter().map(|mut entry| {
            let name: InterfaceName = entry.argument("the interface")?;
            let name = name.as_str().to_owned();
            let wanted = interface(&entry)?;
            match statement.insert(name.clone(), wanted) {
                None => Ok(()),
                Some(_) => {
                    let sentence = format!("`{name}` was described before: put both together");
                    Err(entry.error_at(1, sentence).into())
                }
            }
        });
        gather(entries.collect::<Vec<Result<(), Errors>>>())?;
        Ok(statement)
    })
}

fn interface(entry: &Entry<'_>) -> Result<Wanted, Errors> {
    entry.read_block(|block| {
        let up = block.leaf::<bool>("up")?.unwrap_or(true);
        let mtu = block.leaf_in("mtu", MTU)?;
        let addresses = gather(block.many("address").into_iter().map(addresses))?;
        let master = block.leaf::<InterfaceName>("master")?;
        let kind = block.one("kind")?.map(kind).transpose()?;
        let program = block.one("loss")?.map(|entry| loss(&entry)).transpose()?;
        let gro = block.leaf("gro")?;
        let tuning = block.one("napi")?.map(|entry| napi(&entry)).transpose()?;
        let tuning = Tuning { gro, ..tuning.unwrap_or_default() };
        Ok(Wanted {
            up,
            mtu,
            addresses: addresses.into_iter().flatten().collect(),
            master: master.map(|name| name.as_str().to_owned()),
            kind,
            program,
            tuning,
        })
    })
}

fn loss(entry: &Entry<'_>) -> Result<(Direction, Program), Errors> {
    entry.read_block(|block| {
        let rate: Probability = block.required("rate")?;
        let seed = block.leaf("seed")?.unwrap_or(0);
        let direction = block.leaf_with("direction", DIRECTION, direction)?;
        // Both count parts per billion, up to all.
        let rate = LossProbability::from_parts_per_billion(rate.parts_per_billion());
        let rate = rate.unwrap_or(LossProbability::ALWAYS);
        Ok((direction.unwrap_or(Direction::Ingress), Program::loss(rate, seed)))
    })
}

fn napi(entry: &Entry<'_>) -> Result<Tuning, Errors> {
    entry.read_block(|block| {
        let threaded = block.leaf("threaded")?;
        let threads = read_scheduling(block)?;
        let defer_interrupts = block.leaf_in("defer-interrupts", DEFERRED)?;
        let flush_timeout = block.leaf::<Duration>("flush-timeout")?;
        if threads != Scheduling::default() && threaded != Some(true) {
            let sentence = "a NAPI without a thread of its own has no priority and no processors: say `threaded on;`";
            return Err(entry.error(sentence).into());
        }
        Ok(Tuning { gro: None, threaded, threads, defer_interrupts, flush_timeout })
    })
}

/// Reads a direction.
///
/// # Errors
/// A clause that says what there is.
pub(crate) fn direction(text: &str) -> Result<Direction, &'static str> {
    let named = |direction: &Direction| direction.to_string() == text;
    Direction::ALL.into_iter().find(named).ok_or("it is `ingress` or `egress`")
}

fn addresses(mut entry: Entry<'_>) -> Result<Vec<InterfaceAddress>, Errors> {
    let mut addresses = Vec::new();
    while entry.peek().is_some() || addresses.is_empty() {
        addresses.push(entry.argument_with(ADDRESS, address)?);
    }
    entry.end()?;
    Ok(addresses)
}

fn address(text: &str) -> Result<InterfaceAddress, &'static str> {
    const FORM: &str = "an address, `/` and the length of its network's prefix";
    let (ip, prefix_length) = text.split_once('/').ok_or(FORM)?;
    let ip: IpAddr = ip.parse().map_err(|_| FORM)?;
    let longest = if ip.is_ipv4() { 32 } else { 128 };
    let prefix_length = prefix_length.parse().map_err(|_| FORM)?;
    match prefix_length <= longest {
        true => Ok(InterfaceAddress { ip, prefix_length }),
        false => Err("the prefix is longer than the address"),
    }
}

fn kind(mut entry: Entry<'_>) -> Result<NewInterface, Error> {
    let name = |entry: &mut Entry<'_>, what| {
        entry.argument::<InterfaceName>(what).map(|name| name.as_str().to_owned())
    };
    let kind = match entry.peek() {
        _ if entry.take("bridge") => NewInterface::Bridge,
        _ if entry.take("dummy") => NewInterface::Dummy,
        _ if entry.take("veth") => {
            NewInterface::Veth { peer: name(&mut entry, "the name of the other end")? }
        }
        _ if entry.take("vlan") => {
            let lower = name(&mut entry, "the interface that carries the VLAN")?;
            let id = entry.argument::<u16>("the number of the VLAN")?;
            if !VLANS.contains(&id) {
                return Err(entry.error_at(3, format!("{id} is no VLAN: 1 to 4094 are")));
            }
            NewInterface::Vlan { lower, id }
        }
        _ => {
            let sentence = "a kind is `bridge`, `dummy`, `veth PEER` or `vlan INTERFACE ID`";
            return Err(entry.error_at(1, sentence));
        }
    };
    entry.end()?;
    Ok(kind)
}

#[cfg(test)]
mod tests {
    use weft_config::{LoadMode, Schema, Tree};
    use weft_runtime::Priority;

    use super::*;

    const TEXT: &str = "\
interfaces {
    interface eth0 { address 192.0.2.1/24; address 2001:db8::1/64; mtu 9000; }
    interface br0 { kind bridge; }
    interface v0 { kind veth v1; master br0; }
    interface eth0.7 { kind vlan eth0 7; up off; }
    interface v1 { loss { rate 5%; seed 7; direction egress; } }
    interface v2 { loss { rate 0.25; } }
    interface v3 { gro off; napi { threaded on; priority fifo 7; processor 0; processor 2; } }
    interface v4 { napi { defer-interrupts 2; flush-timeout 20us; } }
}
";

    #[test]
    fn what_is_said_is_read() {
        let statement = read("t", TEXT).unwrap();
        let texts =
            |one: &Wanted| one.addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(texts(&statement["eth0"]), ["192.0.2.1/24", "2001:db8::1/64"]);
        assert_eq!((statement["eth0"].up, statement["eth0"].mtu), (true, Some(9000)));
        assert_eq!(statement["v0"].master.as_deref(), Some("br0"));
        assert_eq!(statement["v0"].kind, Some(NewInterface::Veth { peer: "v1".to_owned() }));
        let vlan = NewInterface::Vlan { lower: "eth0".to_owned(), id: 7 };
        assert_eq!((statement["eth0.7"].up, &statement["eth0.7"].kind), (false, &Some(vlan)));
        let loss = |percent: f64, seed| {
            Program::loss(LossProbability::from_fraction(percent / 100.0).unwrap(), seed)
        };
        assert_eq!(statement["v1"].program, Some((Direction::Egress, loss(5.0, 7))));
        assert_eq!(statement["v2"].program, Some((Direction::Ingress, loss(25.0, 0))));
        let threads =
            Scheduling { priority: Some(Priority::Fifo(7)), processors: BTreeSet::from([0, 2]) };
        let tuning =
            Tuning { gro: Some(false), threaded: Some(true), threads, ..Tuning::default() };
        assert_eq!(statement["v3"].tuning, tuning);
        let flush_timeout = Some(Duration::from_micros(20));
        let tuning = Tuning { defer_interrupts: Some(2), flush_timeout, ..Tuning::default() };
        assert_eq!(statement["v4"].tuning, tuning);
        assert_eq!(statement["v2"].tuning, Tuning::default());
        assert!(read("t", "").unwrap().is_empty());
    }

    #[test]
    fn the_schema_accepts_what_is_read_and_its_canonical_form_means_the_same() {
        let schema = Schema::parse("s", &format!("version 1; {SCHEMA}")).unwrap();
        let tree = Tree::parse("t", &format!("version 1; {TEXT}")).unwrap();
        let loaded = schema.load(&Tree::empty(), &tree, LoadMode::Override).unwrap();
        let text: String = loaded.part(STATEMENT).statements().map(ToString::to_string).collect();
        assert_eq!(read("t", &text).unwrap(), read("t", TEXT).unwrap());
    }

    #[test]
    fn mistakes_have_places() {
        for (text, part) in [
            ("interfaces { interface; }", "the interface"),
            ("interfaces { interface a/b; }", "a/b"),
            ("interfaces { interface a; interface a; }", "described before"),
            ("interfaces { interface a { mtu 67; } }", "67"),
            ("interfaces { interface a { address 192.0.2.1; } }", "192.0.2.1"),
            ("interfaces { interface a { address 192.0.2.1/33; } }", "longer than the address"),
            ("interfaces { interface a { address; } }", "address"),
            ("interfaces { interface a { up maybe; } }", "maybe"),
            ("interfaces { interface a { kind bond; } }", "`vlan INTERFACE ID`"),
            ("interfaces { interface a { kind vlan b 4095; } }", "1 to 4094"),
            ("interfaces { interface a { kind veth; } }", "the other end"),
            ("interfaces { interface a { loss { seed 7; } } }", "rate"),
            ("interfaces { interface a { loss { rate 5; } } }", "`5%` is a percentage"),
            ("interfaces { interface a { loss { rate 101%; } } }", "101%"),
            ("interfaces { interface a { loss { rate 5%; seed x; } } }", "x"),
            ("interfaces { interface a { loss { rate 5%; direction up; } } }", "`egress`"),
            ("interfaces { interface a { loss { rate 5%; sed 7; } } }", "did you mean `seed`?"),
            ("interfaces { interface a { loss { rate 5%; } loss { rate 6%; } } }", "loss"),
            ("interfaces { interface a { mut 1500; } }", "did you mean `mtu`?"),
            ("interfaces { interface a { gro maybe; } }", "maybe"),
            ("interfaces { interface a { napi { priority fifo 5; } } }", "`threaded on;`"),
            (
                "interfaces { interface a { napi { processor 5; threaded off; } } }",
                "`threaded on;`",
            ),
            ("interfaces { interface a { napi { threaded on; priority fifo 100; } } }", "1 to 99"),
            ("interfaces { interface a { napi { threaded on; priority nice; } } }", "the priority"),
            ("interfaces { interface a { napi { threaded on; processor 1024; } } }", "1023"),
            ("interfaces { interface a { napi { defer-interrupts 2147483648; } } }", "2147483647"),
            ("interfaces { interface a { napi { flush-timeout 5; } } }", "5"),
            ("interfaces { } fea { }", "fea"),
        ] {
            let error = read("t", text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("t:1:"), "{text}: {error}");
        }
    }
}
