//! `weft looking-glass`: what a router knows, for everybody to read, over HTTP and as JSON.
//!
//! The components of a node may not listen on TCP. This is a command of its own, as `weft metrics` is, which asks them by
//! XRL for each page and knows nothing between two. It makes calls that read, and no others; the access list of the user
//! that runs it can say the same (docs/src/operations.md).

use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;

use serde_json::{Value, json};
use weft_xrl::{ErrorCode, Request, XrlError};

use crate::args::NodeArgs;
use crate::http::{self, Answer, Asked};
use crate::output::{Outcome, say};
use crate::show::Asker;

/// The content type of pages.
const JSON: &str = "application/json";
/// Rows of a page, if nobody says how many, and at most.
const PAGE: u32 = 100;
const LONGEST: u32 = 1_000;

/// What there is, and what each page takes.
const PAGES: [(&str, &str); 7] = [
    ("/routes", "the routes of the RIB; ?prefix=ADDRESS-OR-PREFIX, or ?from=PREFIX&count=N"),
    ("/summary", "how many routes there are"),
    ("/bgp/peers", "the peers of BGP and their sessions"),
    (
        "/bgp/routes",
        "the paths of BGP; ?prefix=ADDRESS-OR-PREFIX, or ?within=PREFIX, from=PREFIX, count=N, and community=C, received-from=PEER or advertised-to=PEER",
    ),
    (
        "/bgp/explain",
        "what policies would do to paths; ?policies=NAMES&prefix=PREFIX, and from=PEER or to=PEER",
    ),
    ("/protocols", "what other protocols show"),
    ("/protocols/NAME/VIEW", "one of these tables; ?from=ROW&count=N"),
];

#[derive(Debug, clap::Args)]
pub(crate) struct GlassArgs {
    /// Where to serve HTTP
    #[arg(short, long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8179")]
    listen: SocketAddr,
    #[command(flatten)]
    node: NodeArgs,
}

/// Serves pages until it is ended.
pub(crate) fn run(args: &GlassArgs) -> Outcome {
    let asker = Mutex::new(Asker::new(&args.node)?);
    let listener = TcpListener::bind(args.listen)
        .map_err(|error| format!("cannot listen at {}: {error}", args.listen))?;
    let address = listener.local_addr().map_err(|error| format!("the socket: {error}"))?;
    say(&format!("looking glass at http://{address}/"));
    http::serve(&listener, &|asked| {
        // A page that panicked has left nothing behind.
        let asker = asker.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match page(&asker, asked) {
            Ok(value) => Answer::page(JSON, format!("{value}\n")),
            Err(Refused::NoPage(why)) => Answer::not_found(&why),
            Err(Refused::Wrong(why)) => Answer::refused("400 Bad Request", &why),
            Err(Refused::Failed(why)) => Answer::unavailable(&why),
        }
    })
}

/// Why there is no page.
#[derive(Debug)]
enum Refused {
    NoPage(String),
    Wrong(String),
    Failed(String),
}

fn page(asker: &Asker, asked: &Asked) -> Result<Value, Refused> {
    let words: Vec<_> = asked.path.split('/').filter(|word| !word.is_empty()).collect();
    let argument = |name: &str| asked.query.get(name).cloned();
    let peer = |name: &str| {
        let peer = argument(name).map(|text| text.parse()).transpose();
        peer.map_err(|_| Refused::Wrong(format!("`{name}` is no address of a peer")))
    };
    match words.as_slice() {
        [] => Ok(PAGES.map(|(path, help)| json!({ "path": path, "help": help })).into()),
        ["routes"] => rib(asker, asked, "routes"),
        ["summary"] => rib(asker, asked, "summary"),
        ["bgp", what @ ("peers" | "routes")] => {
            let request = weft_bgp::interface::Show {
                what: (*what).to_owned(),
                prefix: argument("prefix"),
                from: argument("from"),
                at_most: Some(count(asked)?),
                multicast: multicast(asked),
                received_from: peer("received-from")?,
                advertised_to: peer("advertised-to")?,
                peer: None,
                within: argument("within"),
                community: argument("community"),
            };
            parsed(&ask(asker, "bgp", request)?.json)
        }
        ["bgp", "explain"] => {
            let needed = |name: &str| {
                argument(name).ok_or_else(|| Refused::Wrong(format!("say `{name}=`, too")))
            };
            let request = weft_bgp::interface::Explain {
                policies: needed("policies")?,
                prefix: needed("prefix")?,
                from: peer("from")?,
                to: peer("to")?,
            };
            parsed(&ask(asker, "bgp", request)?.json)
        }
        ["protocols"] => protocols(asker),
        ["protocols", name, view] => {
            let targets = asker.targets().map_err(Refused::Failed)?;
            if !targets.iter().any(|target| target.instance == *name) {
                return Err(Refused::NoPage(format!("there is no `{}`", name.escape_debug())));
            }
            let request = weft_protocol::interface::Show {
                view: (*view).to_owned(),
                from: argument("from"),
                at_most: Some(count(asked)?),
            };
            let reply = ask(asker, name, request)?;
            let rows = parsed(&reply.rows)?;
            Ok(json!({ "columns": reply.columns, "rows": rows, "next": reply.next }))
        }
        _ => Err(Refused::NoPage("there is no such page: / lists them".to_owned())),
    }
}

/// Whether routes for multicast are asked for: `multicast=true`.
fn multicast(asked: &Asked) -> Option<bool> {
    asked.query.get("multicast").map(|text| text == "true")
}

fn rib(asker: &Asker, asked: &Asked, what: &str) -> Result<Value, Refused> {
    let request = weft_rib::interface::Show {
        what: what.to_owned(),
        prefix: asked.query.get("prefix").cloned(),
        from: asked.query.get("from").cloned(),
        at_most: Some(count(asked)?),
        multicast: multicast(asked),
        within: asked.query.get("within").cloned(),
        protocol: asked.query.get("protocol").cloned(),
    };
    parsed(&ask(asker, "rib", request)?.json)
}

/// Which protocols can be shown, and what each has to show.
fn protocols(asker: &Asker) -> Result<Value, Refused> {
    let mut all = Vec::new();
    for target in asker.targets().map_err(Refused::Failed)? {
        // Others cannot be shown in this way, or not to this user.
        let Ok(reply) = asker.try_ask(&target.instance, weft_protocol::interface::Views) else {
            continue;
        };
        all.extend(reply.views.into_iter().map(|view| {
            let path = format!("/protocols/{}/{}", target.instance, view.name);
            json!({ "protocol": target.instance, "view": view.name, "help": view.help, "path": path })
        }));
    }
    Ok(all.into())
}

/// How many rows are wanted.
fn count(asked: &Asked) -> Result<u32, Refused> {
    let Some(text) = asked.query.get("count") else { return Ok(PAGE) };
    text.parse().ok().filter(|count| (1..=LONGEST).contains(count)).ok_or_else(|| {
        let text = text.escape_debug();
        Refused::Wrong(format!("`count={text}` is no number from 1 to {LONGEST}"))
    })
}

fn ask<R: Request>(asker: &Asker, target: &str, request: R) -> Result<R::Reply, Refused> {
    asker.try_ask(target, request).map_err(|error: XrlError| match error.code {
        ErrorCode::BadArgs => Refused::Wrong(error.note),
        ErrorCode::NoSuchMethod => Refused::NoPage(format!("{target} cannot be shown so")),
        _ => Refused::Failed(format!("{target}: {error}")),
    })
}

fn parsed(json: &str) -> Result<Value, Refused> {
    serde_json::from_str(json).map_err(|error| Refused::Failed(format!("this is no JSON: {error}")))
}
