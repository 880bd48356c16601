//! What weft gives to the lab: its stacks and commands as processes, and a meaning to names.
//!
//! Aliases of a lab file:
//!
//! ```text
//! alias NAME xdp "some text";            an XDP identifier: the first 160 bits of SHA-256 of the text
//! alias NAME ad "some text";             an AD identifier, likewise
//! alias NAME hid2 @r1;                   a node's HID in the second version of the principal
//! alias NAME u4id 10.0.3.2:13781;        the U4ID of a UDP/IPv4 address
//! alias NAME ether 3 02:00:00:00:00:01;  the Ether of a station on the interface with that index
//! alias NAME zf r1-c1 r1-c2;             the zFilter that holds the links of these names
//! alias NAME zf-tags 4 r1-c1 r1-c2;      the one with the fewest bits, if links have four tags
//! ```
//!
//! `@NODE` is the node's HID: the hash of a key that follows from the lab's seed and the node's name.

use std::ffi::OsString;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use clap::Parser;
use sha2::{Digest, Sha256};
use weft_base::Random;
use weft_keys::PrivateKey;
use weft_keys::file::create_private;
use weft_lab::{Host, SimNode};
use weft_runtime::Process;
use weft_runtime::sim::Spawn;
use weft_xia_tunnel::{Way, to_xid};
use weft_xia_zf::{DEFAULT_LINK_BITS, MAX_TAGS, best_filter, link_identifier, union};
use weft_xip::xid::ID_LEN;
use weft_xip::{Xid, XidType};

use crate::args::{Args, Command};
use crate::node::{XIA_SOCKET, file};

/// The key file in a node's run directory.
const KEY_FILE: &str = "host.key";

/// The weft program as host of labs.
pub(crate) struct WeftHost {
    program: PathBuf,
}

impl WeftHost {
    /// The host whose program is the one that runs now.
    pub(crate) fn new() -> Result<Self, String> {
        let program = std::env::current_exe()
            .map_err(|error| format!("the path of this program cannot be found out: {error}"))?;
        Ok(Self { program })
    }
}

/// The key of a node whose identity is `random`.
fn key(mut random: Random) -> PrivateKey {
    let mut seed = [0; 32];
    random.fill(&mut seed);
    PrivateKey::from_seed(seed)
}

/// The same host by the second version of HID.
fn second_version(words: &[String]) -> Result<String, String> {
    let host = match words {
        [host] => host.parse::<Xid>().ok().filter(|xid| xid.kind == XidType::HID),
        _ => None,
    };
    let host = host.ok_or("write `hid2 @NODE`")?;
    Ok(Xid::new(XidType::HID2, host.id).to_string())
}

/// The identifier that a text stands for.
fn text_identifier(kind: XidType, words: &[String]) -> String {
    let digest = Sha256::digest(words.join(" "));
    let mut id = [0; ID_LEN];
    id.copy_from_slice(&digest[..ID_LEN]);
    Xid::new(kind, id).to_string()
}

/// The XID of the end of a tunnel.
fn tunnel_identifier(way: Way, words: &[String]) -> Result<String, String> {
    let (kind, example) = (way.kind(), way.example());
    let [word] = words else {
        return Err(format!("a {kind} is made of one address, such as {example}"));
    };
    let address =
        way.read(word).ok_or_else(|| format!("`{word}` is no address such as {example}"))?;
    let xid = to_xid(way, address).map_err(|error| format!("`{word}`: {error}"))?;
    Ok(xid.to_string())
}

/// The XID of a host that the kernel's table of IP leads to.
fn address_identifier(kind: XidType, words: &[String]) -> Result<String, String> {
    let address = match words {
        [word] => word.parse().ok().filter(|ip| weft_xia_x4id::Version::of(*ip).kind() == kind),
        _ => None,
    };
    let example = if kind == XidType::X4ID { "10.0.3.2" } else { "2001:db8::2" };
    let address =
        address.ok_or_else(|| format!("an {kind} is made of one address, such as {example}"))?;
    let xid = weft_xia_x4id::to_xid(address).map_err(|error| error.to_string())?;
    Ok(xid.to_string())
}

/// The XID of a station on an interface.
fn station_identifier(words: &[String]) -> Result<String, String> {
    let [index, mac] = words else {
        return Err("write `ether INDEX MAC`, such as 3 02:00:00:00:00:01".to_owned());
    };
    let index = index.parse().map_err(|_| format!("`{index}` is no index of an interface"))?;
    let mac = mac.parse().map_err(|error| format!("`{mac}`: {error}"))?;
    let xid = weft_xia_ether::to_xid(index, mac).map_err(|error| error.to_string())?;
    Ok(xid.to_string())
}

/// The names of the links of a tree, of which there is at least one: the zFilter of none leads nowhere.
fn links(words: &[String]) -> Result<&[String], String> {
    match words {
        [] => Err("a tree has at least one link: name its links".to_owned()),
        names => Ok(names),
    }
}

/// The LPM identifier of an address of IP.
fn prefix_identifier(words: &[String]) -> Result<String, String> {
    let address = match words {
        [word] => word.parse().ok(),
        _ => None,
    };
    let mut id = [0; ID_LEN];
    match address {
        Some(IpAddr::V4(address)) => id[..4].copy_from_slice(&address.octets()),
        Some(IpAddr::V6(address)) => id[..16].copy_from_slice(&address.octets()),
        None => return Err("an lpm is made of one address of IP, such as 10.0.3.2".to_owned()),
    }
    Ok(Xid::new(XidType::LPM, id).to_string())
}

impl Host for WeftHost {
    fn program(&self) -> &Path {
        &self.program
    }

    fn alias(&self, kind: &str, words: &[String]) -> Result<String, String> {
        match kind {
            "xdp" => Ok(text_identifier(XidType::XDP, words)),
            "ad" => Ok(text_identifier(XidType::AD, words)),
            "ether" => station_identifier(words),
            "hid2" => second_version(words),
            "lpm" => prefix_identifier(words),
            "i4id" => tunnel_identifier(Way::I4id, words),
            "i6id" => tunnel_identifier(Way::I6id, words),
            "u4id" => tunnel_identifier(Way::U4id, words),
            "u6id" => tunnel_identifier(Way::U6id, words),
            "x4id" => address_identifier(XidType::X4ID, words),
            "x6id" => address_identifier(XidType::X6ID, words),
            "zf" => {
                let names = links(words)?.iter();
                let links: Vec<_> =
                    names.map(|name| link_identifier(name, DEFAULT_LINK_BITS)).collect();
                Ok(union(&links).to_string())
            }
            "zf-tags" => {
                let tags = words.first().and_then(|word| word.parse().ok());
                let tags = tags.filter(|tags| (1..=MAX_TAGS).contains(tags)).ok_or_else(|| {
                    format!("zf-tags wants the number of tags, 1 to {MAX_TAGS}, and then links")
                })?;
                let names = links(&words[1..])?.iter().map(String::as_str);
                Ok(best_filter(names, DEFAULT_LINK_BITS, tags).1.to_string())
            }
            _ => Err(format!(
                "`{kind}` is no kind of alias; there are ad, ether, hid2, i4id, i6id, lpm, u4id, u6id, x4id, \
                 x6id, xdp, zf and zf-tags"
            )),
        }
    }

    fn identifier(&self, _node: &str, identity: Random) -> Result<String, String> {
        let hash = key(identity).public_key().hash();
        Ok(Xid::new(XidType::HID, *hash.as_bytes()).to_string())
    }

    fn check(&self, node: &str, config: &str) -> Result<(), String> {
        let file = file::parse(node, config).map_err(|error| error.to_string())?;
        let checked = file.node(Path::new("/"), None, Random::from_seed(0));
        checked.map(drop).map_err(|error| error.to_string())
    }

    fn check_simulated(&self, node: &str, config: &str) -> Result<(), String> {
        let file = file::parse(node, config).map_err(|error| error.to_string())?;
        match file.programs().first() {
            Some(program) => Err(format!(
                "its program `{program}` is one of others, and a simulated machine runs none"
            )),
            None => Ok(()),
        }
    }

    fn prepare(&self, _node: &str, run_dir: &Path, identity: Random) -> Result<(), String> {
        create_private(&run_dir.join(KEY_FILE), &key(identity)).map_err(|error| error.to_string())
    }

    fn node_arguments(&self, config: &Path, run_dir: &Path) -> Vec<OsString> {
        vec![
            "run".into(),
            config.into(),
            "--run-dir".into(),
            run_dir.into(),
            "--identity".into(),
            run_dir.join(KEY_FILE).into(),
        ]
    }

    fn ready(&self, config: &str) -> &str {
        // The stack says it when its interfaces are open; a node without one is ready when its processes run.
        match file::parse("node", config).is_ok_and(|file| file.has_stack()) {
            true => "is ready",
            false => "processes run",
        }
    }

    fn link_arguments(&self) -> Vec<OsString> {
        vec!["lab".into(), "links".into()]
    }

    fn router_arguments(&self) -> Vec<OsString> {
        vec!["lab".into(), "router".into()]
    }

    fn trace_arguments(&self, one_in: NonZeroU64) -> Vec<String> {
        vec!["xia".into(), "trace".into(), one_in.to_string()]
    }

    fn visits_arguments(&self) -> Vec<String> {
        ["xia", "trace", "--json"].map(str::to_owned).to_vec()
    }

    fn node_process(
        &self,
        node: &SimNode<'_>,
        config: &str,
        identity: Random,
        random: Random,
    ) -> Result<Spawn, String> {
        super::nodes::whole(node, config, key(identity), random)
    }

    fn command_process(
        &self,
        node: &SimNode<'_>,
        words: &[String],
        random: Random,
    ) -> Result<Box<dyn Process>, String> {
        let line = std::iter::once("weft").chain(words.iter().map(String::as_str));
        let args = Args::try_parse_from(line).map_err(|error| error.to_string())?;
        match args.command {
            Command::Xia(command) => command.process(&node.run_dir.join(XIA_SOCKET), random),
            Command::Call(args) => crate::call::process(&args, node.run_dir),
            _ => Err(format!(
                "`weft {}` cannot run in the simulator; `weft call` and the commands of `weft xia` can",
                words.first().map_or("", String::as_str)
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_links() {
        let host = WeftHost { program: "weft".into() };
        let alias = |kind, words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            host.alias(kind, &words)
        };
        assert!(alias("zf", &["a-b"]).is_ok() && alias("zf-tags", &["4", "a-b"]).is_ok());
        for (kind, words) in [("zf", &[][..]), ("zf-tags", &["4"])] {
            let error = alias(kind, words).unwrap_err();
            assert!(error.contains("name its links"), "{error}");
        }
    }
}
