//! Makes the stubs of BGP's interface.

fn main() {
    weft_xif::build(&["../../interfaces/bgp.xif"]);
}
