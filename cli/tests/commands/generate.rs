//! `weft completion` and `weft man`: shells take the scripts, man(1) the pages, and no command is missing.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use weft_port::testing::lacks;

use crate::support::{finish, weft};

/// Whether a program can be executed here.
fn has(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

/// The names below a command, as its help lists them.
fn children(path: &[&str]) -> Vec<String> {
    let help = finish(weft(path.iter().copied().chain(["--help"]))).stdout;
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = list.take_while(|line| line.starts_with("  "));
    let names = names.filter(|line| !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

/// What bash offers for an unfinished line of words.
fn completed(script: &Path, words: &[&str]) -> Vec<String> {
    let array: String = words.iter().map(|word| format!("'{word}' ")).collect();
    let program = format!(
        ". {}; COMP_WORDS=({array}); COMP_CWORD={}; _weft weft \"{}\" \"{}\"; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        words.len() - 1,
        words[words.len() - 1],
        words[words.len() - 2],
    );
    let output = Command::new("bash").args(["-c", &program]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("weft.bash");
    fs::write(&script, finish(weft(["completion", "bash"])).stdout).unwrap();
    let parsed = Command::new("bash").arg("-n").arg(&script).output().unwrap();
    assert!(parsed.status.success() && parsed.stderr.is_empty(), "{parsed:?}");
    assert_eq!(completed(&script, &["weft", "conf"]), ["configure"]);
    assert_eq!(completed(&script, &["weft", "show", "co"]), ["components", "counters"]);
    assert_eq!(completed(&script, &["weft", "show", "log", "--fo"]), ["--follow"]);
    // What is hidden from the help is hidden here.
    assert_eq!(completed(&script, &["weft", "comp"]), ["completion"]);
}

#[test]
fn other_shells_have_scripts_too() {
    for (shell, part) in [("zsh", "#compdef weft"), ("fish", "complete -c weft")] {
        let done = finish(weft(["completion", shell]));
        assert!(done.status == Some(0) && done.stdout.contains(part), "{shell}: {done:?}");
        assert!(!done.stdout.contains("bench-flow-source"), "{shell}");
        let mut parser = Command::new(shell);
        if !has(shell) {
            lacks(shell);
            continue;
        }
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        fs::write(&script, done.stdout).unwrap();
        let parsed = parser.arg("-n").arg(&script).output().unwrap();
        assert!(parsed.status.success(), "{shell}: {parsed:?}");
    }
}

#[test]
fn every_command_has_a_page_that_groff_takes() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man1");
    let done = finish(weft([Path::new("man"), &pages]));
    assert_eq!(done.status, Some(0), "{done:?}");
    let found: BTreeSet<String> = fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut expected = BTreeSet::from(["weft.1".to_owned()]);
    for name in children(&[]).iter().filter(|name| *name != "help") {
        expected.insert(format!("weft-{name}.1"));
        for child in children(&[name]).iter().filter(|child| *child != "help") {
            expected.insert(format!("weft-{name}-{child}.1"));
        }
    }
    expected.extend(["new", "show", "verify"].map(|verb| format!("weft-xia-id-{verb}.1")));
    expected.extend(["client", "server"].map(|verb| format!("weft-xia-perf-{verb}.1")));
    for table in ["route", "neighbour"] {
        expected.extend(["add", "delete"].map(|verb| format!("weft-xia-{table}-{verb}.1")));
    }
    expected.insert("weft-show-xia-forwarding.1".to_owned());
    expected.extend(["peers", "routes", "summary"].map(|view| format!("weft-show-bgp-{view}.1")));
    expected.extend(["check", "flush", "limit"].map(|verb| format!("weft-xia-dst-{verb}.1")));
    assert_eq!(found, expected);
    if !has("groff") {
        return lacks("groff");
    }
    for page in found {
        let checked = Command::new("groff")
            .args(["-man", "-Tutf8", "-ww", "-z"])
            .arg(pages.join(&page))
            .output()
            .unwrap();
        assert!(checked.status.success() && checked.stderr.is_empty(), "{page}: {checked:?}");
    }
    let shown = Command::new("groff")
        .args(["-man", "-Tascii", "-P-cbou"])
        .arg(pages.join("weft-show-log.1"))
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("--follow") && shown.contains("weft show log xia --follow"), "{shown}");
}
