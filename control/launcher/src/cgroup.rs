//! Control groups: how much processor time and memory a process may use, and ending all that it started.
//!
//! Each instance has a group of its own below the launcher's: in the unified hierarchy (version 2) where that
//! has the controller, otherwise in the controller's own hierarchy (version 1). What can be had in neither
//! is named in [`ControlGroups::missing`].
//!
//! Reference: cgroups(7); Linux kernel, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::missing::Missing;
use crate::name::Name;
use crate::protocol::Limits;

/// The controllers that weft uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Controller {
    Processor,
    Memory,
    Threads,
}

/// The kernel's names for them.
const CONTROLLERS: [(Controller, &str); 3] =
    [(Controller::Processor, "cpu"), (Controller::Memory, "memory"), (Controller::Threads, "pids")];

/// How to have control groups.
const MEND: &str = "run the node as root, or by systemd with `Delegate=yes`";
/// How often the kernel renews an allowance of processor time, in microseconds.
const PERIOD: u64 = 100_000;
/// What version 1 calls the share that version 2 calls 100.
const SHARES: u64 = 1_024;

/// The groups of one node.
pub(crate) struct ControlGroups {
    /// The node's folder in the unified hierarchy.
    unified: Option<PathBuf>,
    /// Which controllers that folder's children have.
    in_unified: Vec<Controller>,
    /// The node's folder in the hierarchies of single controllers.
    single: BTreeMap<Controller, PathBuf>,
    missing: Vec<Missing>,
}

/// A file system of control groups, seen from this process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    /// Of version 1: its controllers; of version 2: none.
    controllers: Vec<String>,
    /// The folder of this process's own group.
    own: PathBuf,
}

impl ControlGroups {
    /// Makes the groups of a node in folders called `name`, which no other node of the machine has.
    pub(crate) fn set_up(name: &str) -> Self {
        Self::make(name, true)
    }

    /// What groups could be made. They are made under a name that nobody else uses, and removed; this
    /// process stays in the group where it is.
    pub(crate) fn survey() -> Self {
        Self::make(&format!("weft-survey-{}", rustix::process::getpid()), false)
    }

    fn make(name: &str, may_move: bool) -> Self {
        let read =
            |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        let hierarchies = hierarchies(&read("mountinfo"), &read("cgroup"));
        let mut groups = Self::none();
        for hierarchy in &hierarchies {
            let folder = hierarchy.own.join(name);
            if hierarchy.controllers.is_empty() {
                groups.set_up_unified(&hierarchy.own, folder, may_move);
            }
        }
        for hierarchy in &hierarchies {
            for (controller, known_as) in CONTROLLERS {
                let has = hierarchy.controllers.iter().any(|name| name == known_as);
                let folder = hierarchy.own.join(name);
                if has && !groups.in_unified.contains(&controller) && make_anew(&folder).is_ok() {
                    groups.single.insert(controller, folder);
                }
            }
        }
        groups.note_what_is_missing();
        groups
    }

    fn none() -> Self {
        let (single, missing) = (BTreeMap::new(), Vec::new());
        Self { unified: None, in_unified: Vec::new(), single, missing }
    }

    fn set_up_unified(&mut self, own: &Path, folder: PathBuf, may_move: bool) {
        if make_anew(&folder).is_err() {
            return;
        }
        for (controller, name) in CONTROLLERS {
            if enable(own, name, may_move).is_ok() && enable(&folder, name, false).is_ok() {
                self.in_unified.push(controller);
            }
        }
        self.unified = Some(folder);
    }

    fn note_what_is_missing(&mut self) {
        for (controller, name) in CONTROLLERS {
            if self.has(controller) {
                continue;
            }
            let what = match controller {
                Controller::Processor => "processor time is shared by niceness alone",
                Controller::Memory => {
                    "the address space of each process is limited, not its memory"
                }
                Controller::Threads => "threads are limited for each user, not each process",
            };
            let what = format!("without the controller `{name}` of control groups {what}");
            self.missing.push(Missing::new(what, MEND));
        }
    }

    fn has(&self, controller: Controller) -> bool {
        self.in_unified.contains(&controller) || self.single.contains_key(&controller)
    }

    /// What can be limited here, in words.
    pub(crate) fn found(&self) -> String {
        let version = |controller| match self.in_unified.contains(&controller) {
            true => Some(2),
            false => self.single.contains_key(&controller).then_some(1),
        };
        let words = |(controller, name): (Controller, &str)| {
            version(controller).map(|version| format!("{name} (version {version})"))
        };
        let found: Vec<_> = CONTROLLERS.into_iter().filter_map(words).collect();
        if found.is_empty() { "none".to_owned() } else { found.join(", ") }
    }

    /// What cannot be limited here.
    pub(crate) fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// Whether memory is limited by groups.
    pub(crate) fn limits_memory(&self) -> bool {
        self.has(Controller::Memory)
    }

    /// Makes the group of an instance and returns files: a process that writes `0` to each of them is a
    /// member.
    pub(crate) fn prepare(&self, instance: &Name, limits: &Limits) -> io::Result<Vec<OwnedFd>> {
        let mut members = Vec::new();
        for folder in self.folders(instance) {
            make(&folder)?;
            let file = OpenOptions::new().write(true).open(folder.join("cgroup.procs"))?;
            members.push(OwnedFd::from(file));
        }
        if let Some(unified) = &self.unified {
            let folder = unified.join(instance.as_str());
            for controller in &self.in_unified {
                set_unified(&folder, *controller, limits)?;
            }
        }
        for (controller, folder) in &self.single {
            set_single(&folder.join(instance.as_str()), *controller, limits)?;
        }
        Ok(members)
    }

    /// How often the kernel has ended a process of an instance for using too much memory, since the group was made.
    pub(crate) fn memory_kills(&self, instance: &Name) -> u64 {
        let file = match &self.unified {
            Some(unified) if self.in_unified.contains(&Controller::Memory) => {
                unified.join(instance.as_str()).join("memory.events")
            }
            _ => match self.single.get(&Controller::Memory) {
                Some(folder) => folder.join(instance.as_str()).join("memory.oom_control"),
                None => return 0,
            },
        };
        let text = fs::read_to_string(file).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }

    /// Ends whatever is left in the group of an instance, and removes the group.
    pub(crate) fn remove(&self, instance: &Name) {
        self.kill(instance);
        for folder in self.folders(instance) {
            // What is still ending keeps it; then it is removed with the next start.
            let _ = fs::remove_dir(folder);
        }
    }

    /// Ends whatever is left in the group of an instance.
    pub(crate) fn kill(&self, instance: &Name) {
        if let Some(unified) = &self.unified {
            // Not there before Linux 5.14; then the process group has been ended all the same.
            let _ = fs::write(unified.join(instance.as_str()).join("cgroup.kill"), "1");
        }
    }

    /// The folders of an instance's group, in each hierarchy once.
    fn folders(&self, instance: &Name) -> Vec<PathBuf> {
        let nodes = self.unified.iter().chain(self.single.values());
        let mut folders: Vec<_> = nodes.map(|node| node.join(instance.as_str())).collect();
        folders.dedup();
        folders
    }
}

impl Drop for ControlGroups {
    fn drop(&mut self) {
        for node in self.unified.iter().chain(self.single.values()) {
            remove_children(node);
            let _ = fs::remove_dir(node);
        }
    }
}

/// Makes the folder of a node, or empties that of a node of this name which ended without doing so.
fn make_anew(folder: &Path) -> io::Result<()> {
    make(folder)?;
    let _ = fs::write(folder.join("cgroup.kill"), "1");
    remove_children(folder);
    Ok(())
}

fn remove_children(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // Files of a group cannot be removed, and need not be.
        let _ = fs::remove_dir(entry.path());
    }
}

fn make(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

/// Has the children of a group in the unified hierarchy use a controller. A group whose children do has
/// no processes itself: if this process is the only one there, it may move to a leaf.
fn enable(folder: &Path, controller: &str, may_move: bool) -> io::Result<()> {
    let has = |file: &str| {
        let names = fs::read_to_string(folder.join(file))?;
        io::Result::Ok(names.split_ascii_whitespace().any(|name| name == controller))
    };
    if has("cgroup.subtree_control")? {
        return Ok(());
    }
    if !has("cgroup.controllers")? {
        return Err(io::ErrorKind::NotFound.into());
    }
    let enable = || fs::write(folder.join("cgroup.subtree_control"), format!("+{controller}"));
    match enable() {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy && may_move => {
            if fs::read_to_string(folder.join("cgroup.procs"))?.trim() != own_id() {
                return Err(error);
            }
            let leaf = folder.join("weft-launcher");
            make(&leaf)?;
            fs::write(leaf.join("cgroup.procs"), "0")?;
            enable()
        }
        result => result,
    }
}

fn own_id() -> String {
    rustix::process::getpid().to_string()
}

/// Writes a value that begins at once and at the start of the file.
fn set(folder: &Path, file: &str, value: impl ToString) -> io::Result<()> {
    use io::Write;
    let path = folder.join(file);
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let mut file = File::options().write(true).open(&path).map_err(named)?;
    file.write_all(value.to_string().as_bytes()).map_err(named)
}

fn set_unified(folder: &Path, controller: Controller, limits: &Limits) -> io::Result<()> {
    match controller {
        Controller::Processor => {
            set(folder, "cpu.weight", limits.processor_weight.unwrap_or(100))?;
            let quota = limits.processor_percent.map_or("max".to_owned(), |p| quota(p).to_string());
            set(folder, "cpu.max", format!("{quota} {PERIOD}"))
        }
        Controller::Memory => set(folder, "memory.max", number(limits.memory)),
        Controller::Threads => set(folder, "pids.max", number(limits.threads)),
    }
}

fn set_single(folder: &Path, controller: Controller, limits: &Limits) -> io::Result<()> {
    match controller {
        Controller::Processor => {
            let weight = u64::from(limits.processor_weight.unwrap_or(100));
            set(folder, "cpu.shares", (weight * SHARES / 100).max(2))?;
            let Some(percent) = limits.processor_percent else {
                return set(folder, "cpu.cfs_quota_us", -1);
            };
            set(folder, "cpu.cfs_period_us", PERIOD)?;
            set(folder, "cpu.cfs_quota_us", quota(percent))
        }
        Controller::Memory => {
            let bytes = limits.memory.map_or("-1".to_owned(), |bytes| bytes.to_string());
            set(folder, "memory.limit_in_bytes", bytes)
        }
        Controller::Threads => set(folder, "pids.max", number(limits.threads)),
    }
}

/// Microseconds of processor time in each period; the kernel takes no less than a millisecond.
fn quota(percent: u32) -> u64 {
    u64::from(percent) * PERIOD / 100
}

fn number(limit: Option<impl ToString>) -> String {
    limit.map_or("max".to_owned(), |limit| limit.to_string())
}

/// The hierarchies that are mounted, from the texts of /proc/self/mountinfo and /proc/self/cgroup.
fn hierarchies(mounts: &str, memberships: &str) -> Vec<Hierarchy> {
    let membership = |wanted: &dyn Fn(&str) -> bool| {
        memberships.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            wanted(controllers).then(|| path.to_owned())
        })
    };
    let mut found = Vec::new();
    for line in mounts.lines() {
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let before: Vec<_> = before.split(' ').collect();
        let after: Vec<_> = after.split(' ').collect();
        let (&[_, _, _, root, point, ..], &[kind, _, options]) = (&before[..], &after[..]) else {
            continue;
        };
        let (controllers, path) = match kind {
            "cgroup2" => (Vec::new(), membership(&str::is_empty)),
            "cgroup" => {
                let is_controller =
                    |name: &&str| CONTROLLERS.iter().any(|(_, known)| known == name);
                let names: Vec<_> = options.split(',').filter(is_controller).collect();
                let Some(first) = names.first() else { continue };
                let path = membership(&|listed| listed.split(',').any(|name| name == *first));
                (names.iter().map(|&name| name.to_owned()).collect(), path)
            }
            _ => continue,
        };
        let Some(path) = path else { continue };
        // The mount may show a part of the hierarchy only.
        let below = path.strip_prefix(root.trim_end_matches('/')).unwrap_or(&path);
        let own = Path::new(point).join(below.trim_start_matches('/'));
        if !found.iter().any(|known: &Hierarchy| known.controllers == controllers) {
            found.push(Hierarchy { controllers, own });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_in_both_versions() {
        let mounts = "\
            30 23 0:26 / /sys/fs/cgroup ro shared:4 - tmpfs tmpfs ro,mode=755\n\
            31 30 0:27 / /sys/fs/cgroup/unified rw shared:5 - cgroup2 cgroup2 rw\n\
            33 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
            34 30 0:30 /pod /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
            35 30 0:31 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n";
        let memberships = "9:memory:/pod/x\n5:cpu,cpuacct:/\n3:freezer:/\n0::/user.slice/a.scope\n";
        let hierarchy = |controllers: &[&str], own: &str| Hierarchy {
            controllers: controllers.iter().map(|&name| name.to_owned()).collect(),
            own: PathBuf::from(own),
        };
        assert_eq!(
            hierarchies(mounts, memberships),
            [
                hierarchy(&[], "/sys/fs/cgroup/unified/user.slice/a.scope"),
                hierarchy(&["cpu"], "/sys/fs/cgroup/cpu,cpuacct/"),
                hierarchy(&["memory"], "/sys/fs/cgroup/memory/x"),
            ]
        );
        assert_eq!(hierarchies("", memberships), []);
        assert_eq!(hierarchies(mounts, ""), []);
    }

    #[test]
    fn without_groups_each_limit_is_missing_with_what_takes_its_place() {
        let mut groups = ControlGroups::none();
        groups.note_what_is_missing();
        assert_eq!(groups.missing().len(), 3);
        assert!(groups.missing()[1].to_string().contains("address space"));
        assert!(!groups.limits_memory());
    }
}
