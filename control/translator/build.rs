//! Makes the stubs of what the XIA stack takes.

fn main() {
    weft_xif::build(&["../../interfaces/prefixes.xif"]);
}
