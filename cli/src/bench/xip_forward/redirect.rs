//! What no router on these cables can do without: frames that are taken from one and put on another. The program, which
//! decides nothing, is in `redirect.bpf.c`.

use weft_ebpf::{
    LoadedProgram, Map, MapKind, MapShape, ProgramError, ProgramType, XdpLink, XdpMode, embedded,
};

use super::frames::Template;
use super::network::{Network, Side};
use super::traffic::{OUTLET, OUTLETS, set_outlet};

const OBJECT: Result<&[u8], ProgramError> = embedded!("redirect");
/// Bytes of the program's variables.
const VARIABLES: u32 = 16;

/// Attaches the program to all of the router's ports, until what is returned is dropped.
pub(super) fn attach(network: &Network, template: &Template) -> Result<Vec<XdpLink>, String> {
    let create = |name: &str, size, count| {
        Map::create(name, MapShape::numbered(MapKind::Array, size, count))
            .map_err(|error| format!("no map for the program: {error}"))
    };
    let (outlets, variables) =
        (create("outlets", OUTLET as u32, OUTLETS)?, create("redirect", VARIABLES, 1)?);
    let words = [network.ports() as u64 - 1, template.identifier_at as u64];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    variables.set(&0_u32.to_ne_bytes(), &bytes).map_err(|error| error.to_string())?;
    let object = OBJECT.map_err(|error| error.to_string())?;
    let maps = [("outlets", &outlets), (".bss", &variables)];
    let program = LoadedProgram::load(object, "weft_redirect", ProgramType::Xdp, &maps)
        .map_err(|error| error.to_string())?;
    let links = network.inside(Side::Router, || {
        let interfaces = (0..network.ports()).map(|port| network.interface(Side::Router, port));
        interfaces
            .map(|interface| XdpLink::attach(&interface, XdpMode::Driver, &program))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())
    })?;
    for (port, link) in links.iter().enumerate() {
        set_outlet(&outlets, port, link.interface(), [Side::Host, Side::Router])?;
    }
    Ok(links)
}
