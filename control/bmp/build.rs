//! Makes the stubs of what this component asks BGP.

fn main() {
    weft_xif::build(&["../../interfaces/bgp.xif"]);
}
