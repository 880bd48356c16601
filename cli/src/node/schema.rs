//! What a node's configuration may say, as a text from which anybody can check, complete and edit it.
//!
//! Reference: the handbook's chapters "Nodes" and "Principals" list the same statements.

/// What may be said, but for what only principals know.
const STATEMENTS: &str = include_str!("schema.conf");

/// The schema of node files; see [`weft_config::Schema`].
#[must_use]
pub fn node_schema() -> String {
    let principals = crate::principals();
    let names: Vec<_> = principals.names().collect();
    let case = |(name, statements)| format!("case {name} {{ {statements} }}\n");
    let cases: String = principals.statements().map(case).collect();
    STATEMENTS.replace("@names", &names.join(" ")).replace("@statements", &cases)
}

#[cfg(test)]
mod tests {
    use weft_base::Random;
    use weft_config::{LoadMode, Schema, Tree};

    use super::*;
    use crate::read_node_file;

    const FILE: &str = "\
version 1;
node r1;
program census { execute /usr/lib/census.py -q; access manager/manager; config { log 7; } }
log { level warning; component xia { level debug; } }
operators { user eve { access manager/manager; } group netops; }
xia {
    interface eth0 eth1;
    address;
    echo off;
    redirects 16;
    cache 1MiB;
    copies 65536;
    principal ad { route ad-0000000000000000000000000000000000000001 via \
hid-0000000000000000000000000000000000000002; }
    principal hid {
        local hid-0000000000000000000000000000000000000003;
        neighbour hid-0000000000000000000000000000000000000002 link 02:00:00:00:00:01 interface eth0;
        nwp off eth1;
        route hid-0000000000000000000000000000000000000004 via \
hid-0000000000000000000000000000000000000002;
        neighbour-limit 7;
        neighbour-expiry 20s;
        proof required eth0;
    }
    principal hid2 { local hid2-0000000000000000000000000000000000000003; proof off; }
    principal ether { interface eth0; neighbour 02:00:00:00:00:02 interface eth1; }
    principal u4id { tunnel 10.0.0.1:13781; }
    principal xdp;
    principal zf { bits 5; tags 2; fill-limit 80; route link a via \
hid-0000000000000000000000000000000000000002; local link here; }
    link-state {
        hello 500ms;
        hold 2s;
        interface eth0 metric 5;
        interface eth1 off;
        advertise xdp-0000000000000000000000000000000000000005;
        neighbour-limit 8;
    }
}
";

    /// Whether nodes read the text, and whether the schema accepts it.
    fn accepted(text: &str) -> (bool, bool) {
        let node = read_node_file("t", text, "/run/t".as_ref(), Random::from_seed(1));
        let schema = Schema::parse("schema.conf", &node_schema()).expect("the schema is right");
        let tree = Tree::parse("t", text).expect("the form is right");
        (node.is_ok(), schema.check(&tree, None).is_ok())
    }

    #[test]
    fn schema_and_nodes_accept_the_same() {
        assert_eq!(accepted(FILE), (true, true));
        for (right, wrong) in [
            ("node r1;", ""),
            ("echo off", "echo maybe"),
            ("echo off", "ecko off"),
            ("redirects 16", "redirects 17"),
            ("copies 65536", "copies 0"),
            ("level debug", "level loud"),
            ("level debug; ", ""),
            ("interface eth0 eth1", "interface eth/0"),
            ("principal xdp", "principal xyz"),
            ("principal xdp;", "principal ad;"),
            ("fill-limit 80", "filling 80"),
            ("neighbour 02:", "station 02:"),
            ("hello 500ms", "hello 500"),
            ("neighbour-limit 8", "neighbour-limit 0"),
            ("advertise xdp", "announce xdp"),
        ] {
            assert!(FILE.contains(right));
            assert_eq!(accepted(&FILE.replacen(right, wrong, 1)), (false, false), "{wrong}");
        }
    }

    #[test]
    fn a_protocol_of_which_nothing_is_said_stays() {
        let text = "version 1; node r1; xia { link-state { } }";
        assert_eq!(accepted(text), (true, true));
        let schema = Schema::parse("schema.conf", &node_schema()).expect("the schema is right");
        let tree = Tree::parse("t", text).expect("the form is right");
        let loaded = schema.load(&Tree::empty(), &tree, LoadMode::Override).expect("it fits");
        assert!(loaded.to_string().contains("link-state"), "{loaded}");
    }

    #[test]
    fn the_canonical_form_means_the_same_to_a_node() {
        let schema = Schema::parse("schema.conf", &node_schema()).expect("the schema is right");
        let tree = Tree::parse("t", FILE).expect("the form is right");
        let loaded = schema.load(&Tree::empty(), &tree, LoadMode::Override).expect("it fits");
        assert_eq!(accepted(&loaded.to_string()), (true, true));
    }

    #[test]
    fn every_principal_is_described() {
        let schema = Schema::parse("schema.conf", &node_schema()).expect("the schema is right");
        let offers = schema.complete(&Tree::empty(), "set xia principal ").candidates;
        let mut described: Vec<&str> = offers.iter().map(|offer| offer.text.as_str()).collect();
        described.sort_unstable();
        let principals = crate::principals();
        assert!(principals.names().eq(described.iter().copied()), "{described:?}");
    }
}
