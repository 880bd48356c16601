//! Makes the stubs of the RIB's interface.

fn main() {
    weft_xif::build(&["../../interfaces/rib.xif", "../../interfaces/fib.xif"]);
}
