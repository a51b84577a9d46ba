//! State as bytes: one tag for the kind of state and its format, then the numbers, little-endian.
//!
//! The bytes outlive the code that wrote them, since a proxy keeps shared data over an update of
//! the module. A format is therefore never changed, only added under a new tag.
//!
//! | tag | state | numbers |
//! |---|---|---|
//! | 1 | debt | T in µs, r in units |
//! | 2 | window | start in µs, count of the window before, count of this one |
//! | 3 | log | for each charge: time in µs, cost |
//! | 4 | permits | for each: id, until in µs, cost |

use crate::{
    limiter::{
        State,
        concurrency::{Permit, PermitState},
        debt::DebtState,
        sliding_log::{Charge, LogState},
        window::WindowState,
    },
    units::Instant,
};
use alloc::vec::Vec;

const DEBT: u8 = 1;
const WINDOW: u8 = 2;
const LOG: u8 = 3;
const PERMITS: u8 = 4;

/// A state as bytes; that of a key never seen is no bytes.
#[must_use]
pub fn encode(state: &State) -> Vec<u8> {
    match state {
        State::None => Vec::new(),
        State::Debt(debt) => numbers(DEBT, <[u64; 2]>::from(debt.to_parts())),
        State::Window(window) => numbers(WINDOW, <[u64; 3]>::from(window.to_parts())),
        State::Log(log) => {
            numbers(LOG, log.charges().iter().flat_map(|c| [c.at.as_micros(), c.cost]))
        }
        State::Permits(held) => numbers(
            PERMITS,
            held.permits().iter().flat_map(|p| [p.id, p.until.as_micros(), p.cost]),
        ),
    }
}

/// A state from bytes; `None` for any bytes that [`encode`] cannot have written.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<State> {
    let Some((&tag, numbers)) = bytes.split_first() else { return Some(State::None) };
    let (numbers, []) = numbers.as_chunks::<8>() else { return None };
    let numbers: Vec<u64> = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    let state = match (tag, numbers.as_slice()) {
        (DEBT, [drained_at, remainder]) => {
            State::Debt(DebtState::from_parts(*drained_at, *remainder)?)
        }
        (WINDOW, [start, previous, current]) => {
            State::Window(WindowState::from_parts(*start, *previous, *current)?)
        }
        (LOG, numbers) => State::Log(decode_log(numbers)?),
        (PERMITS, numbers) => State::Permits(decode_permits(numbers)?),
        _ => return None,
    };
    // What is in another order, or out of range and so was changed in reading, was not written here.
    (encode(&state) == bytes).then_some(state)
}

fn decode_log(numbers: &[u64]) -> Option<LogState> {
    let (charges, []) = numbers.as_chunks() else { return None };
    let charge = |[at, cost]: &[u64; 2]| Charge { at: Instant::from_micros(*at), cost: *cost };
    LogState::from_charges(charges.iter().map(charge).collect())
}

fn decode_permits(numbers: &[u64]) -> Option<PermitState> {
    let (permits, []) = numbers.as_chunks() else { return None };
    let permit = |[id, until, cost]: &[u64; 3]| Permit {
        id: *id,
        until: Instant::from_micros(*until),
        cost: *cost,
    };
    PermitState::from_permits(permits.iter().map(permit).collect())
}

fn numbers(tag: u8, numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut bytes = alloc::vec![tag];
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::prelude::rust_2024::*;

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    #[test]
    fn the_format_of_every_state_is_fixed() {
        let n = |n: u8| [n, 0, 0, 0, 0, 0, 0, 0];
        let charge = |micros, cost| Charge { at: at(micros), cost };
        let permit = |id, micros, cost| Permit { id, until: at(micros), cost };
        for (state, bytes) in [
            (State::None, vec![]),
            (State::Debt(DebtState::from_parts(5, 6).unwrap()), [&[1][..], &n(5), &n(6)].concat()),
            (
                State::Window(WindowState::from_parts(5, 6, 7).unwrap()),
                [&[2][..], &n(5), &n(6), &n(7)].concat(),
            ),
            (
                State::Log(LogState::from_charges(vec![charge(6, 1), charge(5, 2)]).unwrap()),
                [&[3][..], &n(5), &n(2), &n(6), &n(1)].concat(),
            ),
            (
                State::Permits(PermitState::from_permits(vec![permit(9, 5, 1)]).unwrap()),
                [&[4][..], &n(9), &n(5), &n(1)].concat(),
            ),
        ] {
            assert_eq!(encode(&state), bytes);
            assert_eq!(decode(&bytes), Some(state));
        }
    }

    #[test]
    fn another_tag_length_or_range_is_no_state() {
        let debt = encode(&State::Debt(DebtState::from_parts(5, 5).unwrap()));
        for bytes in [&debt[..16], &[&debt[..], &[0]].concat(), &[9; 17], &[0xff; 17], &[5]] {
            assert_eq!(decode(bytes), None, "{bytes:?}");
        }
        assert_eq!(decode(&[&[1][..], &[0xff; 16]].concat()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_decode_to_nothing_or_to_what_encodes_back(tag in 0..6_u8, bytes: Vec<u8>) {
            let bytes = [&[tag][..], &bytes].concat();
            if let Some(state) = decode(&bytes) {
                prop_assert_eq!(encode(&state), bytes);
            }
        }
    }
}
