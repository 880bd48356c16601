//! eBPF: the loss program of labs.

use std::path::Path;

use weft_ebpf::LossError;

use super::check::{Check, Subject};

const LOSS: Subject = Subject {
    name: "loss-program",
    purpose: "labs: loss on links, decided by the kernel",
    required: false,
};
const BTF: Subject = Subject {
    name: "btf",
    purpose: "looking at programs with bpftool; weft's own program does without",
    required: false,
};

const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

pub(super) fn checks() -> Vec<Check> {
    vec![loss(weft_ebpf::probe()), btf(Path::new(KERNEL_TYPES).exists())]
}

/// The errors of the loss program name their remedies and what takes its place.
fn loss(probed: Result<(), LossError>) -> Check {
    let Err(error) = probed else { return LOSS.ok("can be loaded and attached") };
    let text = error.to_string();
    match text.split_once(": ") {
        Some((found, remedy)) => LOSS.degraded(found, remedy),
        None => LOSS.degraded(text, "links with loss are made in user space instead"),
    }
}

fn btf(is_there: bool) -> Check {
    if is_there {
        BTF.ok(KERNEL_TYPES)
    } else {
        BTF.degraded(
            "the kernel does not tell its types",
            "use a kernel with CONFIG_DEBUG_INFO_BTF",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    #[test]
    fn without_the_program_the_remedy_is_that_of_the_error() {
        let not_built = loss(Err(LossError::NotBuilt { reason: "clang cannot be run" }));
        assert_eq!(not_built.state, State::Degraded);
        assert!(not_built.found.contains("clang cannot be run"), "{not_built:?}");
        assert!(not_built.remedy.starts_with("install clang, libbpf-dev"), "{not_built:?}");
        let not_permitted = loss(Err(LossError::NotPermitted { action: "load" }));
        assert_eq!(not_permitted.found, "not permitted to load");
        assert!(not_permitted.remedy.starts_with("run as root"), "{not_permitted:?}");
        assert_eq!(loss(Ok(())).state, State::Ok);
    }

    #[test]
    fn missing_types_are_no_obstacle() {
        assert_eq!(btf(true).state, State::Ok);
        assert_eq!((btf(false).state, BTF.required), (State::Degraded, false));
    }
}
