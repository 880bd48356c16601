//! Look-ups and statements.

use proptest::prelude::*;
use serde_json::json;
use weft_base::Instant;
use weft_xip::forward::DropReason;
use weft_xip::principal::{Answer, BindError, Branch, Input, Principal, SocketId};
use weft_xip::words::WordError;
use weft_xip::{Xid, XidType};

use crate::{ZFilter, best_filter, link_identifier, tagged_identifier, union};

const NOW: Instant = Instant::ZERO;

fn zf(last: u8) -> Xid {
    let mut id = [0; 20];
    id[19] = last;
    Xid::new(XidType::ZF, id)
}

fn hid(id: u8) -> Xid {
    Xid::new(XidType::HID, [id; 20])
}

fn set(node: &mut ZFilter, line: &str) -> Result<(), WordError> {
    node.set(NOW, &line.split(' ').collect::<Vec<_>>(), &mut Vec::new())
}

fn delete(node: &mut ZFilter, line: &str) -> Result<(), WordError> {
    node.delete(NOW, &line.split(' ').collect::<Vec<_>>(), &mut Vec::new())
}

fn with(lines: &[String]) -> ZFilter {
    let mut node = ZFilter::new();
    lines.iter().for_each(|line| set(&mut node, line).unwrap());
    node
}

/// The branches, or the answer if there are none.
fn ask(node: &ZFilter, xid: Xid) -> Result<Vec<Branch>, Answer> {
    let mut branches = Vec::new();
    match node.lookup(&xid, &mut branches) {
        Answer::Branches => Ok(branches),
        other => {
            assert!(branches.is_empty());
            Err(other)
        }
    }
}

#[test]
fn answers_by_the_roles_of_a_filter() {
    let mut node = with(&[
        format!("route {} via {}", zf(0x01), hid(2)),
        format!("route {} via {}", zf(0x02), hid(1)),
        format!("local {}", zf(0x10)),
    ]);
    let (to, through) = (Branch::To, Branch::Through);
    assert_eq!(ask(&node, zf(0x01)), Ok(vec![to(hid(2))]));
    let sorted = |filter| {
        let mut found = ask(&node, filter).unwrap();
        found.sort_by_key(Branch::target);
        found
    };
    assert_eq!(sorted(zf(0x03)), [to(hid(1)), to(hid(2))]);
    assert_eq!(sorted(zf(0x13)), [through, to(hid(1)), to(hid(2))]);
    assert_eq!(ask(&node, zf(0x13)).unwrap()[0], through);
    assert_eq!(ask(&node, zf(0x10)), Ok(vec![through]));
    assert_eq!(ask(&node, zf(0x04)), Err(Answer::Unknown));
    assert_eq!(ask(&node, zf(0x00)), Err(Answer::Unknown));
    assert_eq!(node.locals(), [zf(0x10)]);
    assert_eq!(node.bind(zf(0x10), SocketId(1)), Err(BindError::NoSockets));
}

#[test]
fn all_bits_of_a_link_must_be_set() {
    let node = with(&[format!("route {} via {}", zf(0x07), hid(1))]);
    assert_eq!(ask(&node, zf(0x03)), Err(Answer::Unknown));
    assert_eq!(ask(&node, zf(0x0f)), Ok(vec![Branch::To(hid(1))]));
}

#[test]
fn a_gateway_gets_one_copy_and_this_node_one() {
    let node = with(&[
        format!("route {} via {}", zf(0x01), hid(9)),
        format!("route {} via {}", zf(0x02), hid(8)),
        format!("route {} via {}", zf(0x04), hid(9)),
        format!("local {}", zf(0x08)),
        format!("local {}", zf(0x10)),
    ]);
    let mut found = ask(&node, zf(0x1f)).unwrap();
    assert_eq!(found[0], Branch::Through, "this node first");
    found.sort_by_key(Branch::target);
    assert_eq!(found, [Branch::Through, Branch::To(hid(8)), Branch::To(hid(9))]);
    found = ask(&node, zf(0x06)).unwrap();
    found.sort_by_key(Branch::target);
    assert_eq!(found, [Branch::To(hid(8)), Branch::To(hid(9))]);
}

#[test]
fn a_link_can_have_several_gateways_and_be_local() {
    let mut node = with(&[
        format!("route {} via {}", zf(0x01), hid(8)),
        format!("route {} via {}", zf(0x01), hid(7)),
        format!("local {}", zf(0x01)),
    ]);
    let mut found = ask(&node, zf(0x01)).unwrap();
    assert_eq!(found[0], Branch::Through);
    found.sort_by_key(Branch::target);
    assert_eq!(found, [Branch::Through, Branch::To(hid(7)), Branch::To(hid(8))]);
    delete(&mut node, &format!("route {} via {}", zf(0x01), hid(7))).unwrap();
    delete(&mut node, &format!("local {}", zf(0x01))).unwrap();
    assert_eq!(ask(&node, zf(0x01)), Ok(vec![Branch::To(hid(8))]));
    delete(&mut node, &format!("route {}", zf(0x01))).unwrap();
    assert_eq!(ask(&node, zf(0x01)), Err(Answer::Unknown));
}

#[test]
fn a_filter_that_is_more_than_half_full_is_refused() {
    let mut node = with(&[format!("local {}", zf(0xff))]);
    let mut id = [0; 20];
    id[10..].fill(0xff);
    let half = Xid::new(XidType::ZF, id);
    id[0] = 1;
    let more = Xid::new(XidType::ZF, id);
    assert_eq!(ask(&node, half), Ok(vec![Branch::Through]));
    assert_eq!(ask(&node, more), Err(Answer::Refuse(DropReason::FilterTooFull)));
    set(&mut node, "fill-limit 81").unwrap();
    assert_eq!(ask(&node, more), Ok(vec![Branch::Through]));
    assert!(delete(&mut node, "fill-limit 80").is_err());
    delete(&mut node, "fill-limit 81").unwrap();
    assert_eq!(ask(&node, more), Err(Answer::Refuse(DropReason::FilterTooFull)));
}

#[test]
fn named_links_follow_the_number_of_bits() {
    let mut node = with(&[format!("route link west via {}", hid(1)), "local link here".into()]);
    let tree = |bits| union(&[link_identifier("west", bits), link_identifier("here", bits)]);
    let both = Ok(vec![Branch::Through, Branch::To(hid(1))]);
    assert_eq!(ask(&node, tree(5)), both);
    set(&mut node, "bits 7").unwrap();
    assert_eq!(ask(&node, tree(5)), Err(Answer::Unknown));
    assert_eq!(ask(&node, tree(7)), both);
    delete(&mut node, "bits 7").unwrap();
    assert_eq!(ask(&node, tree(5)), both);
    delete(&mut node, "local link here").unwrap();
    assert_eq!(ask(&node, tree(5)), Ok(vec![Branch::To(hid(1))]));
}

#[test]
fn named_links_have_an_identifier_for_each_tag() {
    let given = zf(0x0f);
    let mut node = with(&[
        format!("route link west via {}", hid(1)),
        "local link here".into(),
        format!("route {given} via {}", hid(2)),
    ]);
    let both = Ok(vec![Branch::Through, Branch::To(hid(1))]);
    let names = ["west", "here"];
    assert_eq!(ask(&node, best_filter(names.into_iter(), 5, 1).1), both);
    set(&mut node, "tags 4").unwrap();
    for tag in 0..4 {
        let tree = union(&names.map(|name| tagged_identifier(name, 5, tag, 4)));
        assert_eq!(ask(&node, tree), both, "tag {tag}");
    }
    assert_eq!(ask(&node, best_filter(names.into_iter(), 5, 4).1), both);
    assert_eq!(
        ask(&node, union(&names.map(|name| link_identifier(name, 5)))),
        Err(Answer::Unknown)
    );
    assert_eq!(ask(&node, given), Ok(vec![Branch::To(hid(2))]), "it is no name");
    let west = (0..4).map(|tag| tagged_identifier("west", 5, tag, 4).to_string());
    assert_eq!(node.show()["links"]["west"], json!(west.collect::<Vec<_>>()));

    delete(&mut node, "local link here").unwrap();
    let here = tagged_identifier("here", 5, 3, 4);
    assert_eq!(ask(&node, here), Err(Answer::Unknown));
    assert!(delete(&mut node, "tags 5").is_err());
    delete(&mut node, "tags 4").unwrap();
    assert_eq!(ask(&node, link_identifier("west", 5)), Ok(vec![Branch::To(hid(1))]));
}

#[test]
fn two_links_may_share_an_identifier() {
    let twin = link_identifier("west", 5);
    let lines = [format!("route link west via {}", hid(1)), format!("route {twin} via {}", hid(1))];
    let mut node = with(&lines);
    let there = Ok(vec![Branch::To(hid(1))]);
    assert_eq!(ask(&node, twin), there);
    delete(&mut node, &lines[0]).unwrap();
    assert_eq!(ask(&node, twin), there, "the other link is still there");
    set(&mut node, &lines[1]).unwrap();
    delete(&mut node, &lines[1]).unwrap();
    assert_eq!(ask(&node, twin), Err(Answer::Unknown));
}

#[test]
fn what_is_not_there_cannot_be_deleted() {
    let mut node = with(&[format!("route {} via {}", zf(1), hid(1))]);
    let lines = [
        format!("local {}", zf(1)),
        format!("route {} via {}", zf(1), hid(2)),
        format!("route {}", zf(2)),
        format!("route link x via {}", hid(1)),
        "bits 6".to_owned(),
    ];
    for line in lines {
        assert!(delete(&mut node, &line).is_err(), "{line}");
    }
    assert_eq!(ask(&node, zf(1)), Ok(vec![Branch::To(hid(1))]));
    assert!(set(&mut node, &format!("route {}", zf(2))).is_err(), "no gateway");
}

#[test]
fn shows_everything_in_order() {
    let node = with(&[
        format!("route {} via {}", zf(2), hid(1)),
        format!("route {} via {}", zf(1), hid(2)),
        format!("route {} via {}", zf(1), hid(1)),
        "local link here".into(),
    ]);
    let here = link_identifier("here", 5).to_string();
    let route = |xid: Xid, via: Xid| json!({ "xid": xid.to_string(), "via": via.to_string() });
    assert_eq!(
        node.show(),
        json!({
            "locals": [here],
            "routes": [route(zf(1), hid(1)), route(zf(1), hid(2)), route(zf(2), hid(1))],
            "learned": [],
            "links": { "here": here },
            "bits": 5,
            "tags": 1,
            "fill-limit": 80,
            "adjacencies": null,
        })
    );
}

/// The tree from host 1 over 2 to 3, as host 2 has it.
#[test]
fn neighbours_are_links_of_trees() {
    let tell = |node: &mut ZFilter, neighbour: u8, up: bool| {
        let input = Input::Adjacency { own: hid(2), neighbour: hid(neighbour), up };
        node.handle(NOW, input, &mut Vec::new());
    };
    let mut node = ZFilter::new();
    tell(&mut node, 1, true);
    tell(&mut node, 3, true);
    let links = [(hid(1), hid(2)), (hid(2), hid(3))];
    let error = node.tree(&links, &[hid(3)]).unwrap().unwrap_err();
    assert!(error.contains("add the statement `adjacencies`"), "{error}");
    set(&mut node, "adjacencies").unwrap();
    let tree = |node: &ZFilter, ends: &[Xid]| -> Xid {
        let tree = node.tree(&links, ends).unwrap().unwrap();
        tree["xid"].as_str().unwrap().parse().unwrap()
    };
    let through = tree(&node, &[hid(3)]);
    assert_eq!(ask(&node, through), Ok(vec![Branch::To(hid(3))]));
    let both = tree(&node, &[hid(2), hid(3)]);
    assert_eq!(ask(&node, both), Ok(vec![Branch::Through, Branch::To(hid(3))]));
    assert_eq!(node.show()["learned"].as_array().map(Vec::len), Some(2));
    // Other identifiers of the same links, with another way of making them.
    set(&mut node, "tags 4").unwrap();
    let tagged = tree(&node, &[hid(3)]);
    assert_ne!(tagged, through);
    assert_eq!(ask(&node, tagged), Ok(vec![Branch::To(hid(3))]));
    tell(&mut node, 3, false);
    assert_eq!(ask(&node, tagged), Err(Answer::Unknown));
    tell(&mut node, 3, true);
    delete(&mut node, "adjacencies").unwrap();
    assert_eq!(ask(&node, tagged), Err(Answer::Unknown));
    assert!(delete(&mut node, "adjacencies").is_err());
}

proptest! {
    /// The model asks each entry by itself, bit by bit.
    #[test]
    fn finds_the_gateways_that_a_search_bit_by_bit_finds(
        entries in prop::collection::vec((0u32..40, prop::option::of(0u8..6)), 0..30),
        tree in prop::collection::vec(0u32..40, 0..12),
    ) {
        let link = |n: u32| link_identifier(&format!("link {n}"), 3);
        let mut node = ZFilter::new();
        for (n, gateway) in &entries {
            let line = match gateway {
                Some(gateway) => format!("route {} via {}", link(*n), hid(*gateway)),
                None => format!("local {}", link(*n)),
            };
            set(&mut node, &line).unwrap();
        }
        let filter = union(&tree.iter().map(|n| link(*n)).collect::<Vec<_>>());
        let bit = |xid: &Xid, at: usize| xid.id[at / 8] >> (at % 8) & 1;
        let holds = |n: &u32| (0..160).all(|at| bit(&link(*n), at) <= bit(&filter, at));
        let mut expected: Vec<_> =
            entries.iter().filter(|(n, _)| holds(n)).map(|(_, g)| g.map(hid)).collect();
        expected.sort();
        expected.dedup();
        let found = ask(&node, filter).unwrap_or_default();
        prop_assert_eq!(found.contains(&Branch::Through), found.first() == Some(&Branch::Through));
        let mut found: Vec<_> = found.iter().map(Branch::target).collect();
        found.sort();
        prop_assert_eq!(found, expected);
    }
}
