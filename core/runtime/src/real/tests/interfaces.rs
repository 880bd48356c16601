//! The machine's interfaces, watched and changed by a process in a network namespace of its own.

use weft_base::Token;
use weft_port::testing::{Namespace, privileged};

use super::run_script;
use crate::{Action, Event, InterfaceAddress, InterfaceChange, InterfaceRequest, NewInterface};

#[test]
fn a_process_makes_an_interface_and_sees_it_come_and_go() {
    if !privileged() {
        return;
    }
    let namespace = Namespace::new();
    let status = namespace.run(|| {
        let interface = || "one".to_owned();
        let address = InterfaceAddress { ip: "192.0.2.1".parse().unwrap(), prefix_length: 24 };
        let kind = NewInterface::Veth { peer: "two".to_owned() };
        let requests = [
            InterfaceRequest::Create { interface: interface(), kind },
            InterfaceRequest::AddAddress { interface: interface(), address },
            InterfaceRequest::Delete { interface: interface() },
            InterfaceRequest::Delete { interface: interface() },
        ];
        let (mut requests, mut answered, mut seen) = (requests.into_iter(), 0, false);
        run_script(move |turn| match &turn.event {
            Event::Start => turn.out.push(Action::WatchInterfaces),
            Event::Interface { change } => {
                let next = match change {
                    InterfaceChange::Complete => true,
                    InterfaceChange::Added(now) => now.name == "one",
                    InterfaceChange::Changed(now) => {
                        seen |= now.name == "one" && now.addresses.contains(&address);
                        now.name == "one" && !now.addresses.is_empty()
                    }
                    InterfaceChange::Removed { name, .. } => name == "one",
                };
                if next && let Some(request) = requests.next() {
                    turn.out.push(Action::ConfigureInterface { token: Token(9), request });
                }
            }
            Event::InterfaceConfigured { token, result } => {
                assert_eq!(*token, Token(9));
                answered += 1;
                match result {
                    Ok(()) => assert!(answered < 4),
                    Err(error) => {
                        assert!(answered == 4 && error.contains("no such interface"), "{error}");
                        assert!(seen);
                        turn.exit(0);
                    }
                }
            }
            other => panic!("{other:?}"),
        })
    });
    assert_eq!(status, 0);
}
