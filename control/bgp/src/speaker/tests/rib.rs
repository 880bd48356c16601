//! A RIB as BGP sees it: it answers every call at once, and reaches all next hops.

use std::collections::BTreeSet;

use ipnet::IpNet;
use weft_xrl::{Calls, Decoder, Encoded, Input, Method, Output, Reply};

use crate::rib_interface::{Call, Change, OpenOriginReply, RegisterReply, Way};

#[derive(Debug, Default)]
pub(super) struct Rib {
    /// What it says of routes of an earlier process.
    pub(super) kept: bool,
    /// What it was told and not told again.
    pub(super) stale: BTreeSet<IpNet>,
    pub(super) routes: BTreeSet<IpNet>,
    /// How many routes it was told, or told that they are gone.
    pub(super) changes: usize,
    /// For how many protocols it was said that everything is told.
    pub(super) ends: usize,
}

impl Rib {
    /// The reply to what BGP does, if that is a call.
    pub(super) fn answer(&mut self, output: &Output) -> Option<Input> {
        let Output::Call(call) = output else { return None };
        let Method::Known(_, method) = call.method else { panic!("not a method of the RIB") };
        let mut from = Decoder::new(call.arguments.args.bytes(), Vec::new());
        let encoded = match Call::decode(method, &mut from).unwrap() {
            Call::OpenOrigin(_) => {
                Encoded::new(OpenOriginReply { origin: 1, kept: Some(self.kept) })
            }
            Call::Change(change) => self.change(change),
            Call::End(_) => {
                self.stale.clear();
                self.ends += 1;
                Encoded::default()
            }
            Call::Register(request) => {
                let way = |address| Way {
                    block: IpNet::from(address),
                    found: true,
                    metric: 0,
                    is_neighbour: true,
                };
                Encoded::new(RegisterReply {
                    ways: request.addresses.into_iter().map(way).collect(),
                })
            }
            // It has nothing to tell.
            Call::Invalid(_) => return None,
            _ => panic!("BGP does not call that"),
        };
        Some(Input::Replied { token: call.token, result: Ok(Reply::Arguments(encoded)) })
    }

    fn change(&mut self, change: Change) -> Encoded {
        self.changes += change.routes.len() + change.gone.len();
        for route in change.routes {
            self.stale.remove(&route.net);
            self.routes.insert(route.net);
        }
        for net in change.gone {
            self.routes.remove(&net);
        }
        Encoded::default()
    }
}
