//! What the program that embeds the lab gives to it. The lab itself knows no architecture.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::Path;

use weft_base::Random;
use weft_runtime::Process;
use weft_runtime::sim::Spawn;

/// A node on which a simulated process is to run.
#[derive(Debug, Clone, Copy)]
pub struct SimNode<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its run directory in the simulated file system: where its stack listens for commands.
    pub run_dir: &'a Path,
    /// The working directory of its processes in the simulated file system.
    pub directory: &'a Path,
}

/// The program that embeds the lab: it is what runs on nodes of kind `weft`, and it gives meaning to
/// names.
///
/// All texts of errors are one lower-case sentence that says what is wrong and how to mend it.
pub trait Host {
    /// The path of the program. It runs in the namespaces, for nodes and for commands that begin with
    /// the word `weft`.
    fn program(&self) -> &Path;

    /// The text that `alias NAME KIND WORDS…;` names. Must depend on nothing but its arguments.
    ///
    /// # Errors
    /// The kind is unknown, or the words make no sense for it.
    fn alias(&self, kind: &str, words: &[String]) -> Result<String, String>;

    /// What `@NODE` stands for: the node's identifier in its architecture. It follows from the name
    /// and `identity`, whose sequence is the same wherever the node's identity is asked for.
    ///
    /// # Errors
    /// The identifier cannot be made.
    fn identifier(&self, node: &str, identity: Random) -> Result<String, String>;

    /// Checks the text of a node's configuration file.
    ///
    /// # Errors
    /// The mistakes, with their places in `config`.
    fn check(&self, node: &str, config: &str) -> Result<(), String>;

    /// Puts what the node needs besides its configuration, such as key files, into its run directory.
    ///
    /// # Errors
    /// A file cannot be written.
    fn prepare(&self, node: &str, run_dir: &Path, identity: Random) -> Result<(), String>;

    /// The arguments with which the program runs a node's stack until it is told to end.
    fn node_arguments(&self, config: &Path, run_dir: &Path) -> Vec<OsString>;

    /// What a node with this configuration writes, to standard output or standard error, when it can be used.
    fn ready(&self, config: &str) -> &str;

    /// The arguments with which the program calls [`crate::run_links`].
    fn link_arguments(&self) -> Vec<OsString>;

    /// The arguments with which the program calls [`crate::run_router`].
    fn router_arguments(&self) -> Vec<OsString>;

    /// The words behind `weft` of the command by which a node's stack starts to record what it does
    /// with one packet in `one_in`, the same packets on every node.
    fn trace_arguments(&self, one_in: NonZeroU64) -> Vec<String>;

    /// The words behind `weft` of the command that prints what was recorded, as
    /// [`crate::trace`] describes it.
    fn visits_arguments(&self) -> Vec<String>;

    /// Checks that a configuration that is right can run in the simulator.
    ///
    /// # Errors
    /// What of it cannot.
    fn check_simulated(&self, node: &str, config: &str) -> Result<(), String> {
        let (_, _) = (node, config);
        Ok(())
    }

    /// What runs on a node in the simulator: its launcher ([`crate::SimLauncher`]), or the process of
    /// its stack alone. Its identity must be that of [`Host::identifier`]. The lab gives it its name and
    /// its directory.
    ///
    /// # Errors
    /// The configuration cannot be run in the simulator.
    fn node_process(
        &self,
        node: &SimNode<'_>,
        config: &str,
        identity: Random,
        random: Random,
    ) -> Result<Spawn, String>;

    /// The process of `weft WORDS…` on a node in the simulator.
    ///
    /// # Errors
    /// The words are no command, or one that cannot be simulated.
    fn command_process(
        &self,
        node: &SimNode<'_>,
        words: &[String],
        random: Random,
    ) -> Result<Box<dyn Process>, String>;
}
