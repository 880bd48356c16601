//! The machine a benchmark ran on, in one line.

use std::fs;

/// Processor, kernel and how busy it is with other things.
pub(crate) fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!(
        "{}, {cores} cores, {}, Linux {}, load {}",
        processor().unwrap_or_else(|| "unknown processor".to_owned()),
        std::env::consts::ARCH,
        first_word("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned()),
        // The average number of runnable threads during the last minute.
        first_word("/proc/loadavg").unwrap_or_else(|| "unknown".to_owned()),
    )
}

/// The processor's name; kernels for aarch64 do not tell it.
fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn first_word(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()?.split_ascii_whitespace().next().map(str::to_owned)
}
