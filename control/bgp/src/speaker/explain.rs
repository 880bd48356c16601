//! What a policy would do to routes that are there, and why.

use std::net::IpAddr;
use std::rc::Rc;

use serde_json::{Value, json};
use weft_policy::{Program, names};
use weft_routing::Candidate;
use weft_routing::ip::Version;
use weft_xrl::XrlError;

use super::Bgp;
use super::peer::Peer;
use crate::interface::Explain;
use crate::policy::{Filter, Party, RouteView, VARIABLES};
use crate::routes::Path;
use crate::wire::Neighbour;

impl Bgp {
    /// What is asked for: for each path that there is to a prefix.
    pub(super) fn explain(&self, request: &Explain) -> Result<Value, XrlError> {
        let config =
            self.config.as_ref().ok_or_else(|| XrlError::failed("BGP is not configured"))?;
        let wrong = |errors: weft_config::Errors| XrlError::bad_args(errors.to_string());
        let chain: Vec<_> = request.policies.split_whitespace().collect();
        let chain = names("policies", &chain).map_err(wrong)?;
        let program = Program::new(&config.policies, VARIABLES, &chain).map_err(wrong)?;
        let filter = Filter::Policies(Rc::new(program));
        let (from, to) = (self.known(request.from)?, self.known(request.to)?);
        let bad_prefix = |error: weft_routing::ip::PageError| XrlError::bad_args(error.to_string());
        let found = self.routes.table.serving(false, &request.prefix).map_err(bad_prefix)?;
        let mut all = Vec::new();
        if let Some((version, number)) = found {
            let is_asked =
                |one: &&Candidate<Path>| from.is_none_or(|peer| peer.origin == one.origin);
            let best = self.routes.table.best(version, number);
            match to {
                Some(to) => {
                    let told = best
                        .filter(is_asked)
                        .map(|one| self.told((version, number), one, to, &filter));
                    all.extend(told);
                }
                None => {
                    let paths = self.routes.table.candidates(version, number).filter(is_asked);
                    all.extend(paths.map(|one| self.taken((version, number), one, &filter)));
                }
            }
        }
        Ok(Value::Array(all))
    }

    /// The peer at an address, if one is given.
    pub(super) fn known(&self, address: Option<IpAddr>) -> Result<Option<&Peer>, XrlError> {
        let Some(address) = address else { return Ok(None) };
        let peer = self.peers.get(&address);
        let note = || format!("there is no peer {address}: `weft show bgp peers` lists them");
        peer.map(Some).ok_or_else(|| XrlError::bad_args(note()))
    }

    /// What the policy does to a path as it was announced.
    fn taken(&self, place: (Version, u32), one: &Candidate<Path>, filter: &Filter) -> Value {
        let source = self.routes.source(one.origin);
        let peer = self.peers.get(&source.address);
        let up = peer.and_then(|peer| peer.up.as_ref());
        let received = &self.routes.sets.get(one.route.received).unpack();
        let net = self.routes.table.net(place.0, place.1);
        let view = RouteView {
            attributes: received,
            prefix: Some(net),
            protocol: source.protocol().0,
            metric: self.own.metric(&net).filter(|_| source.own.is_some()),
            from: source.party(),
            to: None,
            own: self.own(peer),
            validity: Some(self.validity(&net, received)),
        };
        let is_refused = up.is_some_and(|up| !up.announcer.accepts(received, place.0));
        let is_damped = self.routes.is_damped(one.origin, &(place.0, net, one.path));
        let note = match (is_refused, is_damped) {
            (true, _) => {
                Some("it is not used whatever policies say: its path, or who sent it, forbids that")
            }
            (false, true) => Some("it is not used now whatever policies say: it is damped"),
            (false, false) => None,
        };
        self.said(place, &view, filter, note)
    }

    /// What the policy does to a path as it is used here, on its way to a peer.
    fn told(
        &self,
        place: (Version, u32),
        one: &Candidate<Path>,
        to: &Peer,
        filter: &Filter,
    ) -> Value {
        let source = self.routes.source(one.origin);
        let attributes = &self.routes.sets.get(one.route.accepted).unpack();
        let view = RouteView {
            attributes,
            prefix: Some(self.routes.table.net(place.0, place.1)),
            protocol: source.protocol().0,
            metric: None,
            from: source.party(),
            to: Some(Party {
                address: to.address,
                system: self.routes.source(to.origin).system,
                is_external: to.config.neighbour == Neighbour::External,
            }),
            own: self.own(Some(to)),
            validity: None,
        };
        let may_hear = to.up.as_ref().is_none_or(|up| up.may_hear(attributes, source));
        let note = (!may_hear || one.origin == to.origin)
            .then_some("this peer is not told of it whatever policies say: its communities, or who sent it, forbid that");
        self.said(place, &view, filter, note)
    }

    /// This router's address of the session with a peer, if there is one, and its system.
    fn own(&self, peer: Option<&Peer>) -> (IpAddr, u32) {
        let up = peer.and_then(|peer| peer.up.as_ref());
        let address = up.map_or(IpAddr::from([0; 4]), |up| up.announcer.local_address);
        (address, self.config.as_ref().map_or(0, |config| config.home.outside()))
    }

    fn said(
        &self,
        (version, number): (Version, u32),
        view: &RouteView<'_>,
        filter: &Filter,
        note: Option<&str>,
    ) -> Value {
        let (_, why) = filter.explain(view);
        let mut json = why.as_ref().map_or(Value::Null, weft_policy::Explanation::json);
        json["text"] = why.map(|why| why.to_string()).into();
        json["prefix"] = self.routes.table.net(version, number).to_string().into();
        json["protocol"] = view.protocol.into();
        json["from"] = json!(view.from.map(|party| party.address.to_string()));
        json["to"] = json!(view.to.map(|party| party.address.to_string()));
        json["note"] = json!(note);
        json
    }
}
