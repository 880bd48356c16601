//! Makes the stubs of BGP's interface, and of that of the RPKI.

fn main() {
    weft_xif::build(&["../../interfaces/bgp.xif", "../../interfaces/rpki.xif"]);
}
