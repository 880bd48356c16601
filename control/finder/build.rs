//! Makes the stubs of the interface that the tests call.

fn main() {
    weft_xif::build(&["../../interfaces/probe.xif"]);
}
