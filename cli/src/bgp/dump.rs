//! `weft bgp dump`: `bgp/1.1/dump`, page by page.
//!
//! The file appears under its name when it is whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use weft_bgp::interface::Dump;

use super::DumpArgs;
use crate::output::{Outcome, json_lines, print_lines};
use crate::show::Asker;

/// Prefixes in a page.
const PAGE: u32 = 4000;

/// What was written.
#[derive(Clone, Copy, Default)]
struct Written {
    prefixes: u32,
    bytes: u64,
}

pub(super) fn run(args: &DumpArgs) -> Outcome {
    let asker = Asker::new(&args.node)?;
    let is_stdout = args.file == Path::new("-");
    let written = if is_stdout {
        write(&asker, &mut io::stdout().lock())
            .map_err(|error| format!("standard output: {error}"))?
    } else {
        let mut partial = args.file.clone().into_os_string();
        partial.push(".part");
        let told = |error: io::Error| format!("{}: {error}", args.file.display());
        let mut file = BufWriter::new(File::create(&partial).map_err(told)?);
        let written = write(&asker, &mut file).and_then(|written| {
            file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
            fs::rename(&partial, &args.file)?;
            Ok(written)
        });
        if written.is_err() {
            // What is not whole is of no use.
            let _ = fs::remove_file(&partial);
        }
        written.map_err(told)?
    };
    let shown = json!({ "prefixes": written.prefixes, "bytes": written.bytes });
    let line = format!("{} prefixes, {} bytes", written.prefixes, written.bytes);
    let lines = if args.json { json_lines(&shown) } else { vec![line] };
    if is_stdout {
        lines.iter().for_each(|line| eprintln!("{line}"));
    } else {
        print_lines(lines)?;
    }
    Ok(0)
}

fn write(asker: &Asker, file: &mut impl Write) -> io::Result<Written> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // MRT counts seconds in 32 bits, until 2106.
    let seconds = now.as_secs() as u32;
    let (mut written, mut from) = (Written::default(), None);
    let shows_progress = io::stderr().is_terminal();
    loop {
        let request = Dump { seconds, sequence: written.prefixes, from, at_most: Some(PAGE) };
        let page = asker.ask("bgp", request).map_err(io::Error::other)?;
        file.write_all(&page.records.0)?;
        written.prefixes += page.count;
        written.bytes += page.records.0.len() as u64;
        if shows_progress {
            eprint!("\r{} prefixes", written.prefixes);
        }
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    if shows_progress {
        eprint!("\r");
    }
    file.flush()?;
    Ok(written)
}
