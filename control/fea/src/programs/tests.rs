//! The life of programs, with a kernel and a manager that are made up.

use weft_base::Token;
use weft_runtime::{Attached, ProgramReply, ProgramRequest};

use super::*;

/// The kernel and the manager: what they hold.
#[derive(Default)]
struct World {
    /// By the number of the attachment.
    attached: BTreeMap<u32, String>,
    kept: Vec<String>,
    last: u32,
    /// What the manager refuses to keep.
    refused: Option<&'static str>,
    /// Interfaces that the kernel refuses.
    bad: Option<&'static str>,
    log: Vec<String>,
}

impl World {
    /// Answers everything until nothing is asked any more.
    fn settle(&mut self, programs: &mut Programs, mut out: Vec<Output>) {
        while !out.is_empty() {
            for output in std::mem::take(&mut out) {
                match output {
                    Output::World(Action::Program { token, request }) => {
                        let result = self.kernel(request);
                        programs.answered(token, result, &mut out);
                    }
                    Output::Call(call) => {
                        let token = call.token;
                        let result = self.manager(call);
                        programs.replied(token, result, &mut out);
                    }
                    Output::World(Action::Report { line, .. }) => self.log.push(line),
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn attach(&mut self, at: String, program: Program) -> ProgramReply {
        self.last += 1;
        self.attached.insert(self.last, format!("{program} at {at}"));
        ProgramReply::Attached(Attached {
            attachment: self.last,
            id: self.last,
            interface: 1,
            direction: Direction::Ingress,
            program,
            link: Some(Handle::from_number(1)),
            state: Handle::from_number(2),
        })
    }

    fn kernel(&mut self, request: ProgramRequest) -> Result<ProgramReply, String> {
        match request {
            ProgramRequest::Attach { interface, .. } if Some(&*interface) == self.bad => {
                Err(format!("the kernel refuses {interface}"))
            }
            ProgramRequest::Attach { interface, direction, program } => {
                Ok(self.attach(format!("{interface} {direction}"), program))
            }
            ProgramRequest::Adopt { interface, link: Some(_), .. } => {
                let program = Program::loss(LossProbability::ALWAYS, 7);
                Ok(self.attach(format!("number {interface}"), program))
            }
            ProgramRequest::Adopt { .. } => Err("its link was not kept".to_owned()),
            ProgramRequest::Set { attachment, program } => {
                let own = self.attached.get_mut(&attachment).unwrap();
                let at = own.split(" at ").nth(1).unwrap().to_owned();
                *own = format!("{program} at {at}");
                Ok(ProgramReply::Done)
            }
            ProgramRequest::Detach { attachment } => {
                self.attached.remove(&attachment).unwrap();
                Ok(ProgramReply::Done)
            }
            ProgramRequest::List { .. } => {
                Ok(ProgramReply::Listed { found: Vec::new(), counters: Vec::new() })
            }
        }
    }

    fn manager(&mut self, call: weft_xrl::Call) -> Result<weft_xrl::Reply, XrlError> {
        let bytes = call.arguments.args.bytes();
        // The name is the only text; what follows it is no part of a name.
        let start = bytes.windows(5).position(|part| part == b"loss-").unwrap();
        let of_name =
            |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
        let name: Vec<u8> = bytes[start..].iter().copied().take_while(of_name).collect();
        let name = String::from_utf8(name).unwrap();
        let keeps = !call.arguments.handles.is_empty();
        if keeps && self.refused.is_some_and(|part| name.ends_with(part)) {
            return Err(XrlError::failed("no room"));
        }
        self.kept.retain(|other| *other != name);
        if keeps {
            self.kept.push(name);
        }
        Ok(weft_xrl::Reply::Arguments(weft_xrl::Encoded::default()))
    }

    fn configure(&mut self, programs: &mut Programs, wanted: Wanted) -> Result<(), String> {
        let mut out = Vec::new();
        programs.configure(wanted, &mut out);
        self.settle(programs, out);
        programs.take_outcome().expect("it is settled")
    }

    fn attached(&self) -> Vec<&str> {
        self.attached.values().map(String::as_str).collect()
    }
}

fn wanted(all: &[(u32, &str, u32, u64)]) -> Wanted {
    let entry = |(interface, name, percent, seed): &(u32, &str, u32, u64)| {
        let rate = LossProbability::from_parts_per_billion(percent * 10_000_000).unwrap();
        let program = Program::loss(rate, *seed);
        let key = Key { interface: *interface, direction: Direction::Ingress, program: "loss" };
        (key, ((*name).to_owned(), program))
    };
    all.iter().map(entry).collect()
}

#[test]
fn what_is_configured_is_attached_kept_changed_and_detached() {
    let (mut world, mut programs) = (World::default(), Programs::default());
    world.configure(&mut programs, wanted(&[(1, "a", 5, 7), (2, "b", 5, 7)])).unwrap();
    let both = ["loss rate 5% seed 7 at a ingress", "loss rate 5% seed 7 at b ingress"];
    assert_eq!(world.attached(), both);
    let kept = ["loss-1-in-c-map", "loss-1-in-c-link", "loss-2-in-c-map", "loss-2-in-c-link"];
    assert_eq!(world.kept, kept);
    // The rate changes in place; another seed is another sequence.
    world.configure(&mut programs, wanted(&[(1, "a", 6, 7), (2, "b", 5, 8)])).unwrap();
    assert_eq!(world.last, 3);
    let changed = ["loss rate 6% seed 7 at a ingress", "loss rate 5% seed 8 at b ingress"];
    assert_eq!(world.attached(), changed);
    world.configure(&mut programs, wanted(&[(1, "a", 6, 7), (2, "b", 5, 8)])).unwrap();
    assert_eq!(world.last, 3);
    world.configure(&mut programs, wanted(&[])).unwrap();
    assert!(world.attached.is_empty() && world.kept.is_empty());
}

#[test]
fn nothing_is_attached_that_is_not_kept() {
    for part in ["-map", "-link"] {
        let refused = Some(part);
        let (mut world, mut programs) =
            (World { refused, ..World::default() }, Programs::default());
        let error = world.configure(&mut programs, wanted(&[(1, "a", 5, 7)])).unwrap_err();
        assert!(error.contains("cannot be kept") && error.contains("no room"), "{error}");
        assert!(world.attached.is_empty() && world.kept.is_empty(), "{part}");
    }
}

#[test]
fn a_refusal_of_the_kernel_stops_the_rest_and_the_old_can_be_restored() {
    let (mut world, mut programs) =
        (World { bad: Some("b"), ..World::default() }, Programs::default());
    let old = || wanted(&[(3, "c", 5, 7)]);
    world.configure(&mut programs, old()).unwrap();
    let new = wanted(&[(1, "a", 5, 7), (2, "b", 5, 7), (3, "c", 5, 8)]);
    assert_eq!(world.configure(&mut programs, new).unwrap_err(), "the kernel refuses b");
    world.configure(&mut programs, old()).unwrap();
    assert_eq!(world.attached(), ["loss rate 5% seed 7 at c ingress"]);
    assert_eq!(world.last, 2, "the one that stays was left alone");
}

#[test]
fn what_was_kept_is_taken_over_once() {
    let (mut world, mut programs) = (World::default(), Programs::default());
    world.kept = ["loss-1-in-c-map", "loss-1-in-c-link", "loss-2-in-x-map", "loss-3-in-c-link"]
        .map(str::to_owned)
        .into();
    for name in &world.kept {
        programs.kept(format!("fea--{name}"), Handle::from_number(1));
    }
    let mut out = Vec::new();
    programs.registered(&mut out);
    world.settle(&mut programs, out);
    assert_eq!(world.attached(), ["loss rate 100% seed 7 at number 1"]);
    // Of the others something is missing.
    assert_eq!(world.kept, ["loss-1-in-c-map", "loss-1-in-c-link"]);
    assert!(world.log.iter().any(|line| line.contains("its link was not kept")), "{:?}", world.log);
    world.configure(&mut programs, wanted(&[(1, "a", 100, 7)])).unwrap();
    assert_eq!(world.last, 1, "it is not attached again");
    let mut out = Vec::new();
    programs.interface_gone(1, &mut out);
    world.settle(&mut programs, out);
    assert!(world.attached.is_empty() && world.kept.is_empty());
}

#[test]
fn a_strange_answer_changes_nothing() {
    let mut programs = Programs::default();
    let mut out = Vec::new();
    programs.configure(wanted(&[(1, "a", 5, 7)]), &mut out);
    assert_eq!(out.len(), 1);
    programs.answered(Token(77), Ok(ProgramReply::Done), &mut out);
    programs.replied(77, Err(XrlError::failed("no")), &mut out);
    assert!(out.len() == 1 && programs.take_outcome().is_none());
}
