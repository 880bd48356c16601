//! What is known of a lab outside of the process that built it: one directory per lab with a file
//! that names its namespaces and processes, so that other commands find it and any process can take
//! it down.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::LabError;

/// Where labs are kept by root.
const ROOT: &str = "/run/weft/labs";
/// Names another directory; set for labs without root, which have a private `/run`.
pub(crate) const STATE_VARIABLE: &str = "WEFT_LAB_STATE";
const FILE: &str = "state.json";

/// A process, recognised even after its id was given to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessId {
    pub(crate) pid: u32,
    /// Clock ticks after boot at which it was started (proc_pid_stat(5), field 22).
    started: u64,
}

impl ProcessId {
    /// The process that has this id now; `None` if there is none.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, started: stat(pid, 22)? })
    }

    /// The one that had this id at another time.
    #[cfg(test)]
    pub(crate) fn of_another_process(self) -> Self {
        Self { started: self.started + 1, ..self }
    }

    /// Whether it still runs (or has ended, but its parent has not yet noticed).
    pub(crate) fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }
}

/// The process group of a process.
pub(crate) fn process_group(pid: u32) -> Option<u32> {
    stat(pid, 5)
}

/// A number that the kernel tells of a process (proc_pid_stat(5)).
fn stat<T: FromStr>(pid: u32, field: usize) -> Option<T> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may contain anything; field 3 follows it.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(field.checked_sub(3)?)?.parse().ok()
}

/// A node as others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeState {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) interfaces: Vec<String>,
}

/// A process as others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessState {
    pub(crate) name: String,
    pub(crate) node: String,
    pub(crate) id: ProcessId,
}

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// The name of the lab.
    pub(crate) lab: String,
    /// What distinguishes it from other labs of that name.
    pub(crate) id: String,
    /// The process that takes the lab down when it ends; `None` if the lab stays until somebody
    /// takes it down.
    pub(crate) owner: Option<ProcessId>,
    /// The working directory of its commands.
    pub(crate) output: PathBuf,
    pub(crate) nodes: Vec<NodeState>,
    /// The namespace of the far ends of links that a process joins.
    pub(crate) link_namespace: Option<String>,
    pub(crate) processes: Vec<ProcessState>,
}

impl State {
    /// `LAB-ID`, by which people name it.
    pub(crate) fn full_name(&self) -> String {
        format!("{}-{}", self.lab, self.id)
    }

    /// Whether nobody cares for it any more.
    pub(crate) fn is_stale(&self) -> bool {
        self.owner.is_some_and(|owner| !owner.is_alive())
    }

    /// All of its namespaces.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.namespace.as_str()).chain(self.link_namespace.as_deref())
    }
}

/// Where the directories of all labs are.
pub(crate) fn root() -> PathBuf {
    std::env::var_os(STATE_VARIABLE).map_or_else(|| ROOT.into(), PathBuf::from)
}

/// A file that is locked while labs of others are removed.
const LOCK: &str = ".lock";

/// Makes the directory of all labs, and waits until no other process holds the lock.
pub(crate) fn lock() -> Result<File, LabError> {
    let path = make_root(root())?.join(LOCK);
    let lock = || -> io::Result<File> {
        let file = File::options().create(true).append(true).open(&path)?;
        file.lock()?;
        Ok(file)
    };
    lock().map_err(LabError::disk("lock", &path))
}

/// Makes the directory of all labs. The one above it is open to everybody: with `/run/weft`, other
/// users reach the sockets of nodes that admit them.
fn make_root(root: PathBuf) -> Result<PathBuf, LabError> {
    let make = || -> io::Result<()> {
        weft_launcher::make_way(&root)?;
        match make_passable(&root) {
            // Whatever an earlier version made.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => pass(&root),
            result => result,
        }
    };
    match make() {
        Ok(()) => Ok(root),
        Err(error) => Err(LabError::disk("make the directory", root)(error)),
    }
}

/// Makes a directory that others can pass and not read: the processes of nodes have users of their own.
fn make_passable(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path)?;
    pass(path)
}

/// Lets others pass a directory, whatever the user's mask was when it was made.
fn pass(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o711))
}

/// The directory of one lab.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Makes the directory of a new lab, and the id that nobody else has.
    pub(crate) fn make(lab: &str) -> Result<(Self, String), LabError> {
        let root = make_root(root())?;
        loop {
            let id = format!("{:04x}", RandomState::new().hash_one(lab) & 0xffff);
            let path = root.join(format!("{lab}-{id}"));
            match make_passable(&path) {
                Ok(()) => return Ok((Self { path }, id)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(LabError::disk("make the directory", path)(error)),
            }
        }
    }

    /// The directory of the lab that `state` describes.
    pub(crate) fn of(state: &State) -> Self {
        Self { path: root().join(state.full_name()) }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The run directory of a node.
    pub(crate) fn node(&self, node: &str) -> PathBuf {
        self.path.join(node)
    }

    /// What the process has to know that starts a router of others.
    pub(crate) fn router(&self, node: &str) -> PathBuf {
        self.path.join(format!("{node}.router.json"))
    }

    /// Writes the state, in one step as others see it.
    pub(crate) fn save(&self, state: &State) -> Result<(), LabError> {
        let (new, path) = (self.path.join("state.new"), self.path.join(FILE));
        let save = || -> io::Result<()> {
            let text = serde_json::to_vec_pretty(state)?;
            fs::write(&new, text)?;
            fs::rename(&new, &path)
        };
        save().map_err(LabError::disk("write", &path))
    }

    /// Removes the directory with all that is in it.
    pub(crate) fn remove(&self) -> Result<(), LabError> {
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(LabError::disk("remove", &self.path)(error))
            }
            _ => Ok(()),
        }
    }
}

/// The states of all labs that there are, sorted by name. Those that cannot be read are left out:
/// they are being made or taken down at this moment. Fails if this user may not see them.
pub(crate) fn all() -> Result<Vec<State>, LabError> {
    all_in(&root())
}

fn all_in(root: &Path) -> Result<Vec<State>, LabError> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let root = root.display();
            return Err(LabError::NotPermitted(format!(
                "only root may see the labs in {root}: use sudo"
            )));
        }
        Err(error) => return Err(LabError::disk("read the directory", root)(error)),
    };
    let read = |entry: io::Result<fs::DirEntry>| -> Option<State> {
        let text = fs::read(entry.ok()?.path().join(FILE)).ok()?;
        serde_json::from_slice(&text).ok()
    };
    let mut states: Vec<State> = entries.filter_map(read).collect();
    states.sort_by_key(State::full_name);
    Ok(states)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rootless::state_directory_in;

    #[test]
    fn processes_are_recognised_by_their_start() {
        let own = ProcessId::of(std::process::id()).expect("this process is there");
        assert!(own.is_alive());
        assert!(!own.of_another_process().is_alive());
        assert_eq!(ProcessId::of(u32::MAX), None);
    }

    #[test]
    fn nobody_else_can_list_labs() {
        let directory = tempfile::tempdir().unwrap();
        let root = make_root(directory.path().join("weft/labs")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(root.parent().unwrap()), mode(&root)), (0o755, 0o711));
        assert!(make_root(root).is_ok(), "it may be there");
    }

    #[test]
    fn the_state_of_labs_without_root_is_found_again_and_nobody_else_writes_to_it() {
        let parent = tempfile::tempdir().unwrap();
        let root = state_directory_in(parent.path()).unwrap();
        make_root(root.clone()).unwrap();
        assert_eq!(state_directory_in(parent.path()).unwrap(), root, "others may pass it");
        for open_to_others in [0o730, 0o703] {
            fs::set_permissions(&root, fs::Permissions::from_mode(open_to_others)).unwrap();
            let error = state_directory_in(parent.path()).unwrap_err().to_string();
            assert!(error.contains("others can write to it"), "{error}");
        }
    }

    #[test]
    fn no_name_of_a_router_leads_to_the_state_of_the_lab() {
        let directory = Directory { path: PathBuf::from("lab") };
        assert_ne!(directory.router("state"), directory.path.join(FILE));
    }

    #[test]
    fn a_directory_that_cannot_be_read_is_no_empty_one() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(all_in(&directory.path().join("none")).unwrap(), []);
        assert_eq!(all_in(directory.path()).unwrap(), []);
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(all_in(&file).unwrap_err().to_string().contains("cannot read the directory"));
    }

    #[test]
    fn labs_without_their_owner_are_stale() {
        let own = ProcessId::of(std::process::id());
        let mut state = State {
            lab: "l".into(),
            id: "1".into(),
            owner: own,
            output: PathBuf::new(),
            nodes: Vec::new(),
            link_namespace: None,
            processes: Vec::new(),
        };
        assert!(!state.is_stale());
        state.owner = own.map(ProcessId::of_another_process);
        assert!(state.is_stale());
        state.owner = None;
        assert!(!state.is_stale(), "it was meant to stay");
    }
}
