//! Interfaces that the FEA watches for others.

use std::rc::Rc;
use std::time::Duration;

use weft_runtime::sim::{InterfaceConfig, Spawn, World, WorldConfig};
use weft_runtime::{Action, Event, InterfaceChange, LinkConfig};
use weft_xrl::{Input, Output};

use crate::network::{
    Boxed, Log, Script, component_process, directory, fea_process, finder_process, owner_process,
};

/// A component that watches interfaces and logs what it is told.
fn watcher(log: &Log) -> Boxed {
    let log = Rc::clone(log);
    Box::new(Script::new(move |_, input, out: &mut Vec<Output>| {
        match input {
            Input::World(Event::Start) => out.push(Output::World(Action::WatchInterfaces)),
            Input::World(Event::Interface { change }) => log.borrow_mut().push(match change {
                InterfaceChange::Added(one) => {
                    format!("+{} up {} {:?}", one.name, one.up, addresses(&one))
                }
                InterfaceChange::Changed(one) => {
                    format!("{} up {} {:?}", one.name, one.up, addresses(&one))
                }
                InterfaceChange::Removed { name, .. } => format!("-{name}"),
                InterfaceChange::Complete => "complete".to_owned(),
            }),
            _ => {}
        }
        None
    }))
}

fn addresses(one: &weft_runtime::Interface) -> Vec<String> {
    one.addresses.iter().map(|one| format!("{}/{}", one.ip, one.prefix_length)).collect()
}

#[test]
fn a_component_is_told_of_interfaces_by_whatever_fea_there_is() {
    let mut world = World::new(WorldConfig::default());
    let (one, two) = (world.add_node("one").unwrap(), world.add_node("two").unwrap());
    let eth0 = world.add_interface(one, InterfaceConfig::new("eth0")).unwrap();
    let far = world.add_interface(two, InterfaceConfig::new("eth0")).unwrap();
    let directory = directory("one");
    world.spawn(one, Spawn::new("finder", finder_process(&directory)));
    let owner = owner_process(&directory, &["fea/fea/1.0/watch_interfaces"]);
    world.spawn(one, Spawn::new("manager", owner));
    let fea = world.spawn(one, Spawn::new("fea", fea_process(&directory)));
    let log = Log::default();
    let component = component_process(&directory, 0, watcher(&log));
    world.spawn(one, Spawn::new("watcher", component));
    let after = |world: &mut World, change: &mut dyn FnMut(&mut World)| {
        change(world);
        // Longer than an answer of the FEA may take.
        let until = world.now() + Duration::from_secs(100);
        world.run_until(until).unwrap();
        std::mem::take(&mut *log.borrow_mut())
    };
    assert_eq!(after(&mut world, &mut |_| ()), ["+eth0 up true []", "complete"]);
    let told = after(&mut world, &mut |world| {
        let link = LinkConfig::default;
        world.connect((eth0, link()), (far, link())).unwrap();
        world.add_address(eth0, [10, 0, 0, 1].into(), 24).unwrap();
    });
    assert_eq!(told.last().unwrap(), "eth0 up true [\"10.0.0.1/24\"]");
    let told = after(&mut world, &mut |world| world.set_up(eth0, false));
    assert_eq!(told, ["eth0 up false [\"10.0.0.1/24\"]"]);
    let told = after(&mut world, &mut |world| {
        world.add_interface(one, InterfaceConfig::new("eth1")).unwrap();
    });
    assert_eq!(told, ["+eth1 up true []"]);
    // While there is no FEA, something changes; the next one is believed, and nothing is told twice.
    let told = after(&mut world, &mut |world| {
        world.kill(fea);
        world.delete_interface(eth0);
    });
    assert!(told.is_empty(), "{told:?}");
    let told = after(&mut world, &mut |world| {
        world.spawn(one, Spawn::new("fea", fea_process(&directory)));
    });
    assert_eq!(told, ["-eth0"]);
}
