//! `weft bgp clear`: `bgp/1.6/clear`, of one peer or of several.

use std::net::IpAddr;

use serde_json::{Value, json};
use weft_bgp::interface::Clear;

use super::{ClearArgs, Direction};
use crate::output::{Outcome, json_lines, print_lines};
use crate::show::{Asker, bgp};

pub(super) fn run(args: &ClearArgs) -> Outcome {
    let asker = Asker::new(&args.node)?;
    let soft = soft(args);
    let peers = match args.peer {
        Some(peer) => vec![peer],
        None => {
            let shown = bgp::answer(&asker, bgp::request("peers"))?;
            chosen(&shown, (args.remote_as, args.group.as_deref()), soft.is_some())?
        }
    };
    // With all of them or with none; and what they are told again is made once for all.
    if let [peer, others @ ..] = &peers[..] {
        let (peer, others) = (*peer, (!others.is_empty()).then(|| others.to_vec()));
        let (soft, hard) = (soft.map(str::to_owned), Some(args.hard));
        asker.ask("bgp", Clear { peer, soft, hard, others })?;
    }
    let lines: Vec<_> = peers.iter().map(|peer| line(*peer, soft, args.hard)).collect();
    let shown = match args.peer {
        Some(peer) => json!({ "peer": peer.to_string(), "soft": soft, "hard": args.hard }),
        None => {
            let peers: Vec<_> = peers.iter().map(ToString::to_string).collect();
            json!({ "peers": peers, "soft": soft, "hard": args.hard })
        }
    };
    print_lines(if args.json { json_lines(&shown) } else { lines })?;
    Ok(0)
}

/// The word for what is done while the session goes on.
fn soft(args: &ClearArgs) -> Option<&'static str> {
    match args.soft {
        _ if args.damping => Some("damping"),
        Some(Direction::In) => Some("in"),
        Some(Direction::Out) => Some("out"),
        None => None,
    }
}

fn line(peer: IpAddr, soft: Option<&str>, hard: bool) -> String {
    match soft {
        Some("damping") => format!("{peer}: it is forgotten how its routes have come and gone"),
        Some("in") => format!("{peer} is asked to announce everything again"),
        Some(_) => format!("{peer} is told everything again"),
        None if hard => format!("{peer}: the session was ended by a hard reset, and begins again"),
        None => format!("{peer}: the session was ended, and begins again"),
    }
}

/// The peers that are meant: those of an autonomous system, of a group, or all; of these only the ones with a session if
/// it is to go on.
fn chosen(
    shown: &Value,
    (remote_as, group): (Option<u32>, Option<&str>),
    goes_on: bool,
) -> Result<Vec<IpAddr>, String> {
    let is_meant = |peer: &&Value| {
        remote_as.is_none_or(|number| peer["as"] == number)
            && group.is_none_or(|name| peer["group"] == name)
    };
    let of_it: Vec<_> = shown.as_array().into_iter().flatten().filter(is_meant).collect();
    if of_it.is_empty() {
        let system = remote_as.map(|number| format!(" of AS {number}")).unwrap_or_default();
        let group = group.map(|name| format!(" in the group {name}")).unwrap_or_default();
        return Err(format!("there is no peer{system}{group}: `weft show bgp peers` lists all"));
    }
    let has_session = |peer: &&&Value| !goes_on || peer["state"] == "Established";
    let addresses = of_it.iter().filter(has_session).map(|peer| &peer["address"]);
    let addresses: Vec<IpAddr> = addresses.filter_map(|text| text.as_str()?.parse().ok()).collect();
    match addresses.is_empty() {
        true => Err("no session is established with any of these peers".to_owned()),
        false => Ok(addresses),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_chosen_by_their_system_and_session() {
        let peer = |address: &str, number: u32, state: &str| {
            let group = (number == 65001).then_some("transit");
            json!({ "address": address, "as": number, "state": state, "group": group })
        };
        let shown = json!([
            peer("192.0.2.1", 65001, "Established"),
            peer("192.0.2.2", 65002, "Established"),
            peer("2001:db8::2", 65002, "Active"),
        ]);
        let texts = |remote_as, goes_on| {
            let chosen = chosen(&shown, (remote_as, None), goes_on)?;
            Ok(chosen.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(texts(None, false), Ok("192.0.2.1 192.0.2.2 2001:db8::2".to_owned()));
        assert_eq!(texts(Some(65002), false), Ok("192.0.2.2 2001:db8::2".to_owned()));
        assert_eq!(texts(Some(65002), true), Ok("192.0.2.2".to_owned()));
        let error: String = texts(Some(65003), false).unwrap_err();
        assert!(error.contains("no peer of AS 65003"), "{error}");
        let of_group = chosen(&shown, (None, Some("transit")), false);
        assert_eq!(of_group, Ok(vec!["192.0.2.1".parse().unwrap()]));
        let error = chosen(&shown, (Some(65002), Some("transit")), false).unwrap_err();
        assert!(error.contains("no peer of AS 65002 in the group transit"), "{error}");
        assert!(chosen(&json!([]), (None, None), false).is_err());
        let silent = json!([peer("192.0.2.1", 65001, "Idle")]);
        assert!(chosen(&silent, (None, None), true).unwrap_err().contains("no session"));
    }
}
