//! Runs the program in the kernel on single packets (BPF_PROG_TEST_RUN), without any interface.

use super::*;

#[path = "../../../tests/support/privileges.rs"]
mod privileges;

const SHOT: u32 = 2;
const UNSPEC: u32 = u32::MAX;

/// Loads the program, or says why this test cannot run here. Fails where it should be possible.
fn load_or_explain(sequence: LossSequence) -> Option<Program> {
    let excused = |error: &ProgramError| {
        matches!(error, ProgramError::NotBuilt { .. } | ProgramError::NotSupported { .. })
    };
    if !privileges::can_run(crate::probe(), excused) {
        return None;
    }
    let mut program = load().unwrap();
    program.state_mut().set_sequence(sequence).unwrap();
    Some(program)
}

/// Passes one packet through the program as often as `repeat` says; returns the last verdict.
fn run(program: &Program, repeat: u32) -> u32 {
    let (verdict, _) = sys::xdp::test_run(program.fd(), &[0; 64], repeat, &mut []).unwrap();
    verdict
}

fn percent(percent: f64) -> LossProbability {
    LossProbability::from_fraction(percent / 100.0).unwrap()
}

#[test]
fn each_verdict_is_the_one_that_the_sequence_predicts() {
    for (seed, probability) in
        [(0, percent(1.0)), (1, percent(50.0)), (u64::MAX, percent(99.0)), (7, percent(0.1))]
    {
        let sequence = LossSequence::new(seed, probability);
        let Some(program) = load_or_explain(sequence) else { return };
        for n in 0..2_000 {
            let expected = if sequence.drops(n) { SHOT } else { UNSPEC };
            assert_eq!(run(&program, 1), expected, "packet {n} of {sequence:?}");
        }
    }
}

#[test]
fn counters_agree_with_the_sequence() {
    let sequence = LossSequence::new(42, percent(3.0));
    let Some(program) = load_or_explain(sequence) else { return };
    run(&program, 100_000);
    let dropped = (0..100_000).filter(|&n| sequence.drops(n)).count() as u64;
    let expected = LossStatistics { seen: 100_000, dropped };
    assert_eq!(program.into_state().statistics().unwrap(), expected);
}

#[test]
fn never_and_always_have_no_exception_in_the_kernel() {
    for (probability, dropped) in [(LossProbability::NEVER, 0), (LossProbability::ALWAYS, 100_000)]
    {
        let Some(program) = load_or_explain(LossSequence::new(3, probability)) else { return };
        run(&program, 100_000);
        let expected = LossStatistics { seen: 100_000, dropped };
        assert_eq!(program.into_state().statistics().unwrap(), expected);
    }
}

#[test]
fn the_configuration_is_read_back() {
    let sequence = LossSequence::new(u64::MAX - 1, percent(12.345_678_9));
    let Some(program) = load_or_explain(sequence) else { return };
    assert_eq!(program.into_state().sequence().unwrap(), sequence);
}
