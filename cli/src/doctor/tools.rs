//! Programs of others that weft runs, or that belong on a desk where networks are examined.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::check::{Check, Subject};

struct Tool {
    subject: Subject,
    /// The packages that have it: Debian's and Ubuntu's, and Fedora's.
    packages: [&'static str; 2],
}

fn tools(is_root: bool) -> [Tool; 8] {
    [
        tool("ip", "labs: namespaces, interfaces, routes", true, ["iproute2", "iproute"]),
        tool("tc", "labs: the rate of links", false, ["iproute2", "iproute-tc"]),
        tool(
            "unshare",
            "labs and `weft demo` without root",
            !is_root,
            ["util-linux", "util-linux"],
        ),
        tool("tshark", "reading captures; `make test`", false, ["tshark", "wireshark-cli"]),
        tool("tcpdump", "looking at interfaces; `make test`", false, ["tcpdump", "tcpdump"]),
        tool(
            "clang",
            "building weft with its loss program for labs",
            false,
            ["clang libbpf-dev linux-libc-dev", "clang libbpf-devel kernel-headers"],
        ),
        tool("openssl", "`make test`: a second opinion on keys", false, ["openssl", "openssl"]),
        tool("ethtool", "looking at interfaces; `make test`", false, ["ethtool", "ethtool"]),
    ]
}

fn tool(
    name: &'static str,
    purpose: &'static str,
    required: bool,
    packages: [&'static str; 2],
) -> Tool {
    Tool { subject: Subject { name, purpose, required }, packages }
}

/// Where distributions keep programs for root, which are not always in the path of others.
const FOR_ROOT: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

pub(super) fn checks(is_root: bool) -> Vec<Check> {
    let path = env::var_os("PATH").unwrap_or_default();
    let manager = Manager::of_this_system(&path);
    tools(is_root)
        .iter()
        .map(|tool| {
            let name = tool.subject.name;
            let elsewhere = || find(name, FOR_ROOT.iter().map(PathBuf::from));
            judge(tool, find(name, env::split_paths(&path)), elsewhere, manager)
        })
        .collect()
}

/// A program for installing packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manager {
    Apt,
    Dnf,
    Other,
}

impl Manager {
    fn of_this_system(path: &OsStr) -> Self {
        let has = |name| find(name, env::split_paths(path)).is_some();
        if has("apt-get") {
            Self::Apt
        } else if has("dnf") {
            Self::Dnf
        } else {
            Self::Other
        }
    }

    /// How to install one of the packages.
    fn install(self, [debian, fedora]: [&str; 2]) -> String {
        match self {
            Self::Apt => format!("run `apt-get install {debian}` as root"),
            Self::Dnf => format!("run `dnf install {fedora}` as root"),
            Self::Other => format!("install what your distribution calls {debian}"),
        }
    }
}

/// The first executable file called `name` in `directories`.
fn find(name: &str, directories: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    directories.map(|directory| directory.join(name)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn judge(
    tool: &Tool,
    in_path: Option<PathBuf>,
    elsewhere: impl Fn() -> Option<PathBuf>,
    manager: Manager,
) -> Check {
    let subject = tool.subject;
    match (in_path, elsewhere()) {
        (Some(path), _) => subject.ok(path.display().to_string()),
        (None, Some(path)) => subject.missing(
            format!("{} is there, but not in PATH", path.display()),
            "run `export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin`",
        ),
        (None, None) => subject.missing("not found", manager.install(tool.packages)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    fn check(in_path: Option<&str>, elsewhere: Option<&str>, manager: Manager) -> Check {
        judge(&tools(true)[1], in_path.map(PathBuf::from), || elsewhere.map(PathBuf::from), manager)
    }

    #[test]
    fn a_tool_that_is_not_there_comes_with_the_package_of_this_system() {
        let remedy = |manager| check(None, None, manager).remedy;
        assert_eq!(remedy(Manager::Apt), "run `apt-get install iproute2` as root");
        assert_eq!(remedy(Manager::Dnf), "run `dnf install iproute-tc` as root");
        assert_eq!(remedy(Manager::Other), "install what your distribution calls iproute2");
    }

    #[test]
    fn a_tool_outside_the_path_needs_no_package() {
        let found = check(None, Some("/usr/sbin/tc"), Manager::Apt);
        assert_eq!(found.state, State::Missing);
        assert_eq!(found.found, "/usr/sbin/tc is there, but not in PATH");
        assert!(found.remedy.contains("export PATH"));
        let found = check(Some("/bin/tc"), Some("/usr/sbin/tc"), Manager::Apt);
        assert_eq!((found.state, found.found.as_str()), (State::Ok, "/bin/tc"));
    }

    #[test]
    fn unshare_is_required_without_root() {
        let is_required = |is_root| {
            tools(is_root).iter().any(|it| it.subject.name == "unshare" && it.subject.required)
        };
        assert_eq!((is_required(false), is_required(true)), (true, false));
    }

    #[test]
    fn only_executable_files_are_found() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let directories = || [first.path(), second.path()].map(Path::to_owned).into_iter();
        fs::create_dir(first.path().join("folder")).unwrap();
        fs::write(first.path().join("tool"), "").unwrap();
        let tool = second.path().join("tool");
        fs::write(&tool, "").unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("tool", directories()), Some(tool));
        assert_eq!(find("folder", directories()), None);
        assert_eq!(find("missing", directories()), None);
    }
}
