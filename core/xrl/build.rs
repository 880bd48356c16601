//! Makes the stubs of the interfaces that every process speaks, and of the one that the tests use.

fn main() {
    weft_xif::build(&[
        "../../interfaces/finder.xif",
        "../../interfaces/finder_client.xif",
        "../../interfaces/fea.xif",
        "../../interfaces/fib.xif",
        "../../interfaces/component.xif",
        "../../interfaces/checked.xif",
        "../../interfaces/gateway.xif",
        "../../interfaces/monitor.xif",
        "../../interfaces/probe.xif",
        "../../interfaces/profile.xif",
    ]);
}
