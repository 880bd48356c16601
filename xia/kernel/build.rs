//! Compiles the program under `bpf/`.

fn main() {
    weft_bpf_build::compile(&["bpf/xip.bpf.c"]);
}
