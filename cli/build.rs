//! Makes the stubs of the interface that `weft bench xrl` calls.

fn main() {
    weft_xif::build(&["../interfaces/probe.xif"]);
}
