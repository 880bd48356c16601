//! Nodes in the simulator: the processes of `weft run`, made by the same registry, on a simulated machine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weft_base::{Instant, Random, WallTime};
use weft_finder::Nobody;
use weft_keys::PrivateKey;
use weft_lab::{SimLauncher, SimNode, Starting};
use weft_launcher::supervisor::Settings;
use weft_manager::ProgramKind;
use weft_runtime::Level;
use weft_runtime::sim::Spawn;

use crate::node::component::{Boot, Node, Started, process};
use crate::node::{MANAGER, file, history, manager_listeners};

/// The time of day at which simulated worlds begin: 2000-01-01, in nanoseconds since 1970.
const BEGIN: u64 = 946_684_800_000_000_000;
/// The user of all processes of a simulated machine, and of those who use it.
const OPERATOR: u32 = 0;

/// A node as `weft run` makes it: its launcher, which starts its manager and everything else.
pub(super) fn whole(
    node: &SimNode<'_>,
    config: &str,
    identity: PrivateKey,
    random: Random,
) -> Result<Spawn, String> {
    let file = file::parse(node.name, config).map_err(|error| error.to_string())?;
    let directory = node.run_dir.to_owned();
    let settings = Settings {
        run_directory: directory.clone(),
        groups: BTreeSet::new(),
        grace: Duration::from_secs(5),
        manager_failures: 10,
        missing: vec!["nothing is isolated in the simulator".to_owned()],
    };
    let listeners = manager_listeners(&directory)?;
    let identity = file.identity(Some(identity))?;
    let (name, source, text) = (node.name.to_owned(), node.name.to_owned(), config.to_owned());
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    let make = move |starting: &Starting<'_>| {
        let &Starting { now, instance, class, secret } = starting;
        if ProgramKind::of_class(class).is_some() {
            return Err("a program of others cannot run in the simulator".to_owned());
        }
        let times = times.entry(instance.to_owned()).or_default();
        *times += 1;
        let mut seed = [0; 32];
        random.fork(&format!("{instance}/{times}")).fill(&mut seed);
        let node = Node {
            name: name.clone(),
            directory: directory.clone(),
            operator: OPERATOR,
            identity: identity.as_ref().map(|key| key.public_key().hash()),
            key: identity.clone().filter(|_| class == weft_xia_component::STATEMENT),
            seed,
            wall: wall(now),
            level: Level::Info,
            clock: None,
        };
        let boot = (class == MANAGER).then(|| Boot {
            source: source.clone(),
            text: text.clone(),
            history: history(&directory),
        });
        let users = Box::new(Nobody);
        process(Started { class, instance, secret: secret.copied(), boot, users }, &node)
    };
    let launcher = SimLauncher::new(settings, listeners, Box::new(make));
    Ok(Spawn::parent(node.name, Box::new(launcher)))
}

fn wall(now: Instant) -> WallTime {
    WallTime::from_unix_nanos(BEGIN.saturating_add(now.as_nanos()))
}
