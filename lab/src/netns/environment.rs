//! What commands on a node find in their environment.
//!
//! Reference: environ(7). Beside what the lab itself has: which node is meant, and the program `weft` in front of all
//! others, so that scripts on a node can use it wherever it is.

use std::env;
use std::ffi::OsString;
use std::path::Path;

/// Where a command on a node finds the node's sockets.
const RUN_DIR: &str = "WEFT_RUN_DIR";
const PATH: &str = "PATH";

/// The variables for a node whose files are in `run_dir`; `program` is weft.
pub(super) fn environment(run_dir: &Path, program: &Path) -> Vec<(&'static str, OsString)> {
    let mut variables = vec![(RUN_DIR, run_dir.into())];
    // A directory with a colon in its name cannot be in the path.
    variables.extend(search_path(program, env::var_os(PATH)).map(|path| (PATH, path)));
    variables
}

fn search_path(program: &Path, path: Option<OsString>) -> Option<OsString> {
    let own = program.parent().filter(|own| own.is_absolute())?.to_owned();
    let others = path.iter().flat_map(env::split_paths);
    env::join_paths(std::iter::once(own).chain(others)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weft_comes_before_all_others() {
        let path = |program: &str, path: Option<&str>| {
            search_path(Path::new(program), path.map(Into::into))
                .map(|path| path.into_string().unwrap())
        };
        assert_eq!(path("/opt/bin/weft", Some("/bin:/sbin")).unwrap(), "/opt/bin:/bin:/sbin");
        assert_eq!(path("/opt/bin/weft", None).unwrap(), "/opt/bin");
        assert_eq!(path("/a:b/weft", Some("/bin")), None);
        assert_eq!(path("weft", Some("/bin")), None);
    }

    #[test]
    fn the_node_is_named() {
        let variables = environment(Path::new("/run/lab/r1"), Path::new("/opt/bin/weft"));
        assert_eq!(variables[0], ("WEFT_RUN_DIR", "/run/lab/r1".into()));
        assert_eq!(variables[1].0, "PATH");
    }
}
