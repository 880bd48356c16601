//! Where a node's components are called: on this machine, or through the gateway of another one.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use weft_keys::{KeyHash, PrivateKey, file};
use weft_runtime::{ChannelAddress, Keys, real};

use crate::args::NodeArgs;
use crate::node::{find_callable, finder_socket};

/// Which node's components a command calls.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CallableArgs {
    #[command(flatten)]
    node: NodeArgs,
    /// The node is on another machine, where --node HOST:PORT is its gateway: the hash of its key
    #[arg(long, value_name = "HASH", requires = "node", requires = "key")]
    node_key: Option<KeyHash>,
    /// The private key that proves to the gateway who calls
    #[arg(long, value_name = "FILE", requires = "node_key")]
    key: Option<PathBuf>,
}

/// Where a node's components are called.
#[derive(Debug, Clone)]
pub(crate) enum Reach {
    /// In a run directory of this machine.
    Here(PathBuf),
    /// Through a gateway.
    There {
        /// Where it listens.
        gateway: SocketAddr,
        /// Which key it must show.
        node: KeyHash,
        /// Which key is shown to it.
        own: PrivateKey,
    },
}

impl Reach {
    /// Finds the node of a command.
    ///
    /// # Errors
    /// There is no such node, this user may not call its components, or a key cannot be read.
    pub(crate) fn find(args: &CallableArgs) -> Result<Self, String> {
        match (&args.node.node, args.node_key, &args.key) {
            (Some(gateway), Some(node), Some(key)) => Ok(Self::There {
                gateway: resolve(gateway)?,
                node,
                own: file::load_private(key).map_err(|error| error.to_string())?,
            }),
            (Some(node), ..) if is_gateway(node) => Err(format!(
                "{node} is the gateway of a node on another machine: --node-key HASH has to say which key it has, and \
                 --key FILE with which key you call; without a gateway call on the node's machine, with --node NAME"
            )),
            _ => Self::here(&args.node),
        }
    }

    /// Finds a node on this machine.
    ///
    /// # Errors
    /// There is no such node, or this user may not call its components.
    pub(crate) fn here(args: &NodeArgs) -> Result<Self, String> {
        if let Some(node) = args.node.as_deref().filter(|node| is_gateway(node)) {
            return Err(format!(
                "this command works on the node's machine alone, with --node NAME; through the gateway {node} of \
                 another machine `weft call` and `weft configure` do, with --node-key and --key"
            ));
        }
        Ok(Self::Here(find_callable(args)?))
    }

    /// A node whose run directory is known.
    pub(crate) fn directory(directory: &Path) -> Self {
        Self::Here(directory.to_owned())
    }

    /// Where the Finder is.
    pub(crate) fn finder(&self) -> ChannelAddress {
        match self {
            Self::Here(directory) => ChannelAddress::Stream(finder_socket(directory)),
            Self::There { gateway, node, .. } => {
                ChannelAddress::Tls { address: *gateway, peer: Some(*node) }
            }
        }
    }

    /// How a process runs that calls there.
    pub(crate) fn options(&self) -> real::Options {
        let keys = match self {
            Self::Here(_) => None,
            Self::There { own, node, .. } => {
                Some(Keys { own: own.clone(), peers: [*node].into_iter().collect() })
            }
        };
        real::Options { keys, ..real::Options::default() }
    }
}

/// The address of a gateway.
fn resolve(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().map_err(|error| {
        format!(
            "`{text}` is no gateway of a node: {error}; give its host and port, such as \
             192.0.2.1:6500"
        )
    })?;
    found.into_iter().next().ok_or_else(|| format!("`{text}` has no address"))
}

/// Whether a node is named as that of another machine: no node's name has a colon.
fn is_gateway(node: &str) -> bool {
    node.contains(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_a_gateway_is_told_what_is_missing() {
        let node = NodeArgs { node: Some("10.0.1.1:6500".to_owned()), run_dir: None };
        let args = CallableArgs { node: node.clone(), node_key: None, key: None };
        let error = Reach::find(&args).unwrap_err();
        assert!(error.contains("--node-key HASH") && error.contains("--key FILE"), "{error}");
        let error = Reach::here(&node).unwrap_err();
        assert!(error.contains("on the node's machine alone"), "{error}");
    }
}
