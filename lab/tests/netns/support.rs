//! A host program without any architecture, and helpers.

use std::ffi::OsString;
use std::fs;
use std::num::NonZeroU64;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use weft_base::Random;
use weft_lab::{
    EngineKind, Host, Lab, LabError, Log, Options, Outcome, SimNode, StepOutcome, Variables, run,
};
/// Whether namespaces can be made; says so if not.
pub(crate) use weft_port::testing::privileged as is_root;
use weft_runtime::Process;

/// The arguments of the child, one per line.
pub(crate) const ARGUMENTS: &str = "WEFT_LAB_TEST_ARGUMENTS";

/// A directory for one test with the program that stands for `weft`.
pub(crate) struct Bench {
    pub(crate) directory: TempDir,
    program: PathBuf,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("weft");
        let test = std::env::current_exe().unwrap();
        let script = format!(
            "#!/bin/sh\n{ARGUMENTS}=\"$(printf '%s\\n' \"$@\")\" exec '{}' child::entry --exact --nocapture\n",
            test.display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { directory, program }
    }

    pub(crate) fn output(&self) -> PathBuf {
        self.directory.path().join("out")
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn run(&self, text: &str) -> Result<Outcome, LabError> {
        self.run_with(text, |_| {})
    }

    /// Runs a lab with changed options.
    pub(crate) fn run_with(
        &self,
        text: &str,
        change: impl FnOnce(&mut Options),
    ) -> Result<Outcome, LabError> {
        let lab = Lab::parse("test.lab", text, &Variables::new())?;
        let mut options = Options {
            engine: EngineKind::Netns,
            output: Some(self.output()),
            ..Options::default()
        };
        change(&mut options);
        run(&lab, &options, &TestHost(&self.program), &mut Log::new(std::io::sink()))
    }

    /// Runs a lab whose scenario must succeed.
    pub(crate) fn succeed(&self, text: &str) -> Outcome {
        let outcome = self.run(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(outcome.error, None);
        outcome
    }

    /// Runs a lab whose scenario must fail in its last step; why.
    pub(crate) fn fail(&self, text: &str) -> String {
        let outcome = self.run(text).unwrap_or_else(|error| panic!("{error}"));
        let last: Option<&StepOutcome> = outcome.steps.last();
        assert!(!last.unwrap().succeeded);
        outcome.error.unwrap()
    }

    pub(crate) fn stdout(&self, process: &str) -> String {
        fs::read_to_string(self.output().join(format!("logs/{process}.stdout"))).unwrap()
    }
}

/// Namespaces of labs with this name.
pub(crate) fn namespaces(lab: &str) -> Vec<String> {
    let prefix = format!("weft-{lab}-");
    let Ok(entries) = fs::read_dir("/run/netns") else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(&prefix)).collect()
}

/// Nothing of the labs with this name is left.
pub(crate) fn assert_gone(lab: &str) {
    assert_eq!(namespaces(lab), Vec::<String>::new());
    let left = fs::read_dir("/run/weft/labs").into_iter().flatten();
    let left: Vec<_> =
        left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.starts_with(&format!("{lab}-"))), "{left:?}");
}

pub(crate) struct TestHost<'a>(pub(crate) &'a Path);

impl Host for TestHost<'_> {
    fn program(&self) -> &Path {
        self.0
    }

    fn alias(&self, kind: &str, words: &[String]) -> Result<String, String> {
        match kind {
            "joined" => Ok(words.join(":")),
            _ => Err(format!("`{kind}` is no kind of alias: write `joined`")),
        }
    }

    fn identifier(&self, node: &str, mut identity: Random) -> Result<String, String> {
        Ok(format!("{node}-{:04x}", identity.number() & 0xffff))
    }

    fn check(&self, _: &str, config: &str) -> Result<(), String> {
        if config.contains("wrong") { Err("it says `wrong`".into()) } else { Ok(()) }
    }

    fn prepare(&self, _: &str, run_dir: &Path, mut identity: Random) -> Result<(), String> {
        let key = identity.number().to_string();
        fs::write(run_dir.join("key"), key).map_err(|error| error.to_string())
    }

    fn node_arguments(&self, config: &Path, run_dir: &Path) -> Vec<OsString> {
        vec!["stack".into(), config.into(), run_dir.into()]
    }

    fn ready(&self, _: &str) -> &str {
        "stack is ready"
    }

    fn link_arguments(&self) -> Vec<OsString> {
        vec!["link".into()]
    }

    fn router_arguments(&self) -> Vec<OsString> {
        vec!["router".into()]
    }

    fn trace_arguments(&self, one_in: NonZeroU64) -> Vec<String> {
        vec!["trace".into(), one_in.to_string()]
    }

    fn visits_arguments(&self) -> Vec<String> {
        vec!["visits".into()]
    }

    fn node_process(
        &self,
        _: &SimNode<'_>,
        _: &str,
        _: Random,
        _: Random,
    ) -> Result<weft_runtime::sim::Spawn, String> {
        Err("these nodes are not simulated".into())
    }

    fn command_process(
        &self,
        _: &SimNode<'_>,
        _: &[String],
        _: Random,
    ) -> Result<Box<dyn Process>, String> {
        Err("these commands are not simulated".into())
    }
}
