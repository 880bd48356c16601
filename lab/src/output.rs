//! The directory in which the commands of a lab work, and that keeps their files and logs.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use weft_base::Random;

use crate::LabError;
use crate::file::{Content, NodeKind, Router};
use crate::netns;
use crate::plan::Plan;

/// Marks directories that a lab has made and may empty. Locked while a lab runs there.
const MARK: &str = ".weft-lab";
/// Where the logs of the processes are.
pub(crate) const LOGS: &str = "logs";

/// The name of the file that a router of others reads.
pub(crate) fn router_config(node: &str) -> String {
    format!("{node}.conf")
}

/// The output directory of one run, to which nobody else has a claim while this value lives.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    mark: File,
}

impl Drop for Output {
    fn drop(&mut self) {
        // Closing would not do: a program that is just being started may still share the file.
        let _ = self.mark.unlock();
    }
}

impl Output {
    /// Makes `path` an empty directory with the input files of the lab in it. What an earlier lab
    /// has left there is removed; anything else is left alone, and is an error.
    pub(crate) fn make(path: &Path, plan: &Plan<'_>) -> Result<Self, LabError> {
        let output = Self::make_empty(path)?;
        for file in &plan.lab.files {
            let name = file.name.value.as_str();
            let to = output.path.join(name);
            let result = match &file.content {
                Content::Copy(from) => link(Path::new(&plan.expand(&from.value)), &to),
                Content::Random(size) => make_random(&to, *size, plan.file_seed(name)),
            };
            result?;
        }
        for node in &plan.lab.nodes {
            if let NodeKind::Router(Router { config: Some(from), .. }) = &node.kind {
                let to = output.path.join(router_config(node.name.value.as_str()));
                link(Path::new(&plan.expand(&from.value)), &to)?;
            }
        }
        Ok(output)
    }

    /// The same without the input files.
    pub(crate) fn make_empty(path: &Path) -> Result<Self, LabError> {
        fs::create_dir_all(path).map_err(LabError::disk("make the directory", path))?;
        let path = path.canonicalize().map_err(LabError::disk("find", path))?;
        let mark = claim(&path)?;
        let output = Self { path, mark };
        // The process of a lab that stays has ended, and its lock with it.
        if let Some(lab) = netns::lab_working_in(&output.path) {
            return Err(in_use(&output.path, &format!("the lab {lab}")));
        }
        output.clear()?;
        let logs = output.path.join(LOGS);
        fs::create_dir_all(&logs).map_err(LabError::disk("make the directory", &logs))?;
        Ok(output)
    }

    /// Its absolute path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes everything but the mark.
    fn clear(&self) -> Result<(), LabError> {
        let clear = || -> io::Result<()> {
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                if entry.file_name() == MARK {
                    continue;
                }
                if entry.file_type()?.is_dir() {
                    fs::remove_dir_all(entry.path())?;
                } else {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        clear().map_err(LabError::disk("empty the directory", &self.path))
    }

    /// The log files of a process are called so, with `.stdout` and `.stderr` behind.
    pub(crate) fn log(&self, process: &str) -> PathBuf {
        self.path.join(LOGS).join(process)
    }
}

/// Locks the mark of the directory `path`, which is made if nothing else is in there.
fn claim(path: &Path) -> Result<File, LabError> {
    let mark = path.join(MARK);
    let mut entries = fs::read_dir(path).map_err(LabError::disk("read the directory", path))?;
    if !mark.exists() && entries.next().is_some() {
        return Err(LabError::Usage(format!(
            "the output directory {} holds files that no lab has made: name another one with `--output`, or empty it",
            path.display()
        )));
    }
    let file = File::options().create(true).append(true).open(&mark);
    let file = file.map_err(LabError::disk("write", &mark))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(error)) => Err(LabError::disk("lock", mark)(error)),
        Err(TryLockError::WouldBlock) => {
            let lab = netns::lab_working_in(path);
            let user = lab.map_or("a run of a lab".to_owned(), |lab| format!("the lab {lab}"));
            Err(in_use(path, &user))
        }
    }
}

fn in_use(path: &Path, user: &str) -> LabError {
    LabError::Usage(format!(
        "{user} is using the output directory {}: name another one with `--output`, or end it first",
        path.display()
    ))
}

/// Makes the real file `from` visible as `to`.
fn link(from: &Path, to: &Path) -> Result<(), LabError> {
    let from = from.canonicalize().map_err(LabError::disk("read", from))?;
    File::open(&from).map_err(LabError::disk("read", &from))?;
    symlink(&from, to).map_err(LabError::disk("make the link", to))
}

/// The bytes of an input file that is made, in pieces.
pub(crate) fn random_bytes(size: u64, mut random: Random) -> impl Iterator<Item = Vec<u8>> {
    const PIECE: u64 = 64 * 1024;
    (0..size.div_ceil(PIECE)).map(move |piece| {
        let length = PIECE.min(size - piece * PIECE);
        let mut bytes = vec![0; length as usize]; // At most a piece.
        random.fill(&mut bytes);
        bytes
    })
}

fn make_random(path: &Path, size: u64, random: Random) -> Result<(), LabError> {
    let write = || -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        random_bytes(size, random).try_for_each(|bytes| file.write_all(&bytes))?;
        file.flush()
    };
    write().map_err(LabError::disk("write", path))
}

/// Compares files below `directory`. Says which differ, or which cannot be read; `None` if all are
/// equal.
pub(crate) fn difference(directory: &Path, files: &[PathBuf]) -> Option<String> {
    let (first, others) = files.split_first()?;
    others.iter().find_map(|other| {
        let result = compare(&directory.join(first), &directory.join(other));
        let (first, other) = (first.display(), other.display());
        match result {
            Ok(None) => None,
            Ok(Some(offset)) => {
                Some(format!("the files {first} and {other} differ from byte {offset} on"))
            }
            Err(error) => {
                Some(format!("the files {first} and {other} cannot be compared: {error}"))
            }
        }
    })
}

/// Where the files begin to differ; `None` if they are equal.
fn compare(one: &Path, other: &Path) -> io::Result<Option<u64>> {
    let open = |path: &Path| -> io::Result<_> {
        let file = File::open(path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        Ok(BufReader::with_capacity(1 << 16, file))
    };
    let (mut one, mut other) = (open(one)?, open(other)?);
    let mut offset = 0;
    loop {
        let (ours, theirs) = (one.fill_buf()?, other.fill_buf()?);
        let len = ours.len().min(theirs.len());
        if ours[..len] != theirs[..len] {
            let equal = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
            return Ok(Some(offset + equal as u64));
        }
        if len == 0 {
            return Ok((ours.len() != theirs.len()).then_some(offset));
        }
        offset += len as u64;
        one.consume(len);
        other.consume(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_files_are_equal_and_others_differ_at_a_byte() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            fs::write(directory.path().join(name), bytes).unwrap();
            PathBuf::from(name)
        };
        let big = vec![7; 200_000];
        let (a, b) = (write("a", &big), write("b", &big));
        let c = write("c", &big[..199_999]);
        let compare = |files: &[&PathBuf]| {
            let files: Vec<_> = files.iter().map(|file| (*file).clone()).collect();
            difference(directory.path(), &files)
        };
        assert_eq!(compare(&[&a, &b]), None);
        let told = compare(&[&a, &b, &c]).unwrap();
        assert_eq!(told, "the files a and c differ from byte 199999 on");
        assert!(compare(&[&a, &PathBuf::from("missing")]).unwrap().contains("missing"));
    }

    #[test]
    fn random_files_follow_from_the_seed() {
        let bytes =
            |seed, size| random_bytes(size, Random::from_seed(seed)).collect::<Vec<_>>().concat();
        assert_eq!(bytes(1, 100_000).len(), 100_000);
        assert_eq!(bytes(1, 100_000), bytes(1, 100_000));
        assert_ne!(bytes(1, 100), bytes(2, 100));
        assert_eq!(bytes(1, 0).len(), 0);
    }

    #[test]
    fn directories_of_others_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Output::make_empty(&directory.path().join("new/one")).is_ok());
        let error = Output::make_empty(directory.path()).unwrap_err().to_string();
        assert!(error.contains("--output"), "{error}");
        assert!(directory.path().join("new/one").exists());
        fs::write(directory.path().join("thesis"), "").unwrap();
        fs::write(directory.path().join(MARK), "").unwrap();
        assert!(Output::make_empty(directory.path()).is_ok());
        assert!(!directory.path().join("thesis").exists());
        assert!(!directory.path().join("new").exists());
    }

    #[test]
    fn directories_in_use_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let first = Output::make_empty(&path).unwrap();
        fs::write(first.log("process"), "said").unwrap();
        let error = Output::make_empty(&path).unwrap_err().to_string();
        assert!(error.contains("is using the output directory"), "{error}");
        assert!(error.contains("--output"), "{error}");
        assert!(first.log("process").exists());
        let log = first.log("process");
        drop(first);
        assert!(Output::make_empty(&path).is_ok());
        assert!(!log.exists());
    }
}
