//! Makes the Rust types of the interface.

fn main() {
    weft_xif::build(&["greeter.xif"]);
}
