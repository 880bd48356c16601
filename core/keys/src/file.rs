//! Key files: created whole and private, or not at all; never overwritten; read only if private.
//!
//! An edge: the only place of the crate that touches the file system. A new file is written under a
//! temporary name in its folder, brought to the disk, and then renamed, so that no reader ever sees
//! half a key and a crash leaves either no key or all of it. Folders that are missing are made with
//! mode 0700. The rule that a private key must be closed to group and others is that of OpenSSH.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::{KeyError, PrivateKey, PublicKey};

/// Permissions of a private key.
const PRIVATE_MODE: u32 = 0o600;
/// Permissions of a public key.
const PUBLIC_MODE: u32 = 0o644;
/// Permissions of folders that are made.
const DIRECTORY_MODE: u32 = 0o700;
/// What lets others in.
const GROUP_AND_OTHERS: u32 = 0o077;

/// The largest key file that is read, in bytes. A key has about 120.
pub const MAX_FILE_SIZE: usize = 16 * 1024;

/// Why a key file could not be made or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// There is a file of that name.
    #[error("{} exists already and is not overwritten: choose another name, or move it away", .0.display())]
    Exists(PathBuf),
    /// There is no file of that name.
    #[error("there is no key {}: create it, or correct the path", .0.display())]
    Missing(PathBuf),
    /// A private key with permissions for others.
    #[error(
        "the private key {path} is open to other users (mode {mode:04o}): run `chmod 600 '{path}'`, and replace the key if somebody may have read it",
        path = .path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A folder, a device, a pipe.
    #[error("{} is not a regular file: give the path of a key file", .0.display())]
    NotAFile(PathBuf),
    /// Larger than [`MAX_FILE_SIZE`].
    #[error("{} is larger than any key ({MAX_FILE_SIZE} bytes): give the path of a key file", .0.display())]
    TooLarge(PathBuf),
    /// The file was read, but holds no usable key.
    #[error("{}: {source}", .path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with its content.
        source: KeyError,
    },
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it was refused.
        source: io::Error,
    },
}

/// Writes a private key into a new file of mode 0600.
///
/// # Errors
/// [`FileError::Exists`], or [`FileError::Io`].
pub fn create_private(path: &Path, key: &PrivateKey) -> Result<(), FileError> {
    create(path, key.to_pkcs8_pem().as_bytes(), PRIVATE_MODE)
}

/// Writes a public key into a new file of mode 0644.
///
/// # Errors
/// [`FileError::Exists`], or [`FileError::Io`].
pub fn create_public(path: &Path, key: &PublicKey) -> Result<(), FileError> {
    create(path, key.to_spki_pem().as_bytes(), PUBLIC_MODE)
}

/// Reads a private key from a file that its owner alone may access.
///
/// # Errors
/// All but [`FileError::Exists`].
pub fn load_private(path: &Path) -> Result<PrivateKey, FileError> {
    let content = load(path, check_private)?;
    PrivateKey::from_pkcs8_pem(content.as_slice()).map_err(|source| key_error(path, source))
}

/// Reads a public key.
///
/// # Errors
/// All but [`FileError::Exists`] and [`FileError::Open`].
pub fn load_public(path: &Path) -> Result<PublicKey, FileError> {
    let content = load(path, |_, _| Ok(()))?;
    PublicKey::from_spki_pem(content.as_slice()).map_err(|source| key_error(path, source))
}

fn key_error(path: &Path, source: KeyError) -> FileError {
    FileError::Key { path: path.to_owned(), source }
}

/// What to do with the reason for which the operating system refused an action.
fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    move |source| FileError::Io { action, path: path.to_owned(), source }
}

fn create(path: &Path, content: &[u8], mode: u32) -> Result<(), FileError> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(DIRECTORY_MODE);
    builder.create(directory).map_err(io_error("create the folder", directory))?;

    let mut temporary = tempfile::Builder::new()
        .prefix(".key-")
        .suffix(".tmp")
        .tempfile_in(directory)
        .map_err(io_error("create a file in", directory))?;
    let written = write_to_disk(temporary.as_file_mut(), content, mode);
    written.map_err(io_error("write", temporary.path()))?;

    temporary.persist_noclobber(path).map_err(|failure| match failure.error.kind() {
        io::ErrorKind::AlreadyExists => FileError::Exists(path.to_owned()),
        _ => io_error("create", path)(failure.error),
    })?;
    // The name itself is on the disk only after this.
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(io_error("write to the disk the folder", directory))
}

/// The file begins with mode 0600; the mode is set explicitly as it must not depend on the umask.
fn write_to_disk(file: &mut File, content: &[u8], mode: u32) -> io::Result<()> {
    file.write_all(content)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

/// The content of a regular file whose permissions `check` accepts.
fn load(
    path: &Path,
    check: impl FnOnce(&Path, u32) -> Result<(), FileError>,
) -> Result<Zeroizing<Vec<u8>>, FileError> {
    // Opening a pipe must not wait for its writer.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => FileError::Missing(path.to_owned()),
        _ => io_error("open", path)(error),
    })?;
    // Of the open file, which nobody can exchange any more.
    let metadata = file.metadata().map_err(io_error("inspect", path))?;
    if !metadata.is_file() {
        return Err(FileError::NotAFile(path.to_owned()));
    }
    check(path, metadata.permissions().mode() & 0o7777)?;

    // Allocated once, so that growing leaves no copy of the secret behind.
    let mut content = Zeroizing::new(Vec::with_capacity(MAX_FILE_SIZE + 1));
    let limit = MAX_FILE_SIZE as u64 + 1;
    file.take(limit).read_to_end(&mut content).map_err(io_error("read", path))?;
    if content.len() > MAX_FILE_SIZE {
        return Err(FileError::TooLarge(path.to_owned()));
    }
    Ok(content)
}

fn check_private(path: &Path, mode: u32) -> Result<(), FileError> {
    match mode & GROUP_AND_OTHERS {
        0 => Ok(()),
        _ => Err(FileError::Open { path: path.to_owned(), mode }),
    }
}

#[cfg(test)]
mod tests;
