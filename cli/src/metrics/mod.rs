//! `weft metrics`: what a node counts, for Prometheus.
//!
//! The components of a node may not listen on TCP. This is a command of its own, which any operator can run
//! without privileges: it asks the components by XRL whenever it is scraped, as `weft show` does, and knows
//! nothing between two scrapes.

mod exposition;
mod routing;

use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;

use crate::args::NodeArgs;
use crate::http::{self, Answer};
use crate::output::{Outcome, say};
use crate::show::Asker;
use routing::Routing;

/// The one page.
const PATH: &str = "/metrics";
/// The content type of the text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug, clap::Args)]
pub(crate) struct MetricsArgs {
    /// Where to serve HTTP
    #[arg(short, long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9464")]
    listen: SocketAddr,
    #[command(flatten)]
    node: NodeArgs,
}

/// Serves metrics until it is ended.
pub(crate) fn run(args: &MetricsArgs) -> Outcome {
    let asker = Mutex::new(Asker::new(&args.node)?);
    let listener = TcpListener::bind(args.listen)
        .map_err(|error| format!("cannot listen at {}: {error}", args.listen))?;
    let address = listener.local_addr().map_err(|error| format!("the socket: {error}"))?;
    say(&format!("metrics at http://{address}/metrics"));
    http::serve(&listener, &|asked| {
        if asked.path != PATH {
            return Answer::not_found("there is /metrics and nothing else");
        }
        // A scrape that panicked has left nothing behind.
        let asker = asker.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match text(&asker) {
            Ok(text) => Answer::page(METRICS, text),
            Err(why) => Answer::unavailable(&why),
        }
    })
}

/// Everything that a node counts, in the text format of Prometheus.
///
/// # Errors
/// The node does not answer.
pub(crate) fn text(asker: &Asker) -> Result<String, String> {
    Ok(exposition::of(
        &asker.processes()?,
        asker.interfaces().ok().as_ref(),
        &asker.counters(None)?,
        &Routing::ask(asker),
    ))
}
