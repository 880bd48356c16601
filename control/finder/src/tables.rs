//! Which processes there may be, and which components there are.

use std::collections::{BTreeMap, BTreeSet};

use weft_base::ChannelId;
use weft_xif::Interface;
use weft_xrl::frame::{Secret, same};
use weft_xrl::{Access, ErrorCode, XrlError};

use crate::clients::Identity;

#[derive(Default)]
pub(crate) struct Tables {
    /// By instance; `None` until the manager has said which there are.
    pub(crate) processes: Option<BTreeMap<String, Process>>,
    targets: BTreeMap<String, Target>,
    /// How often each instance was registered.
    generations: BTreeMap<String, u64>,
    registrations: u64,
}

/// A process that the node has started.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) class: String,
    pub(crate) secret: Secret,
    pub(crate) access: Access,
}

/// A component that is registered.
pub(crate) struct Target {
    pub(crate) class: String,
    pub(crate) sole: bool,
    pub(crate) address: String,
    /// The connection of its process.
    pub(crate) channel: ChannelId,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) texts: Vec<String>,
    /// Grows from one registration to the next.
    order: u64,
    /// Whose caches know it.
    pub(crate) known_to: BTreeSet<ChannelId>,
}

impl Target {
    pub(crate) fn new(
        class: String,
        sole: bool,
        address: String,
        channel: ChannelId,
        texts: Vec<String>,
    ) -> Result<Self, XrlError> {
        let read = |text: &String| {
            Interface::parse(text)
                .map_err(|error| XrlError::bad_args(format!("an interface: {error}")))
        };
        let interfaces = texts.iter().map(read).collect::<Result<_, _>>()?;
        let known_to = BTreeSet::new();
        Ok(Self { class, sole, address, channel, interfaces, texts, order: 0, known_to })
    }

    /// Checks that there is a method `interface/version/method`.
    pub(crate) fn check_method(&self, name: &str, path: &str) -> Result<(), XrlError> {
        let missing = |note: String| XrlError::new(ErrorCode::NoSuchMethod, note);
        let mut parts = path.splitn(3, '/');
        let (Some(interface), Some(version), Some(method)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Err(missing(format!("`{path}` is not interface/version/method")));
        };
        let version: weft_xif::Version = version.parse().map_err(missing)?;
        let known = self.interfaces.iter().find(|one| one.name == interface).ok_or_else(|| {
            let names: Vec<_> = self.interfaces.iter().map(ToString::to_string).collect();
            missing(format!("{name} has no interface `{interface}`; it has: {}", names.join(", ")))
        })?;
        if !known.version.answers(version) {
            let has = known.version;
            return Err(missing(format!("{name} has {interface}/{has}, not {version}")));
        }
        if known.method(method).is_none() {
            let names: Vec<_> = known.methods.iter().map(|method| method.name.as_str()).collect();
            return Err(missing(format!(
                "{known} has no method `{method}`; it has: {}",
                names.join(", ")
            )));
        }
        Ok(())
    }
}

impl Tables {
    /// Whether this is a process that the node does not want any more.
    pub(crate) fn is_removed(&self, identity: Option<&Identity>) -> bool {
        let Some(Identity::Process(own)) = identity else { return false };
        self.processes.as_ref().is_some_and(|all| !all.contains_key(own))
    }

    /// The process that has a secret.
    pub(crate) fn process_of(&self, secret: &Secret) -> Option<&String> {
        let processes = self.processes.as_ref()?;
        // All are compared, so that the time says nothing of which it is.
        processes.iter().fold(None, |found, (instance, process)| {
            if same(&process.secret, secret) { Some(instance) } else { found }
        })
    }

    /// Registers a component; returns its generation, and whether it was there before.
    pub(crate) fn register(
        &mut self,
        instance: &str,
        mut target: Target,
    ) -> Result<(u64, Option<Target>), XrlError> {
        if let Some(other) = self.targets.get(instance)
            && other.channel != target.channel
        {
            let note = format!("another process has registered {instance}");
            return Err(XrlError::failed(note));
        }
        let mut others = self.targets.iter().filter(|(name, _)| name.as_str() != instance);
        let in_the_way =
            others.find(|(_, other)| other.class == target.class && (other.sole || target.sole));
        if let Some((name, _)) = in_the_way {
            let class = &target.class;
            let note = format!("{name} is the sole component of the class {class}");
            return Err(XrlError::failed(note));
        }
        self.registrations += 1;
        target.order = self.registrations;
        let generation = self.generations.entry(instance.to_owned()).or_default();
        *generation += 1;
        Ok((*generation, self.targets.insert(instance.to_owned(), target)))
    }

    pub(crate) fn unregister(&mut self, instance: &str) -> Option<Target> {
        self.targets.remove(instance)
    }

    /// The component that a name stands for: an instance, or the oldest of a class.
    pub(crate) fn find(&mut self, name: &str) -> Option<(String, &mut Target)> {
        let instance = match self.targets.contains_key(name) {
            true => name.to_owned(),
            false => {
                let class = self.targets.iter().filter(|(_, target)| target.class == name);
                class.min_by_key(|(_, target)| target.order)?.0.clone()
            }
        };
        let target = self.targets.get_mut(&instance)?;
        Some((instance, target))
    }

    /// All components in order of instance.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Target)> {
        self.targets.iter()
    }

    /// The components that a process has registered.
    pub(crate) fn of_channel(&self, channel: ChannelId) -> Vec<String> {
        let own = self.targets.iter().filter(|(_, target)| target.channel == channel);
        own.map(|(instance, _)| instance.clone()).collect()
    }

    /// A process is gone, and with it its cache.
    pub(crate) fn forget_cache(&mut self, channel: ChannelId) {
        for target in self.targets.values_mut() {
            target.known_to.remove(&channel);
        }
    }
}
