use proptest::prelude::*;

use super::*;

fn name() -> impl Strategy<Value = Name> {
    "[a-z0-9][a-z0-9-]{0,31}".prop_map(|text| text.parse().unwrap())
}

fn limits() -> impl Strategy<Value = Limits> {
    let memory = prop::option::of(16_u64 << 20..=1 << 50);
    let weight = prop::option::of(1_u32..=10_000);
    let percent = prop::option::of(1_u32..=100_000);
    let threads = prop::option::of(1_u32..=4_096);
    let descriptors = prop::option::of(32_u32..=65_536);
    let nice = prop::option::of(0..=19);
    (memory, weight, percent, threads, descriptors, nice).prop_map(
        |(memory, processor_weight, processor_percent, threads, descriptors, nice)| Limits {
            memory,
            processor_weight,
            processor_percent,
            threads,
            descriptors,
            nice,
        },
    )
}

fn listener() -> impl Strategy<Value = ListenerSpec> {
    let kind = prop_oneof![Just(ListenerKind::Stream), Just(ListenerKind::Seqpacket)];
    let mode = (0_u32..512).prop_map(|mode| mode & 0o666);
    ("/run/weft/n/[a-zA-Z._-]{1,64}", kind, mode, prop::option::of("[a-z]{1,8}"))
        .prop_map(|(path, kind, mode, group)| ListenerSpec { path, kind, mode, group })
}

fn spec() -> impl Strategy<Value = Spec> {
    let arguments = prop::collection::vec("[^\\p{Cc}]{0,20}", 0..8);
    let listeners = prop::collection::vec(listener(), 0..4);
    let secret = any::<[u8; 32]>().prop_map(Secret::new);
    (name(), name(), arguments, limits(), listeners, secret).prop_map(
        |(instance, class, arguments, limits, listeners, secret)| Spec {
            instance,
            class,
            arguments,
            limits,
            listeners,
            secret,
        },
    )
}

fn request() -> impl Strategy<Value = Request> {
    let command = prop_oneof![
        spec().prop_map(Command::Start),
        (name(), 1..=64).prop_map(|(instance, number)| Command::Signal { instance, number }),
        (name(), 0_u32..=600_000)
            .prop_map(|(instance, grace_ms)| Command::Stop { instance, grace_ms }),
        prop::option::of(name()).prop_map(|after| Command::List { after }),
        (name(), proptest::option::of(name()))
            .prop_map(|(name, instance)| Command::Keep { name, instance }),
        (name(), name()).prop_map(|(name, instance)| Command::Give { name, instance }),
        name().prop_map(|name| Command::Drop { name }),
        Just(Command::Usage {}),
        (any::<bool>(), "[a-z ,]{0,40}").prop_map(|(ready, text)| Command::Status { ready, text }),
    ];
    (any::<u64>(), command).prop_map(|(id, command)| Request { id, command })
}

fn exit() -> impl Strategy<Value = Exit> {
    let number = || prop::option::of(any::<i32>());
    (number(), number(), any::<bool>(), prop::option::of(".{0,40}"))
        .prop_map(|(status, signal, core, cause)| Exit { status, signal, core, cause })
}

fn instance() -> impl Strategy<Value = Instance> {
    let state = prop_oneof![
        (any::<i32>(), any::<u64>(), any::<bool>())
            .prop_map(|(pid, since, stopping)| State::Running { pid, since, stopping }),
        (any::<i32>(), exit()).prop_map(|(pid, exit)| State::Ended { pid, exit }),
        ".{0,40}".prop_map(|error| State::Failed { error }),
    ];
    (spec(), prop::option::of(any::<u32>()), state).prop_map(|(spec, uid, state)| Instance {
        spec,
        uid,
        state,
    })
}

fn usage() -> impl Strategy<Value = Usage> {
    let numbers = (any::<i32>(), any::<Option<u32>>(), any::<u64>(), any::<u32>());
    (name(), numbers, any::<u64>(), any::<u64>()).prop_map(
        |(instance, numbers, memory, processor)| {
            let (pid, uid, since, restarts) = numbers;
            Usage { instance, pid, uid, since, restarts, memory, processor }
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    let kept =
        (name(), prop::option::of(name())).prop_map(|(name, instance)| Kept { name, instance });
    let listing = (
        prop::collection::vec(instance(), 0..4),
        any::<bool>(),
        prop::collection::vec(kept, 0..4),
        prop::collection::vec(".{0,40}", 0..4),
    )
        .prop_map(|(instances, more, kept, missing)| Listing {
            instances,
            more,
            kept,
            missing,
        });
    let outcome = prop_oneof![
        Just(Outcome::Done {}),
        listing.prop_map(Outcome::Listing),
        prop::collection::vec(usage(), 0..4).prop_map(Outcome::Usage),
        ".{0,40}".prop_map(|error| Outcome::Refused { error }),
    ];
    prop_oneof![
        (any::<u64>(), outcome).prop_map(|(id, outcome)| Message::Reply { id, outcome }),
        (name(), any::<i32>(), any::<Option<u32>>())
            .prop_map(|(instance, pid, uid)| Message::Started { instance, pid, uid }),
        (name(), any::<i32>(), exit()).prop_map(|(instance, pid, exit)| Message::Exited {
            instance,
            pid,
            exit
        }),
        (name(), ".{0,40}").prop_map(|(instance, error)| Message::Failed { instance, error }),
        Just(Message::Stopping {}),
    ]
}

proptest! {
    #[test]
    fn requests_are_read_as_they_were_written(request in request()) {
        let bytes = request.encode().unwrap();
        prop_assert_eq!(Request::decode(&bytes).unwrap(), request);
    }

    #[test]
    fn messages_are_read_as_they_were_written(message in message()) {
        let bytes = message.encode().unwrap();
        prop_assert_eq!(Message::decode(&bytes).unwrap(), message);
    }

    #[test]
    fn a_part_of_a_request_is_none(request in request(), cut in any::<prop::sample::Index>()) {
        let bytes = request.encode().unwrap();
        prop_assert!(Request::decode(&bytes[..cut.index(bytes.len())]).is_err());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = (Request::decode(&bytes), Message::decode(&bytes), id_of(&bytes));
    }

    #[test]
    fn any_change_of_a_request_is_read_without_a_panic(
        request in request(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = request.encode().unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(read) = Request::decode(&bytes) {
            prop_assert!(read.command.check().is_ok());
        }
    }
}

#[test]
fn the_json_is_as_documented() {
    let text = r#"{"id":7,"command":{"start":{
        "instance":"xia-1","class":"xia","arguments":["--quiet"],"limits":{"memory":268435456},
        "listeners":[{"path":"/run/weft/n/xia.sock","kind":"seqpacket","mode":432}],
        "secret":"0707070707070707070707070707070707070707070707070707070707070707"}}}"#;
    let request = Request::decode(text.as_bytes()).unwrap();
    let Command::Start(spec) = request.command else { panic!("{request:?}") };
    assert_eq!((spec.class.as_str(), spec.listeners[0].mode), ("xia", 0o660));
    assert_eq!(spec.secret, Secret::new([7; 32]));
    let list = Request { id: 1, command: Command::List { after: None } };
    assert_eq!(list.encode().unwrap(), br#"{"id":1,"command":{"list":{}}}"#);
    let started = Message::Started { instance: "xia-1".parse().unwrap(), pid: 5, uid: Some(7) };
    assert_eq!(started.encode().unwrap(), br#"{"started":{"instance":"xia-1","pid":5,"uid":7}}"#);
}

#[test]
fn what_is_unknown_or_out_of_bounds_is_named() {
    let spec = r#""instance":"a","class":"b","secret":"0707070707070707070707070707070707070707070707070707070707070707""#;
    let error = |command: &str| {
        let text = format!(r#"{{"id":1,"command":{command}}}"#);
        Request::decode(text.as_bytes()).unwrap_err().to_string()
    };
    let start = |more: &str| error(&format!(r#"{{"start":{{{spec}{more}}}}}"#));
    assert!(start(r#","uid":0"#).contains("unknown field `uid`"));
    assert!(start(r#","limits":{"cpus":1}"#).contains("unknown field `cpus`"));
    assert!(start(r#","limits":{"memory":1}"#).contains("memory, in bytes, is 1"));
    assert!(start(r#","arguments":["a\u0000b"]"#).contains("control character"));
    assert!(start(r#","arguments":["a\nb"]"#).contains("control character"));
    assert!(error(r#"{"reboot":{}}"#).contains("unknown variant `reboot`"));
    assert!(error(r#"{"keep":{"name":"A"}}"#).contains("`A` is no name"));
    let signal =
        |number: i32| error(&format!(r#"{{"signal":{{"instance":"a","number":{number}}}}}"#));
    assert!(signal(0).contains("signal is 0") && signal(65).contains("from 1 to 64"));
    assert!(error(r#"{"stop":{"instance":"a","grace_ms":600001}}"#).contains("600001"));
    let long = vec![b' '; LONGEST + 1];
    assert!(matches!(Request::decode(&long), Err(ProtocolError::TooLong(_))));
}

#[test]
fn an_exit_is_told_in_words() {
    let status = Exit { status: Some(3), ..Exit::default() };
    assert_eq!(status.to_string(), "ended with status 3");
    let cause = Some("it needed more memory than its limit".to_owned());
    let killed = Exit { signal: Some(9), core: true, cause, ..Exit::default() };
    assert_eq!(
        killed.to_string(),
        "was ended by SIGKILL and left a core dump: it needed more memory than its limit"
    );
    assert_eq!(Exit { signal: Some(40), ..Exit::default() }.to_string(), "was ended by signal 40");
}
