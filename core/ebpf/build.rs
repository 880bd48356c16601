//! Compiles the eBPF programs under `bpf/`.

fn main() {
    weft_bpf_build::compile(&["bpf/loss.bpf.c", "bpf/steer.bpf.c"]);
}
