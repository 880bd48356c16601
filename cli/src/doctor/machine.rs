//! Kernel, architecture and processors.

use std::fs;

use super::check::{Check, Subject};

/// The oldest kernel that is supported, as major and minor version.
const OLDEST: (u32, u32) = (6, 1);

const KERNEL: Subject = Subject {
    name: "kernel",
    purpose: "everything: Linux 6.1 or newer is supported, 6.1 and 6.8 are those of Debian 12 and \
              Ubuntu 24.04",
    required: true,
};
const ARCHITECTURE: Subject = Subject {
    name: "architecture",
    purpose: "everything: x86-64 and aarch64 are supported",
    required: false,
};
const PROCESSORS: Subject = Subject {
    name: "processors",
    purpose: "nodes of a lab that work at the same time",
    required: false,
};
const FREQUENCY: Subject = Subject {
    name: "frequency",
    purpose: "measurements with `weft bench` that can be repeated",
    required: false,
};

const GOVERNOR: &str = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";

pub(super) fn checks() -> Vec<Check> {
    let system = rustix::system::uname();
    vec![
        kernel(&system.release().to_string_lossy()),
        architecture(&system.machine().to_string_lossy()),
        processors(std::thread::available_parallelism().map_or(1, usize::from)),
        frequency(fs::read_to_string(GOVERNOR).ok().as_deref()),
    ]
}

/// Judges a release as uname(2) tells it, such as `6.1.0-18-amd64`.
fn kernel(release: &str) -> Check {
    let (major, minor) = OLDEST;
    let remedy = format!("boot Linux {major}.{minor} or newer");
    match version(release) {
        Some(version) if version >= OLDEST => KERNEL.ok(format!("Linux {release}")),
        Some(_) => KERNEL.missing(format!("Linux {release}, older than {major}.{minor}"), remedy),
        None => KERNEL.degraded(format!("Linux `{release}`, whose version is not clear"), remedy),
    }
}

/// Major and minor version.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn architecture(machine: &str) -> Check {
    match machine {
        "x86_64" | "aarch64" => ARCHITECTURE.ok(machine),
        _ => ARCHITECTURE
            .degraded(format!("{machine}, which is not tested"), "use x86-64 or aarch64"),
    }
}

fn processors(count: usize) -> Check {
    match count {
        0 | 1 => PROCESSORS.degraded(
            "1 processor: a lab works, and every figure of its speed is that of a queue",
            "give this machine two or more processors",
        ),
        _ => PROCESSORS.ok(format!("{count} processors")),
    }
}

/// Judges the governor that scales the first processor's frequency, if there is one.
fn frequency(governor: Option<&str>) -> Check {
    match governor.map(str::trim) {
        None => FREQUENCY.ok("no scaling to be seen (usual in virtual machines)"),
        Some("performance") => FREQUENCY.ok("governor performance"),
        Some(other) => FREQUENCY.degraded(
            format!("governor {other}: the frequency follows the load"),
            "for the time of a measurement, as root: `echo performance | tee \
             /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    #[test]
    fn kernels_from_6_1_on_are_supported() {
        for release in ["6.1.0-18-amd64", "6.8.0-31-generic", "6.18.44", "7.0-rc1", "10.0"] {
            assert_eq!(kernel(release).state, State::Ok, "{release}");
        }
        for release in ["6.0.19", "5.15.0-generic", "3.11"] {
            let check = kernel(release);
            assert_eq!(check.state, State::Missing, "{release}");
            assert!(check.found.contains(release) && check.remedy.contains("6.1"), "{check:?}");
        }
        for release in ["", "six", "6", "99999999999.1"] {
            assert_eq!(kernel(release).state, State::Degraded, "{release}");
        }
    }

    #[test]
    fn other_architectures_are_untested() {
        assert_eq!(architecture("aarch64").state, State::Ok);
        assert_eq!(architecture("riscv64").state, State::Degraded);
    }

    #[test]
    fn one_processor_is_few() {
        assert_eq!(processors(1).state, State::Degraded);
        assert_eq!(processors(2).state, State::Ok);
    }

    #[test]
    fn a_governor_that_follows_the_load_is_told() {
        assert_eq!(frequency(None).state, State::Ok);
        assert_eq!(frequency(Some("performance\n")).state, State::Ok);
        let check = frequency(Some("powersave\n"));
        assert_eq!(check.found, "governor powersave: the frequency follows the load");
        assert_eq!(check.state, State::Degraded);
    }
}
