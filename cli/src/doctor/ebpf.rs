//! eBPF: the loss program of labs.

use std::path::Path;

use weft_ebpf::ProgramError;

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

/// What to say of errors that name no remedy.
const ANYHOW: &str = "nothing has to be done: links with loss are made in user space instead";

fn loss(probed: Result<(), ProgramError>) -> Check {
    let Err(error) = probed else { return LOSS.ok("can be loaded and attached") };
    let text = error.to_string();
    match error {
        // Their sentences end with a colon and the remedy.
        ProgramError::NotBuilt { .. }
        | ProgramError::NotPermitted { .. }
        | ProgramError::NotSupported { .. } => {
            let (found, remedy) = text.rsplit_once(": ").unwrap_or((&text, ANYHOW));
            LOSS.degraded(found, remedy)
        }
        _ => LOSS.degraded(text, ANYHOW),
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
        let not_built = loss(Err(ProgramError::NotBuilt { reason: "clang cannot be run" }));
        assert_eq!(not_built.state, State::Degraded);
        assert!(not_built.found.contains("clang cannot be run"), "{not_built:?}");
        assert!(not_built.remedy.starts_with("install clang, libbpf-dev"), "{not_built:?}");
        let broken = loss(Err(ProgramError::NotBuilt { reason: "a.c:1:2: error: no such header" }));
        assert!(broken.found.contains("no such header"), "{broken:?}");
        assert!(broken.remedy.starts_with("install clang"), "{broken:?}");
        let not_permitted = loss(Err(ProgramError::NotPermitted { action: "load" }));
        assert_eq!(not_permitted.found, "not permitted to load");
        assert!(not_permitted.remedy.starts_with("run as root"), "{not_permitted:?}");
        assert_eq!(loss(Ok(())).state, State::Ok);
        let refused =
            loss(Err(ProgramError::Refused { action: "load", detail: "a: b".to_owned() }));
        assert_eq!(refused.found, "the kernel refused to load: a: b");
        assert_eq!(refused.remedy, ANYHOW);
    }

    #[test]
    fn missing_types_are_no_obstacle() {
        assert_eq!(btf(true).state, State::Ok);
        assert_eq!((btf(false).state, BTF.required), (State::Degraded, false));
    }
}
