//! Starting one process: its user, sockets, descriptors, limits and environment.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::thread::{CapabilitySet, capabilities};

use super::{Base, places};
use crate::inherit::{self, Entry, Kind, VARIABLE, secret_descriptor};
use crate::name::{Name, Secret};
use crate::profile::{Profile, SANDBOX, Sandbox};
use crate::protocol::{Limits, ListenerSpec};
use crate::spawn::{Plan, Running, spawn};
use crate::supervisor::manager_name;

/// What is to be started.
pub(super) struct Order<'a> {
    pub(super) instance: &'a Name,
    pub(super) class: &'a Name,
    pub(super) arguments: Vec<OsString>,
    pub(super) limits: Limits,
    pub(super) listeners: &'a [ListenerSpec],
    pub(super) secret: Option<&'a Secret>,
    pub(super) channel: Option<BorrowedFd<'a>>,
}

impl Base {
    /// Starts a process, with descriptors that are kept for it.
    pub(super) fn start<'k>(
        &mut self,
        order: &Order<'_>,
        kept: impl Iterator<Item = (&'k Name, &'k OwnedFd)>,
    ) -> Result<Running, String> {
        let user = self.user_of(order.instance)?;
        self.open_listeners(order, user)?;
        let sandbox = self.sandbox(order, user)?;
        let secret = order.secret.map(secret_descriptor).transpose().map_err(no_memory)?;
        let key = self.config.keys.get(order.class.as_str());
        let key = key.map(secret_descriptor).transpose().map_err(no_memory)?;
        let mut entries = self.entries(order.instance, kept);
        let mut add = |fd: BorrowedFd<'_>, kind, name: &str| {
            entries.push(Entry { fd: fd.as_raw_fd(), kind, name: name.to_owned(), path: None });
        };
        for (descriptor, kind, name) in
            [(&secret, Kind::Secret, "secret"), (&key, Kind::Key, "key")]
        {
            use std::os::fd::AsFd;
            if let Some(descriptor) = descriptor {
                add(descriptor.as_fd(), kind, name);
            }
        }
        if let Some(channel) = order.channel {
            add(channel, Kind::Channel, "launcher");
        }
        let limits = with_defaults(order.limits, sandbox.profile.limits(order.class));
        let groups = self
            .groups
            .prepare(order.instance, &limits)
            .map_err(|error| format!("cannot set up its control group: {error}"))?;
        let json = |error: serde_json::Error| error.to_string();
        let mut environment = self.config.environment.clone();
        environment.push((VARIABLE.into(), inherit::variable(&entries).map_err(json)?.into()));
        environment.push((SANDBOX.into(), serde_json::to_string(&sandbox).map_err(json)?.into()));
        let result = spawn(Plan {
            binary: &self.config.binary,
            arguments: self.arguments(order),
            environment,
            inherited: entries.iter().map(|entry| entry.fd).collect(),
            user,
            capabilities: sandbox.profile.capabilities() & own_capabilities(),
            limits,
            limit_address_space: !self.groups.limits_memory(),
            groups,
            powers: self.powers,
        });
        if result.is_err() {
            self.groups.remove(order.instance);
        }
        result
    }

    /// The uid of an instance and the gid of the node, if they are not the launcher's.
    pub(super) fn user_of(&mut self, instance: &Name) -> Result<Option<(u32, u32)>, String> {
        let Some(uids) = &mut self.uids else { return Ok(None) };
        let uid = match *instance == manager_name() {
            true => uids.manager(),
            false => uids.of(instance)?,
        };
        Ok(Some((uid, uids.group())))
    }

    fn open_listeners(
        &mut self,
        order: &Order<'_>,
        user: Option<(u32, u32)>,
    ) -> Result<(), String> {
        let groups = &self.config.groups;
        self.listeners.prepare(order.instance, order.listeners, |spec| {
            let (_, gid) = user?;
            let named = spec.group.as_ref().and_then(|name| groups.get(name));
            Some(named.copied().unwrap_or(gid))
        })
    }

    fn sandbox(&self, order: &Order<'_>, user: Option<(u32, u32)>) -> Result<Sandbox, String> {
        let profile = Profile::of_class(order.class);
        let run_directory = self.config.run_directory.clone();
        let mut write = vec![places::state(&run_directory, order.instance, user)?];
        if profile == Profile::Manager {
            write.extend(self.config.manager_directories.iter().cloned());
        }
        Ok(Sandbox { profile, instance: order.instance.clone(), run_directory, write })
    }

    fn entries<'k>(
        &self,
        instance: &Name,
        kept: impl Iterator<Item = (&'k Name, &'k OwnedFd)>,
    ) -> Vec<Entry> {
        let listeners = self
            .listeners
            .of(instance)
            .map(|(path, socket)| inherit::listener(socket.as_raw_fd(), path));
        let kept = kept.map(|(name, descriptor)| Entry {
            fd: descriptor.as_raw_fd(),
            kind: Kind::Kept,
            name: name.to_string(),
            path: None,
        });
        listeners.chain(kept).collect()
    }

    fn arguments(&self, order: &Order<'_>) -> Vec<OsString> {
        let mut arguments = self.config.prefix.clone();
        let word = |name: &Name| OsString::from(name.as_str());
        arguments.extend([word(order.class), "--instance".into(), word(order.instance)]);
        arguments.extend(order.arguments.iter().cloned());
        arguments
    }
}

/// What this process can pass on.
fn own_capabilities() -> CapabilitySet {
    capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.permitted)
}

fn with_defaults(limits: Limits, defaults: Limits) -> Limits {
    Limits {
        memory: limits.memory.or(defaults.memory),
        processor_weight: limits.processor_weight.or(defaults.processor_weight),
        processor_percent: limits.processor_percent.or(defaults.processor_percent),
        threads: limits.threads.or(defaults.threads),
        descriptors: limits.descriptors.or(defaults.descriptors),
        nice: limits.nice.or(defaults.nice),
    }
}

fn no_memory(error: std::io::Error) -> String {
    format!("cannot make a file in memory for its secret: {error}")
}
