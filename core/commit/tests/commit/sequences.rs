//! Random sequences of what operators, components, the clock and the disk may do, against a model.
//!
//! The model knows what should run, what should be edited and what should be fallen back to; it knows
//! nothing of steps, questions and files.

use std::time::Duration;

use proptest::prelude::*;
use weft_base::Instant;
use weft_commit::{Action, Done, Refusal};
use weft_config::Tree;
use weft_runtime::DiskErrorKind;

use crate::disk::{Disk, Loss};
use crate::node::{KEEP, Node, ROOT, commit, commit_confirmed, edit, schema};

/// What happens.
#[derive(Debug, Clone)]
enum Step {
    Edit(usize),
    Revert,
    /// The revision before that many, as far as there is one.
    Restore(usize),
    Check,
    /// A commit, which has to be confirmed within so many minutes if there are any; some component
    /// may object or refuse, or the disk fail at some request.
    Commit {
        minutes: Option<u64>,
        trouble: Trouble,
    },
    Wait(u64),
    Break,
    Unlock,
    /// The manager ends, perhaps with the power, and returns after some minutes.
    Restart {
        minutes: u64,
        power: Option<u64>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    Objects(usize),
    Refuses(usize),
    Silent(usize),
    Disk(usize),
}

const COMMANDS: &[&str] = &[
    "set fea mtu 1",
    "set fea mtu 2",
    "set fea interface a up",
    "delete fea interface a",
    "delete fea",
    "set rib limit 3",
    "set rib key geheim",
    "delete rib",
    "set bgp as 1",
    "set bgp peer x",
    "delete bgp as",
    "delete bgp",
    "annotate rib \"why\"",
];
const COMPONENTS: &[&str] = &["fea", "rib", "bgp"];

fn step() -> impl Strategy<Value = Step> {
    let trouble = prop_oneof![
        6 => Just(Trouble::None),
        1 => (0..3usize).prop_map(Trouble::Objects),
        2 => (0..3usize).prop_map(Trouble::Refuses),
        1 => (0..3usize).prop_map(Trouble::Silent),
        2 => (1..7usize).prop_map(Trouble::Disk),
    ];
    prop_oneof![
        12 => (0..COMMANDS.len()).prop_map(Step::Edit),
        1 => Just(Step::Revert),
        2 => (0..6usize).prop_map(Step::Restore),
        1 => Just(Step::Check),
        8 => (prop::option::weighted(0.4, 1..10u64), trouble)
            .prop_map(|(minutes, trouble)| Step::Commit { minutes, trouble }),
        3 => (1..8u64).prop_map(Step::Wait),
        1 => Just(Step::Break),
        1 => Just(Step::Unlock),
        2 => (0..8u64, prop::option::of(any::<u64>()))
            .prop_map(|(minutes, power)| Step::Restart { minutes, power }),
    ]
}

/// What should be.
struct Model {
    running: Tree,
    candidate: Tree,
    /// Until when a commit waits to be confirmed, and what everything falls back to.
    pending: Option<(Instant, Tree)>,
    /// All that was ever committed, oldest first.
    committed: Vec<Tree>,
}

impl Model {
    fn run(&mut self, tree: Tree) {
        if self.candidate == self.running {
            self.candidate = tree.clone();
        }
        self.running = tree.clone();
        self.committed.push(tree);
    }

    fn pass_time(&mut self, now: Instant) {
        if let Some((_, tree)) = self.pending.take_if(|(due, _)| *due <= now) {
            self.run(tree);
        }
    }

    fn is_good(&self) -> bool {
        schema().check(&self.candidate, None).is_ok()
    }

    /// The components that a commit concerns.
    fn concerned(&self) -> Vec<&'static str> {
        let differs = |name: &&&str| self.running.part(name) != self.candidate.part(name);
        COMPONENTS.iter().filter(differs).copied().collect()
    }

    fn stays(&self, name: &str) -> bool {
        !self.candidate.part(name).is_empty()
    }
}

struct World {
    node: Node,
    model: Model,
}

impl World {
    fn new() -> Self {
        let mut node = Node::start(Disk::default(), Instant::ZERO, 0);
        node.ask(Action::Lock).unwrap();
        let empty = Tree::empty();
        let model = Model {
            running: empty.clone(),
            candidate: empty,
            pending: None,
            committed: Vec::new(),
        };
        Self { node, model }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Edit(index) => {
                let command = COMMANDS[*index];
                let expected = schema().edit(&self.model.candidate, command);
                let result = self.node.ask(edit(command));
                assert_eq!(result.is_ok(), expected.is_ok(), "{command}: {result:?}");
                if let Ok(tree) = expected {
                    self.model.candidate = tree;
                }
            }
            Step::Revert => {
                assert_eq!(self.node.ask(Action::Revert), Ok(Done::Edited));
                self.model.candidate = self.model.running.clone();
            }
            Step::Restore(back) => self.restore(*back),
            Step::Check => {
                let result = self.node.ask(Action::Check);
                assert_eq!(result.is_ok(), self.model.is_good(), "{result:?}");
            }
            Step::Commit { minutes, trouble } => self.commit(*minutes, *trouble),
            Step::Wait(minutes) => {
                self.node.wait(Duration::from_secs(60 * minutes));
                self.model.pass_time(self.node.now);
            }
            Step::Break => {
                let result = self.node.ask_as(ROOT, Action::Break);
                assert!(matches!(result, Some(Ok(Done::Broken { .. }))), "{result:?}");
                assert_eq!(self.node.ask_as(ROOT, Action::Unlock).map(|r| r.is_ok()), Some(true));
                self.lock_again();
            }
            Step::Unlock => {
                let discarded = self.model.candidate != self.model.running;
                assert_eq!(self.node.ask(Action::Unlock), Ok(Done::Unlocked { discarded }));
                self.lock_again();
            }
            Step::Restart { minutes, power } => self.restart(*minutes, *power),
        }
    }

    fn lock_again(&mut self) {
        assert_eq!(self.node.ask(Action::Lock), Ok(Done::Locked));
        self.model.candidate = self.model.running.clone();
    }

    fn restore(&mut self, back: usize) {
        let numbers: Vec<u64> =
            self.node.configuration.revisions().map(|revision| revision.number).collect();
        let Some(number) = numbers.get(back) else { return };
        self.node.ask(Action::Restore(*number)).unwrap();
        let from_newest = self.model.committed.len() - 1 - back;
        self.model.candidate = self.model.committed[from_newest].clone();
    }

    fn commit(&mut self, minutes: Option<u64>, trouble: Trouble) {
        let concerned = self.model.concerned();
        let hit = |index: usize| concerned.contains(&COMPONENTS[index]);
        let fails = match trouble {
            Trouble::None => false,
            // Who goes away is not asked beforehand.
            Trouble::Objects(index) => hit(index) && self.model.stays(COMPONENTS[index]),
            Trouble::Refuses(index) | Trouble::Silent(index) => hit(index),
            Trouble::Disk(_) => true,
        };
        self.arm(trouble);
        let action = minutes.map_or_else(commit, |minutes| commit_confirmed(60 * minutes));
        let before = self.node.now;
        let mut result = self.node.ask_as(1, action);
        // Each question to a silent component takes its time.
        for _ in 0..10 {
            if result.is_some() {
                break;
            }
            self.node.wait(Duration::from_secs(31));
            result = self.node.replies.pop_front();
        }
        // So does falling back, if that is due meanwhile.
        self.node.fall_back();
        self.disarm();
        let result = result.expect("it is answered in the end");
        let is_same = self.model.candidate == self.model.running;
        match (is_same, result) {
            (true, Ok(Done::Confirmed(_))) => {
                assert!(minutes.is_none() && self.model.pending.is_some());
                self.model.pending = None;
            }
            (true, Err(Refusal::NothingToCommit)) => {
                assert!(minutes.is_some() || self.model.pending.is_none());
            }
            (true, Err(Refusal::Disk(_))) => {
                assert!(matches!(trouble, Trouble::Disk(_)) && self.model.pending.is_some());
                // The old and the new file say the same but for the confirmation, which may count.
                self.node.ask(commit()).unwrap();
                self.model.pending = None;
            }
            (false, Ok(Done::Committed(_))) => {
                assert!(!fails && self.model.is_good());
                self.committed(before, minutes);
            }
            (false, Err(Refusal::Mistakes(_))) => assert!(!self.model.is_good()),
            (false, Err(refusal)) => assert!(fails, "{refusal}"),
            (_, other) => panic!("{other:?}"),
        }
        self.model.pass_time(self.node.now);
    }

    fn arm(&mut self, trouble: Trouble) {
        let name = |index: usize| vec![COMPONENTS[index].to_owned()];
        match trouble {
            Trouble::None => {}
            Trouble::Objects(index) => self.node.objecting = name(index),
            Trouble::Refuses(index) => self.node.refusing = name(index),
            Trouble::Silent(index) => self.node.silent = name(index),
            Trouble::Disk(request) => {
                let number = self.node.disk.requests + request;
                self.node.disk.failing = Some((number, DiskErrorKind::Full));
            }
        }
    }

    fn disarm(&mut self) {
        self.node.objecting.clear();
        self.node.refusing.clear();
        self.node.silent.clear();
        self.node.disk.failing = None;
    }

    fn committed(&mut self, at: Instant, minutes: Option<u64>) {
        let before = self.model.running.clone();
        let candidate = self.model.candidate.clone();
        self.model.run(candidate);
        let earlier = self.model.pending.take();
        self.model.pending = minutes.map(|minutes| {
            let back_to = earlier.map_or(before, |(_, tree)| tree);
            (at + Duration::from_secs(60 * minutes), back_to)
        });
    }

    fn restart(&mut self, minutes: u64, power: Option<u64>) {
        let now = self.node.now + Duration::from_secs(60 * minutes);
        let disk = self.node.disk.clone();
        let disk = power.map_or(disk.clone(), |seed| disk.after_power_cut(Loss::Some(seed)));
        self.node = Node::start(disk, now, 0);
        self.model.pass_time(now);
        // Edits were durable when they were answered, and so was the lock.
        let lock = self.node.configuration.transaction().lock();
        assert_eq!(lock.map(|lock| lock.who.session), Some(crate::node::ALICE));
    }

    fn assert_agrees(&self, step: &Step) {
        let transaction = self.node.configuration.transaction();
        assert_eq!(transaction.running(), &self.model.running, "what runs after {step:?}");
        assert_eq!(transaction.candidate(), &self.model.candidate, "the candidate after {step:?}");
        let is_pending = transaction.unconfirmed_until().is_some();
        assert_eq!(is_pending, self.model.pending.is_some(), "unconfirmed after {step:?}");
        self.node.assert_components_hold_what_runs();
        assert!(self.node.disk.revisions().len() <= KEEP + 2);
        assert_eq!(self.node.failed, None);
    }
}

/// At least so many; `PROPTEST_CASES` may ask for more.
fn cases() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(1000), ..default }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn sequences_agree_with_the_model(steps in prop::collection::vec(step(), 1..40)) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
            world.assert_agrees(step);
        }
    }
}
