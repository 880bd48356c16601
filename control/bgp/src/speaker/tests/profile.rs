//! Routes pass the points of the profile.

use super::*;
use crate::routes::Point;

/// The points that routes to a prefix have passed, in order, and whether they went there.
fn passed(world: &World, prefix: &Prefix) -> Vec<(Point, bool)> {
    let net = weft_routing::ip::Version::V4.net(prefix);
    let marks = world.bgp.routes.profile.marks(0, 100).marks;
    let of = marks.into_iter().filter(|mark| mark.net == net);
    of.map(|mark| (<Point as weft_base::Reason>::ALL[mark.point as usize], mark.gone)).collect()
}

#[test]
fn routes_are_marked_where_they_pass() {
    let mut world = World::new();
    let prefix = Prefix::new(&[198, 51, 100], 24).unwrap();
    world.announces(1, &prefix);
    assert_eq!(passed(&world, &prefix), [], "all points are off in the beginning");
    world.bgp.routes.profile.enable(&[], None).unwrap();
    // The same again is no news.
    world.announces(1, &prefix);
    assert_eq!(passed(&world, &prefix), [(Point::Entered, false)]);
    let other = Prefix::new(&[203, 0, 113], 24).unwrap();
    let way =
        |gone| [Point::Entered, Point::Queued, Point::Sent, Point::Told].map(|one| (one, gone));
    world.announces(1, &other);
    assert_eq!(passed(&world, &other), way(false));
    let mut bytes = Vec::new();
    let context = Context::new(Neighbour::External);
    crate::wire::withdraw(Family::IPV4_UNICAST, &context, vec![(0, other)], &mut bytes);
    world.says(1, &bytes);
    assert_eq!(passed(&world, &other)[4..], way(true));
}
