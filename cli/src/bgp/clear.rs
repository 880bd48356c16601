//! `weft bgp clear`: `bgp/1.1/clear`.

use serde_json::json;
use weft_bgp::interface::Clear;

use super::{ClearArgs, Direction};
use crate::output::{Outcome, json_lines, print_lines};
use crate::show::Asker;

pub(super) fn run(args: &ClearArgs) -> Outcome {
    let peer = args.peer;
    let (soft, line) = match args.soft {
        _ if args.damping => {
            (Some("damping"), format!("{peer}: it is forgotten how its routes have come and gone"))
        }
        None => (None, format!("{peer}: the session was ended, and begins again")),
        Some(Direction::In) => {
            (Some("in"), format!("{peer} is asked to announce everything again"))
        }
        Some(Direction::Out) => (Some("out"), format!("{peer} is told everything again")),
    };
    let request = Clear { peer, soft: soft.map(str::to_owned) };
    Asker::new(&args.node)?.ask("bgp", request)?;
    let shown = json!({ "peer": peer.to_string(), "soft": soft });
    print_lines(if args.json { json_lines(&shown) } else { vec![line] })?;
    Ok(0)
}
