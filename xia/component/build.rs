//! Makes the stubs of the stack's interfaces.

fn main() {
    weft_xif::build(&["../../interfaces/xia.xif", "../../interfaces/prefixes.xif"]);
}
