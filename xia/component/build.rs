//! Makes the stubs of the stack's interface.

fn main() {
    weft_xif::build(&["../../interfaces/xia.xif"]);
}
