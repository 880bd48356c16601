//! Tests of the cache as a whole: what it finds, what it forgets, and who goes when it is full.

use super::*;

const ALICE: PortId = PortId(1);
const BOB: PortId = PortId(2);

fn cache(limit: usize) -> DstCache {
    DstCache::new(limit, &mut Random::from_seed(1))
}

fn ad(number: u32) -> Xid {
    let mut id = [0; 20];
    id[..4].copy_from_slice(&number.to_be_bytes());
    Xid::new(XidType::AD, id)
}

/// Looks a packet to `ad(number)` up, as the forwarder does; true if it was in the cache.
fn packet(cache: &mut DstCache, number: u32, port: PortId) -> bool {
    let key = FreeKey::new(&[ad(number)], true);
    let tag = cache.tag(&key);
    if cache.find(&key, tag).is_some() {
        return true;
    }
    let answer = Answer::Deliver(SocketId(number));
    let decision = Decision::Deliver(SocketId(number));
    cache.insert(&key, tag, port, (decision, 0), &[(ad(number), answer)], &EgressTable::default());
    false
}

#[test]
fn a_decision_is_found_by_its_edges_in_order_and_by_where_the_packet_came_from() {
    let mut cache = cache(1 << 20);
    let keys: Vec<FreeKey> = [&[1][..], &[2], &[1, 2], &[2, 1], &[1, 2, 3], &[1, 2, 3, 4], &[1, 1]]
        .iter()
        .flat_map(|numbers| {
            let xids: Vec<_> = numbers.iter().map(|number| ad(*number)).collect();
            [true, false].map(|received| FreeKey::new(&xids, received))
        })
        .collect();
    for (number, key) in (0..).zip(&keys) {
        let tag = cache.tag(key);
        assert!(cache.find(key, tag).is_none(), "{key:?}");
        cache.insert(
            key,
            tag,
            ALICE,
            (Decision::Deliver(SocketId(number)), 0),
            &[],
            &EgressTable::default(),
        );
    }
    for (number, key) in (0..).zip(&keys) {
        let found = cache.find(key, cache.tag(key)).map(|found| (found.way(), found.slot()));
        assert_eq!(found, Some((Way::Deliver(SocketId(number)), 0)), "{key:?}");
    }
    assert_eq!(cache.size().entries, keys.len());
    assert_eq!(cache.clear(), keys.len());
    assert!(cache.find(&keys[0], cache.tag(&keys[0])).is_none());
}

#[test]
fn an_entry_that_rests_on_several_changed_answers_goes_once() {
    let mut cache = cache(1 << 20);
    let key = FreeKey::new(&[ad(1), ad(2)], true);
    let asked = [(ad(1), Answer::Unknown), (ad(2), Answer::Unknown)];
    let decision = (Decision::Drop(DropReason::Unreachable), 0);
    cache.insert(&key, cache.tag(&key), ALICE, decision, &asked, &EgressTable::default());
    assert_eq!(cache.changed(XidType::HID, &[Change::All], |_| Answer::Through), 0);
    assert_eq!(cache.changed(XidType::AD, &[Change::All], |_| Answer::Through), 1);
    let size = cache.size();
    assert_eq!((size.entries, size.anchors, size.leaves, size.bytes), (0, 0, 0, 0));
}

#[test]
fn the_limit_holds_whatever_comes() {
    let limit = 100_000;
    let mut cache = cache(limit);
    let mut random = Random::from_seed(2);
    for _ in 0..20_000 {
        packet(
            &mut cache,
            random.below(3000) as u32,
            if random.chance(1, 2) { ALICE } else { BOB },
        );
        assert!(cache.size().bytes <= limit);
    }
    assert!(cache.size().bytes > limit * 9 / 10);
    cache.set_limit(limit / 2);
    assert!(cache.size().bytes <= limit / 2);
    cache.set_limit(0);
    assert_eq!((cache.size().entries, cache.is_on()), (0, false));
}

/// Legitimate traffic to 200 destinations in a cache for about 400, from the same port as a flood of
/// destinations that occur once, ten for each legitimate packet.
#[test]
fn a_flood_of_unique_destinations_displaces_hardly_anything_in_use() {
    let mut cache = cache(100_000);
    let mut random = Random::from_seed(3);
    let mut unique = 1000;
    let (mut missed, mut packets) = (0, 0);
    for round in 0..100_000 {
        let hit = packet(&mut cache, random.below(200) as u32, ALICE);
        if round > 10_000 {
            packets += 1;
            missed += u32::from(!hit);
        }
        for _ in 0..10 {
            unique += 1;
            packet(&mut cache, unique, ALICE);
        }
    }
    assert!(missed * 50 < packets, "{missed} of {packets} missed");
}

/// A flooder who sends every destination four times looks like legitimate traffic, but takes from himself.
#[test]
fn a_flood_on_one_port_leaves_the_entries_of_another_alone() {
    let mut cache = cache(100_000);
    (0..100).for_each(|number| {
        packet(&mut cache, number, ALICE);
    });
    for number in 1000..50_000 {
        (0..4).for_each(|_| {
            packet(&mut cache, number, BOB);
        });
    }
    let left = (0..100).filter(|number| packet(&mut cache, *number, ALICE)).count();
    assert_eq!(left, 100);
    let shares = cache.size().shares;
    assert_eq!(shares.len(), 2);
}

#[test]
fn what_comes_back_soon_after_it_was_forgotten_is_kept_longer() {
    let mut cache = cache(100_000);
    (0..2000).for_each(|number| {
        packet(&mut cache, number, ALICE);
    });
    let early = 1500;
    assert!(!packet(&mut cache, early, ALICE), "it was forgotten, and is a ghost");
    (5000..5200).for_each(|number| {
        packet(&mut cache, number, ALICE);
    });
    assert!(packet(&mut cache, early, ALICE));
}

/// A sender who fills the cache with keys of one edge, then of two, and so on, of XIDs that occur once or again and again: memory
/// that was for one kind is no use for another, nor that of anchors for entries.
#[test]
fn the_limit_holds_for_what_is_taken_from_the_system_whatever_keys_come_in_turn() {
    let limit = 400_000;
    let mut cache = cache(limit);
    let mut number = 0;
    for (edges, are_new) in [
        (1, true),
        (4, false),
        (4, true),
        (2, false),
        (3, true),
        (1, false),
        (1, true),
        (2, true),
        (4, false),
    ] {
        // Few names in many orders take most memory for entries.
        for _ in 0..6000 {
            number += 1;
            let name = |at: u32| match are_new {
                true => ad(1000 + 4 * number + at),
                false => ad(number >> (4 * at) & 15 | at << 4),
            };
            let xids: Vec<_> = (0..edges).map(name).collect();
            let key = FreeKey::new(&xids, true);
            let tag = cache.tag(&key);
            if cache.find(&key, tag).is_some() {
                continue;
            }
            let asked: Vec<_> = xids.iter().map(|xid| (*xid, Answer::Unknown)).collect();
            let decision = (Decision::Drop(DropReason::Unreachable), 0);
            cache.insert(&key, tag, ALICE, decision, &asked, &EgressTable::default());
            let size = cache.size();
            assert!(size.bytes + size.spare <= limit, "{edges}: {size:?}");
            let found = cache.find(&key, tag);
            assert!(found.is_some());
        }
        // Of one edge there are few that are not new.
        let size = cache.size();
        let few = edges == 1 && !are_new;
        assert!(few || size.bytes > limit * 3 / 4, "{edges}: {size:?}");
        // All that is there is found, and in order of age.
        let entries: Vec<_> = cache.entries().collect();
        for entry in entries {
            let key = FreeKey::new(&entry.edges, true);
            assert!(cache.find(&key, cache.tag(&key)).is_some());
        }
    }
    cache.set_limit(limit / 2);
    let size = cache.size();
    assert!(size.bytes + size.spare <= limit / 2, "{size:?}");
    // What rests on an answer is still known.
    let entries = cache.size().entries;
    assert_eq!(cache.changed(XidType::AD, &[Change::All], |_| Answer::Through), entries);
    assert_eq!(cache.size().bytes, 0);
}

#[test]
fn the_limit_holds_when_a_principal_begins_to_speak_of_ranges() {
    let limit = 100_000;
    let mut cache = cache(limit);
    (0..2000).for_each(|number| {
        packet(&mut cache, number, ALICE);
    });
    let before = cache.size();
    let ask = |xid: &Xid| {
        let number = u32::from_be_bytes(*xid.id.first_chunk().unwrap());
        Answer::Deliver(SocketId(number))
    };
    let range = Change::Range(ad(1), ad(u32::MAX));
    assert_eq!(cache.changed(XidType::AD, &[range], ask), 0, "every answer is the same");
    // To find them in order takes memory, too.
    assert!(cache.size().bytes > before.bytes);
    let gone = cache.keep_limit();
    let size = cache.size();
    assert!(gone > 0 && size.entries + gone == before.entries);
    assert!(size.bytes + size.spare <= limit, "{size:?}");
}
