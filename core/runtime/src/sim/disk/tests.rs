use super::*;

/// A process's view of a disk.
struct Shell {
    disk: Disk,
    files: OpenFiles,
}

impl Shell {
    fn new() -> Self {
        let mut disk = Disk::new();
        disk.make_directory(Path::new("/home")).unwrap();
        Self { disk, files: OpenFiles::new(Path::new("/home"), b"typed in".to_vec()) }
    }

    fn ask(&mut self, request: DiskRequest) -> Reply {
        self.disk.handle(&mut self.files, request)
    }

    fn open(&mut self, path: &str, mode: OpenMode) -> Result<FileId, DiskError> {
        match self.ask(DiskRequest::Open { path: path.into(), mode })? {
            DiskReply::Opened { file, .. } => Ok(file),
            other => panic!("{other:?}"),
        }
    }

    fn write(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> Reply {
        self.ask(DiskRequest::Write { file, offset, bytes: bytes.to_vec() })
    }

    fn read(&mut self, file: FileId, offset: u64, len: usize) -> (Vec<u8>, bool) {
        match self.ask(DiskRequest::Read { file, offset, len }).unwrap() {
            DiskReply::Data { bytes, end } => (bytes, end),
            other => panic!("{other:?}"),
        }
    }

    fn close(&mut self, file: FileId) {
        assert_eq!(self.ask(DiskRequest::Close { file }), Ok(DiskReply::Done));
    }

    /// Writes a whole file.
    fn put(&mut self, path: &str, bytes: &[u8]) {
        let file = self.open(path, OpenMode::Replace).unwrap();
        self.write(file, 0, bytes).unwrap();
        self.close(file);
    }

    fn content(&self, path: &str) -> Option<Vec<u8>> {
        self.disk.content(Path::new(path)).ok()
    }
}

fn kind(reply: Result<impl std::fmt::Debug, DiskError>) -> DiskErrorKind {
    reply.unwrap_err().kind
}

#[test]
fn modes_open_what_they_say() {
    let mut shell = Shell::new();
    assert_eq!(kind(shell.open("file", OpenMode::Read)), DiskErrorKind::NotFound);
    shell.put("file", b"content");
    let file = shell.open("file", OpenMode::Update).unwrap();
    shell.write(file, 3, b"TENT").unwrap();
    assert_eq!(shell.read(file, 0, 100), (b"conTENT".to_vec(), true));
    assert_eq!(shell.read(file, 0, 3), (b"con".to_vec(), false));
    assert_eq!(shell.read(file, 50, 3), (vec![], true));
    let reading = shell.open("/home/./x/../file", OpenMode::Read).unwrap();
    assert_eq!(kind(shell.write(reading, 0, b"x")), DiskErrorKind::Other);
    let emptied = shell.open("file", OpenMode::Replace).unwrap();
    assert_eq!(shell.read(emptied, 0, 1), (vec![], true));
    shell.close(file);
    assert_eq!(kind(shell.ask(DiskRequest::Sync { file })), DiskErrorKind::Other);
}

#[test]
fn holes_and_lengths_read_as_zero() {
    let mut shell = Shell::new();
    let file = shell.open("file", OpenMode::Replace).unwrap();
    shell.write(file, 1 << 40, b"far").unwrap();
    assert_eq!(shell.read(file, (1 << 40) - 2, 9), (b"\0\0far".to_vec(), true));
    shell.ask(DiskRequest::SetLen { file, len: 2 }).unwrap();
    shell.ask(DiskRequest::SetLen { file, len: 4 }).unwrap();
    assert_eq!(shell.read(file, 0, 9), (vec![0; 4], true));
    assert_eq!(kind(shell.write(file, u64::MAX - 1, b"xx")), DiskErrorKind::Full);
    assert_eq!(kind(shell.ask(DiskRequest::SetLen { file, len: u64::MAX })), DiskErrorKind::Full);
}

#[test]
fn renaming_replaces_and_an_open_file_outlives_its_name() {
    let mut shell = Shell::new();
    shell.put("old", b"old");
    shell.put("new", b"new");
    let kept = shell.open("old", OpenMode::Read).unwrap();
    let rename = DiskRequest::Rename { from: "new".into(), to: "old".into() };
    shell.ask(rename).unwrap();
    assert_eq!(shell.content("/home/old"), Some(b"new".to_vec()));
    assert_eq!(shell.content("/home/new"), None);
    assert_eq!(shell.read(kept, 0, 9).0, b"old");
    shell.ask(DiskRequest::Remove { path: "old".into() }).unwrap();
    assert_eq!(shell.read(kept, 0, 9).0, b"old");
    shell.close(kept);
    assert!(shell.disk.inodes.iter().all(Option::is_none), "everything was freed");
    let again = DiskRequest::Remove { path: "old".into() };
    assert_eq!(kind(shell.ask(again)), DiskErrorKind::NotFound);
}

#[test]
fn directories_are_made_with_their_parents_and_list_in_order() {
    let mut shell = Shell::new();
    assert_eq!(kind(shell.open("a/b/file", OpenMode::Replace)), DiskErrorKind::NotFound);
    shell.ask(DiskRequest::MakeDirectory { path: "a/b".into() }).unwrap();
    shell.ask(DiskRequest::MakeDirectory { path: "a/b".into() }).unwrap();
    shell.put("a/b/file", b"");
    shell.put("a/z", b"");
    shell.put("a-b", b"");
    shell.put("a/c", b"");
    let list = shell.ask(DiskRequest::List { path: "a".into() }).unwrap();
    assert_eq!(list, DiskReply::Names(vec!["b".into(), "c".into(), "z".into()]));
    assert_eq!(kind(shell.ask(DiskRequest::List { path: "x".into() })), DiskErrorKind::NotFound);
    assert_eq!(kind(shell.ask(DiskRequest::List { path: "a-b".into() })), DiskErrorKind::Other);
    let over = DiskRequest::MakeDirectory { path: "a-b/c".into() };
    assert_eq!(kind(shell.ask(over)), DiskErrorKind::Other);
    assert_eq!(kind(shell.open("a", OpenMode::Update)), DiskErrorKind::Other);
    let files = shell.disk.files_below(Path::new("/home/a"));
    assert_eq!(files, ["/home/a/b/file", "/home/a/c", "/home/a/z"].map(PathBuf::from));
}

#[test]
fn a_quota_fills_up_changes_nothing_then_and_gives_back() {
    let mut shell = Shell::new();
    shell.disk.set_quota(Path::new("/home"), Some(3 * PAGE as u64));
    shell.put("one", &[1; PAGE]);
    let file = shell.open("two", OpenMode::Replace).unwrap();
    shell.write(file, 0, &[2; 2 * PAGE]).unwrap();
    let error = shell.write(file, PAGE as u64, &[3; PAGE + 1]).unwrap_err();
    assert_eq!(error.kind, DiskErrorKind::Full);
    assert!(error.text.contains("the disk is full: /home has a quota"), "{error}");
    assert_eq!(shell.content("/home/two"), Some(vec![2; 2 * PAGE]));
    shell.write(file, 0, &[4; PAGE]).expect("writing over something takes no room");
    shell.ask(DiskRequest::Remove { path: "one".into() }).unwrap();
    shell.write(file, 2 * PAGE as u64, &[3; PAGE]).expect("room was freed");
    shell.ask(DiskRequest::MakeDirectory { path: "/elsewhere".into() }).unwrap();
    shell.put("/elsewhere/file", &[0; 9 * PAGE]);
    shell.disk.set_quota(Path::new("/home"), None);
    shell.write(file, 0, &[3; 9 * PAGE]).expect("the quota is gone");
}

#[test]
fn a_thousand_copies_take_the_memory_of_one() {
    let mut shell = Shell::new();
    let content: Vec<u8> = (0..64 * PAGE).map(|i| (i / 7 % 251) as u8).collect();
    for number in 0..1000 {
        let file = shell.open(&format!("copy{number}"), OpenMode::Replace).unwrap();
        // In pieces that do not fit the pages, in an order of its own.
        let mut pieces: Vec<_> = content.chunks(1300).enumerate().collect();
        let middle = number % pieces.len();
        pieces.rotate_left(middle);
        for (place, piece) in pieces {
            shell.write(file, place as u64 * 1300, piece).unwrap();
        }
        shell.close(file);
        assert_eq!(shell.content(&format!("/home/copy{number}")).as_ref(), Some(&content));
    }
    assert!(shell.disk.memory() <= 2 * content.len(), "{} bytes", shell.disk.memory());
}

#[test]
fn imported_files_can_be_read_and_not_written() {
    let mut shell = Shell::new();
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().join("real");
    std::fs::write(&real, b"from outside").unwrap();
    shell.disk.import_file(Path::new("/data/real"), &real).unwrap();
    shell.disk.import(Path::new("/data/given"), b"given", true).unwrap();
    let file = shell.open("/data/real", OpenMode::Read).unwrap();
    assert_eq!(shell.read(file, 5, 100), (b"outside".to_vec(), true));
    for path in ["/data/real", "/data/given"] {
        assert_eq!(kind(shell.open(path, OpenMode::Update)), DiskErrorKind::Denied);
    }
    assert_eq!(shell.content("/data/given"), Some(b"given".to_vec()));
    let error = shell.disk.import_file(Path::new("/data/x"), &real.join("x")).unwrap_err();
    assert!(error.to_string().starts_with("cannot read "), "{error}");
    assert!(shell.disk.import(Path::new("/data"), b"", false).is_err());
}

#[test]
fn standard_streams_are_streams() {
    let mut shell = Shell::new();
    let input = shell.open("-", OpenMode::Read).unwrap();
    assert_eq!(shell.read(input, 99, 5), (b"typed".to_vec(), false));
    assert_eq!(shell.read(input, 99, 5), (b" in".to_vec(), true));
    assert_eq!(shell.read(input, 0, 5), (vec![], true));
    let output = shell.open("-", OpenMode::Replace).unwrap();
    shell.write(output, 7, b"out").unwrap();
    shell.write(output, 7, b"put").unwrap();
    assert_eq!(shell.disk.written_output(&shell.files, 0), b"output");
    assert_eq!(shell.disk.written_output(&shell.files, 3), b"put");
    assert_eq!(shell.disk.written_output(&shell.files, 9), b"");
    assert_eq!(kind(shell.ask(DiskRequest::SetLen { file: output, len: 0 })), DiskErrorKind::Other);
    shell.close(input);
    shell.close(output);
}
