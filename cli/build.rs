//! Makes the stubs of the interface that `weft bench xrl` calls, and the programs that benchmarks have in the kernel.

fn main() {
    weft_xif::build(&["../interfaces/probe.xif"]);
    weft_bpf_build::compile(&[
        "src/bench/bgp/told.bpf.c",
        "src/bench/xip_forward/traffic.bpf.c",
        "src/bench/xip_forward/each_edge.bpf.c",
        "src/bench/xip_forward/redirect.bpf.c",
    ]);
}
