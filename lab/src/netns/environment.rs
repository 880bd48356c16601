//! What commands on a node find in their environment.
//!
//! Reference: environ(7). Beside what the lab itself has: which node is meant, the programs that talk to the node's
//! router in front of all others, and then `weft`, so that scripts on a node can use them wherever they are.

use std::env;
use std::ffi::OsString;
use std::path::Path;

use crate::router::TOOLS;

/// Where a command on a node finds the node's sockets.
const RUN_DIR: &str = "WEFT_RUN_DIR";
const PATH: &str = "PATH";

/// The variables for a node whose files are in `run_dir`; `program` is weft.
pub(super) fn environment(run_dir: &Path, program: &Path) -> Vec<(&'static str, OsString)> {
    let mut variables = vec![(RUN_DIR, run_dir.into())];
    // A directory with a colon in its name cannot be in the path.
    variables.extend(search_path(run_dir, program, env::var_os(PATH)).map(|path| (PATH, path)));
    variables
}

fn search_path(run_dir: &Path, program: &Path, path: Option<OsString>) -> Option<OsString> {
    let own = program.parent().filter(|own| own.is_absolute())?.to_owned();
    let others = path.iter().flat_map(env::split_paths);
    env::join_paths([run_dir.join(TOOLS), own].into_iter().chain(others)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weft_comes_before_all_others() {
        let path = |program: &str, path: Option<&str>| {
            search_path(Path::new("/r"), Path::new(program), path.map(Into::into))
                .map(|path| path.into_string().unwrap())
        };
        assert_eq!(
            path("/opt/bin/weft", Some("/bin:/sbin")).unwrap(),
            "/r/bin:/opt/bin:/bin:/sbin"
        );
        assert_eq!(path("/opt/bin/weft", None).unwrap(), "/r/bin:/opt/bin");
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
