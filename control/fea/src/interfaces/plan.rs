//! What has to be asked of the kernel so that interfaces become what the configuration says.

use std::collections::{BTreeMap, BTreeSet};

use weft_runtime::{Interface, InterfaceRequest, NewInterface};

use super::statement::{Statement, Wanted};

/// One step on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Ask(InterfaceRequest),
    /// Wait until the kernel tells of an interface.
    Appear(String),
    /// Attach what is configured to the interfaces that are there, and detach what is not any more.
    Programs,
}

/// The interfaces that there are, by their numbers.
pub(super) type Present = BTreeMap<u32, Interface>;

/// The way from what was configured, and what is there, to what is configured now. What nobody
/// configured is left alone, and so are interfaces that are not there and have no kind.
pub(super) fn plan(old: &Statement, new: &Statement, present: &Present) -> Vec<Step> {
    let mut plan = Plan { steps: Vec::new(), there: by_name(present), present };
    for (name, was) in old {
        plan.leave(name, was, new.get(name));
    }
    let made: BTreeSet<&str> = plan.make(new);
    for (name, wanted) in new {
        plan.settle(name, wanted, made.contains(name.as_str()));
    }
    plan.steps
}

struct Plan<'a> {
    steps: Vec<Step>,
    /// What will be there.
    there: BTreeMap<&'a str, &'a Interface>,
    present: &'a Present,
}

impl<'a> Plan<'a> {
    fn ask(&mut self, request: InterfaceRequest) {
        self.steps.push(Step::Ask(request));
    }

    /// Takes back what was configured and is not any more.
    fn leave(&mut self, name: &str, was: &Wanted, wanted: Option<&Wanted>) {
        let Some(found) = self.there.get(name).copied() else { return };
        let interface = name.to_owned();
        if was.kind.is_some() && wanted.is_none_or(|wanted| wanted.kind != was.kind) {
            self.there.remove(name);
            if let Some(NewInterface::Veth { peer }) = &was.kind {
                self.there.remove(peer.as_str());
            }
            return self.ask(InterfaceRequest::Delete { interface });
        }
        let still = |address| wanted.is_some_and(|wanted| wanted.addresses.contains(address));
        let gone = was.addresses.iter().filter(|one| found.addresses.contains(one) && !still(one));
        for address in gone {
            let interface = name.to_owned();
            self.ask(InterfaceRequest::DeleteAddress { interface, address: *address });
        }
        let free = wanted.is_none_or(|wanted| wanted.master.is_none());
        if was.master.is_some() && free && found.master.is_some() {
            self.ask(InterfaceRequest::SetMaster { interface, master: None });
        }
    }

    /// Makes interfaces that are not there, those that stand on others last.
    fn make<'s>(&mut self, new: &'s Statement) -> BTreeSet<&'s str> {
        let wanted = new.iter().filter_map(|(name, wanted)| Some((name, wanted.kind.as_ref()?)));
        let stands = |kind: &NewInterface| matches!(kind, NewInterface::Vlan { .. });
        let (upper, lower): (Vec<_>, Vec<_>) = wanted.partition(|(_, kind)| stands(kind));
        let mut made = BTreeSet::new();
        for (name, kind) in lower.into_iter().chain(upper) {
            // The other end of a veth pair that was just made.
            if self.there.contains_key(name.as_str()) || made.contains(name.as_str()) {
                continue;
            }
            made.insert(name.as_str());
            let mut names = vec![name];
            if let NewInterface::Veth { peer } = kind {
                made.insert(peer);
                names.push(peer);
            }
            self.ask(InterfaceRequest::Create { interface: name.clone(), kind: kind.clone() });
            self.steps.extend(names.into_iter().cloned().map(Step::Appear));
        }
        made
    }

    /// Settings of an interface that is there, or was just made.
    fn settle(&mut self, name: &str, wanted: &Wanted, made: bool) {
        let found = self.there.get(name).copied();
        if found.is_none() && !made {
            return;
        }
        let interface = || name.to_owned();
        let master = found.and_then(|found| self.present.get(&found.master?));
        let master = master.map(|master| master.name.as_str());
        if wanted.master.is_some() && wanted.master.as_deref() != master {
            let master = wanted.master.clone();
            self.ask(InterfaceRequest::SetMaster { interface: interface(), master });
        }
        if let Some(mtu) = wanted.mtu.filter(|mtu| found.is_none_or(|found| found.mtu != *mtu)) {
            self.ask(InterfaceRequest::SetMtu { interface: interface(), mtu });
        }
        let has = |address| found.is_some_and(|found| found.addresses.contains(address));
        for address in wanted.addresses.iter().filter(|address| !has(address)) {
            self.ask(InterfaceRequest::AddAddress { interface: interface(), address: *address });
        }
        if found.is_some_and(|found| found.up) != wanted.up {
            self.ask(InterfaceRequest::SetUp { interface: interface(), up: wanted.up });
        }
    }
}

fn by_name(present: &Present) -> BTreeMap<&str, &Interface> {
    present.values().map(|one| (one.name.as_str(), one)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::statement::read;
    use super::*;

    fn wanted(text: &str) -> Statement {
        read("t", &format!("interfaces {{ {text} }}")).unwrap()
    }

    fn interface(index: u32, name: &str) -> Interface {
        Interface {
            index,
            name: name.to_owned(),
            kind: "veth".to_owned(),
            mac: None,
            mtu: 1500,
            up: false,
            running: false,
            master: None,
            addresses: BTreeSet::new(),
        }
    }

    fn present(all: impl IntoIterator<Item = Interface>) -> Present {
        all.into_iter().map(|one| (one.index, one)).collect()
    }

    fn steps(old: &str, new: &str, present: &Present) -> Vec<String> {
        let text = |step| match step {
            Step::Ask(request) => InterfaceRequest::to_string(&request),
            Step::Appear(name) => format!("waiting for `{name}`"),
            Step::Programs => "programs".to_owned(),
        };
        plan(&wanted(old), &wanted(new), present).into_iter().map(text).collect()
    }

    #[test]
    fn only_what_differs_is_asked_for() {
        let mut eth0 = interface(2, "eth0");
        let text = "interface eth0 { address 192.0.2.1/24; mtu 9000; } interface eth1;";
        let there = present([eth0.clone()]);
        assert_eq!(
            steps("", text, &there),
            [
                "setting the MTU of `eth0` to 9000",
                "giving `eth0` the address 192.0.2.1/24",
                "setting `eth0` up"
            ]
        );
        (eth0.up, eth0.mtu) = (true, 9000);
        eth0.addresses = wanted(text)["eth0"].addresses.clone();
        let there = present([eth0]);
        assert!(steps("", text, &there).is_empty());
        assert_eq!(steps(text, "", &there), ["taking the address 192.0.2.1/24 from `eth0`"]);
        let other = "interface eth0 { up off; address 192.0.2.2/24; }";
        assert_eq!(
            steps(text, other, &there),
            [
                "taking the address 192.0.2.1/24 from `eth0`",
                "giving `eth0` the address 192.0.2.2/24",
                "setting `eth0` down"
            ]
        );
    }

    #[test]
    fn addresses_of_others_stay() {
        let mut eth0 = interface(2, "eth0");
        eth0.up = true;
        eth0.addresses = wanted("interface a { address 10.0.0.1/8; }")["a"].addresses.clone();
        let there = present([eth0]);
        assert!(steps("interface eth0;", "", &there).is_empty());
        assert!(steps("", "interface eth0;", &there).is_empty());
    }

    #[test]
    fn virtual_interfaces_are_made_and_deleted_with_their_statements() {
        let text = "interface br0 { kind bridge; } interface v0 { kind veth v1; master br0; }
             interface v1; interface a7 { kind vlan v1 7; up off; }";
        let made = [
            "making the interface `br0`",
            "waiting for `br0`",
            "making the interface `v0`",
            "waiting for `v0`",
            "waiting for `v1`",
            "making the interface `a7`",
            "waiting for `a7`",
            "setting `br0` up",
            "making `v0` a member of `br0`",
            "setting `v0` up",
            "setting `v1` up",
        ];
        assert_eq!(steps("", text, &Present::new()), made);
        let mut all = ["br0", "v0", "v1"].map(|name| interface(name.len() as u32, name));
        for (index, one) in (1..).zip(&mut all) {
            (one.index, one.up) = (index, true);
        }
        all[1].master = Some(1);
        let there = present(all);
        assert_eq!(steps(text, text, &there), ["making the interface `a7`", "waiting for `a7`"]);
        assert_eq!(
            steps(text, "interface v1;", &there),
            ["deleting the interface `br0`", "deleting the interface `v0`"]
        );
        let free = "interface br0 { kind bridge; } interface v0 { kind veth v1; } interface v1;";
        assert_eq!(steps(text, free, &there), ["making `v0` a member of nothing"]);
        // Another kind is another interface.
        assert_eq!(
            steps(text, "interface v0 { kind dummy; }", &there),
            [
                "deleting the interface `br0`",
                "deleting the interface `v0`",
                "making the interface `v0`",
                "waiting for `v0`",
                "setting `v0` up"
            ]
        );
    }
}
