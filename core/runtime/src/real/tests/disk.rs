//! Files through the driver.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;

use weft_base::{FileId, Token};
use weft_port::testing::privileged;

use super::run_script;
use crate::{Action, DiskError, DiskErrorKind, DiskReply, DiskRequest, Event, OpenMode};

type Answer = Result<DiskReply, DiskError>;

/// Carries `requests` out, all at once, and returns the answers.
fn carry_out(requests: Vec<DiskRequest>) -> Vec<Answer> {
    let count = requests.len();
    let mut requests = VecDeque::from(requests);
    let (answer, answers) = mpsc::channel();
    let mut next = 0;
    let status = run_script(move |turn| {
        match &mut turn.event {
            Event::Start => {
                for (number, request) in requests.drain(..).enumerate() {
                    turn.out.push(Action::Disk { token: Token(number as u32), request });
                }
            }
            Event::Disk { token, result } => {
                assert_eq!(*token, Token(next));
                next += 1;
                let result = std::mem::replace(result, Ok(DiskReply::Done));
                answer.send(result).unwrap();
            }
            other => panic!("{other:?}"),
        }
        if next as usize == count {
            turn.exit(0);
        }
    });
    assert_eq!(status, 0);
    answers.into_iter().collect()
}

fn open(path: &Path, mode: OpenMode) -> DiskRequest {
    DiskRequest::Open { path: path.to_owned(), mode }
}

fn opened(file: u32, len: u64) -> Answer {
    Ok(DiskReply::Opened { file: FileId(file), len: Some(len) })
}

fn data(bytes: &[u8], end: bool) -> Answer {
    Ok(DiskReply::Data { bytes: bytes.to_vec(), end })
}

fn kind(answer: &Answer) -> DiskErrorKind {
    answer.as_ref().unwrap_err().kind
}

#[test]
fn a_file_is_made_written_read_renamed_listed_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("a/b");
    let (old, new) = (folder.join("old"), folder.join("new"));
    let file = FileId(1);
    let write = |offset, bytes: &[u8]| DiskRequest::Write { file, offset, bytes: bytes.to_vec() };
    let answers = carry_out(vec![
        DiskRequest::MakeDirectory { path: folder.clone() },
        DiskRequest::MakeDirectory { path: folder.clone() },
        open(&old, OpenMode::Update),
        write(4, b"wide"),
        write(0, b"weft"),
        DiskRequest::Read { file, offset: 2, len: 4 },
        DiskRequest::Read { file, offset: 4, len: 100 },
        DiskRequest::Read { file, offset: 100, len: usize::MAX },
        DiskRequest::SetLen { file, len: 3 },
        DiskRequest::Sync { file },
        DiskRequest::Rename { from: old.clone(), to: new.clone() },
        DiskRequest::Close { file },
        open(&new, OpenMode::Read),
        open(&new, OpenMode::Replace),
        DiskRequest::SyncDirectory { path: folder.clone() },
        DiskRequest::List { path: folder.clone() },
        DiskRequest::Remove { path: new.clone() },
        DiskRequest::List { path: folder.clone() },
    ]);
    let done = || Ok(DiskReply::Done);
    let expected = [
        done(),
        done(),
        opened(1, 0),
        done(),
        done(),
        data(b"ftwi", false),
        data(b"wide", true),
        data(b"", true),
        done(),
        done(),
        done(),
        done(),
        opened(2, 3),
        opened(3, 0),
        done(),
        Ok(DiskReply::Names(vec!["new".to_owned()])),
        done(),
        Ok(DiskReply::Names(Vec::new())),
    ];
    assert_eq!(answers, expected);
}

#[test]
fn errors_tell_what_where_and_why() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let answers = carry_out(vec![
        open(&missing, OpenMode::Read),
        DiskRequest::Remove { path: missing.clone() },
        DiskRequest::Rename { from: missing.clone(), to: missing.clone() },
        DiskRequest::List { path: missing.clone() },
        DiskRequest::SyncDirectory { path: missing.clone() },
        open(directory.path(), OpenMode::Read),
        DiskRequest::Read { file: FileId(9), offset: 0, len: 1 },
        DiskRequest::Close { file: FileId(9) },
    ]);
    for answer in &answers[..5] {
        assert_eq!(kind(answer), DiskErrorKind::NotFound);
        let text = &answer.as_ref().unwrap_err().text;
        assert!(text.contains(&missing.display().to_string()), "{text}");
    }
    assert!(answers[5].as_ref().unwrap_err().text.contains("is a directory"));
    for answer in &answers[6..] {
        assert_eq!(kind(answer), DiskErrorKind::Other);
    }
}

#[test]
fn a_large_file_is_read_whole_whatever_the_step() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large");
    let content: Vec<u8> = (0..3_000_001_u32).map(|number| (number % 251) as u8).collect();
    std::fs::write(&path, &content).unwrap();
    let file = FileId(1);
    let answers = carry_out(vec![
        open(&path, OpenMode::Read),
        DiskRequest::Read { file, offset: 0, len: content.len() },
        DiskRequest::Read { file, offset: 0, len: content.len() - 1 },
        DiskRequest::Read { file, offset: 1, len: usize::MAX },
    ]);
    assert_eq!(answers[1], data(&content, true));
    assert_eq!(answers[2], data(&content[..content.len() - 1], false));
    assert_eq!(answers[3], data(&content[1..], true));
}

#[test]
fn a_full_device_is_an_error_of_its_own_kind() {
    let answers = carry_out(vec![
        open(Path::new("/dev/full"), OpenMode::Update),
        DiskRequest::Write { file: FileId(1), offset: 0, bytes: vec![1] },
    ]);
    assert_eq!(answers[0], Ok(DiskReply::Opened { file: FileId(1), len: None }));
    assert_eq!(kind(&answers[1]), DiskErrorKind::Full);
}

#[test]
fn devices_that_never_block_are_read_at_once() {
    let read = |file| DiskRequest::Read { file: FileId(file), offset: 0, len: 3 };
    let answers = carry_out(vec![
        open(Path::new("/dev/zero"), OpenMode::Read),
        read(1),
        open(Path::new("/dev/null"), OpenMode::Read),
        read(2),
        DiskRequest::SetLen { file: FileId(2), len: 1 },
        DiskRequest::Write { file: FileId(2), offset: 0, bytes: vec![1] },
    ]);
    assert_eq!(answers[0], Ok(DiskReply::Opened { file: FileId(1), len: None }));
    assert_eq!((&answers[1], &answers[3]), (&data(&[0; 3], false), &data(b"", true)));
    for answer in &answers[4..] {
        assert_eq!(kind(answer), DiskErrorKind::Other);
    }
}

/// A file system of 64 KiB in memory, unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k", "weft-test"]).arg(directory.path());
        assert!(mount.status().unwrap().success());
        Self(directory)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("file")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_an_error_and_what_was_there_stays() {
    if !privileged() {
        return;
    }
    let disk = SmallDisk::mount();
    let file = FileId(1);
    let write = |offset, len| DiskRequest::Write { file, offset, bytes: vec![7; len] };
    let answers = carry_out(vec![
        open(&disk.path(), OpenMode::Update),
        write(0, 4096),
        write(4096, 100_000),
        DiskRequest::Read { file, offset: 0, len: 4096 },
        DiskRequest::Close { file },
    ]);
    assert_eq!(kind(&answers[2]), DiskErrorKind::Full);
    let text = &answers[2].as_ref().unwrap_err().text;
    assert!(text.contains("the disk is full") && text.contains("file`"), "{text}");
    assert_eq!(answers[3].as_ref(), data(&[7; 4096], false).as_ref());
}

#[test]
fn a_pipe_is_read_when_something_comes_while_other_files_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let (pipe, other) = (directory.path().join("pipe"), directory.path().join("other"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (mut writer, mut order) = (None, Vec::new());
    let status = run_script(move |turn| {
        let mut ask = |token, request| turn.out.push(Action::Disk { token: Token(token), request });
        match &turn.event {
            Event::Start => {
                ask(1, open(&pipe, OpenMode::Read));
                ask(2, DiskRequest::Read { file: FileId(1), offset: 0, len: 100 });
                ask(3, DiskRequest::Read { file: FileId(1), offset: 0, len: 2 });
                ask(4, open(&other, OpenMode::Update));
            }
            Event::Disk { token, result } => {
                order.push(token.0);
                match token.0 {
                    1 => assert!(result.is_ok()),
                    4 => {
                        let pipe = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
                        std::io::Write::write_all(&mut &pipe, b"hello").unwrap();
                        writer = Some(pipe);
                    }
                    2 => {
                        assert_eq!(*result, data(b"hello", false));
                        drop(writer.take().unwrap());
                    }
                    3 => {
                        assert_eq!(*result, data(b"", true));
                        ask(5, DiskRequest::Read { file: FileId(1), offset: 0, len: 9 });
                        ask(6, DiskRequest::Close { file: FileId(1) });
                    }
                    _ if order.len() == 6 => turn.exit(0),
                    _ => {}
                }
            }
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(status, 0);
}
