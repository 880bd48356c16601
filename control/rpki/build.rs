//! Makes the stubs of what this component answers.

fn main() {
    weft_xif::build(&["../../interfaces/rpki.xif"]);
}
