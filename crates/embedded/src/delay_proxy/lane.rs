use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The maximum weight of a lane. A lane below this weight accepts a piece of any size.
const BOUND: usize = 64 << 20;
/// The weight of an empty piece: a generous estimate of its slot in the queue and the allocator's
/// bookkeeping.
const EMPTY: usize = 128;

/// One direction of a connection, with the bytes in transit.
#[derive(Debug)]
pub(crate) struct Lane {
    state: Mutex<State>,
    room: Condvar,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<(Instant, Piece)>,
    weight: usize,
    closed: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Bytes(Vec<u8>),
    /// The sender has closed its side of the connection, but may still receive.
    End,
    /// The sender's connection is broken.
    Broken,
}

impl Piece {
    fn weight(&self) -> usize {
        EMPTY + if let Self::Bytes(bytes) = self { bytes.len() } else { 0 }
    }
}

impl Lane {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), room: Condvar::new(), filled: Condvar::new() }
    }

    /// Adds a piece once there is room. Returns false if the lane is closed.
    pub(crate) fn push(&self, due: Instant, piece: Piece) -> bool {
        let full = |state: &mut State| state.weight >= BOUND && !state.closed;
        let mut state = self.room.wait_while(self.locked(), full).unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return false;
        }
        // Wakes the reader only for the first piece. If the lane already has pieces, the reader is
        // waiting for the due time of the first one.
        if state.pieces.is_empty() {
            self.filled.notify_one();
        }
        state.weight += piece.weight();
        state.pieces.push_back((due, piece));
        true
    }

    /// Waits until a piece is due. Returns `None` if the lane is closed.
    pub(crate) fn pop(&self) -> Option<Piece> {
        let mut state = self.locked();
        while !state.closed {
            let now = Instant::now();
            state = match state.pieces.front() {
                Some((due, _)) if *due <= now => {
                    let (_, piece) = state.pieces.pop_front()?;
                    state.weight -= piece.weight();
                    self.room.notify_one();
                    return Some(piece);
                }
                Some((due, _)) => {
                    let wait = *due - now;
                    self.filled.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.filled.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        None
    }

    /// Discards all pieces and ends all waits.
    pub(crate) fn close(&self) {
        let mut state = self.locked();
        *state = State { closed: true, ..State::default() };
        self.room.notify_all();
        self.filled.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.locked().closed
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn pieces_keep_their_order_and_none_is_early() {
        let (lane, start) = (Lane::new(), Instant::now());
        let due = [3, 1, 0].map(|millis| start + Duration::from_millis(millis));
        for (at, due) in due.into_iter().enumerate() {
            assert!(lane.push(due, Piece::Bytes(vec![at as u8])));
        }
        assert_eq!(lane.pop(), Some(Piece::Bytes(vec![0])));
        assert!(Instant::now() >= due[0]);
        assert_eq!([lane.pop(), lane.pop()], [1, 2].map(|at| Some(Piece::Bytes(vec![at]))));
        assert_eq!(lane.locked().weight, 0);
    }

    #[test]
    fn a_full_lane_takes_more_once_something_has_left() {
        let (lane, now) = (Lane::new(), Instant::now());
        lane.push(now, Piece::Bytes(vec![0; BOUND]));
        std::thread::scope(|scope| {
            let pushed = scope.spawn(|| lane.push(now, Piece::End));
            assert!(matches!(lane.pop(), Some(Piece::Bytes(_))));
            assert!(pushed.join().unwrap());
        });
        assert_eq!(lane.pop(), Some(Piece::End));
    }

    #[test]
    fn closing_ends_every_wait() {
        let (lane, in_an_hour) = (Lane::new(), Instant::now() + Duration::from_secs(3600));
        lane.push(in_an_hour, Piece::Bytes(vec![0; BOUND]));
        std::thread::scope(|scope| {
            let pushed = scope.spawn(|| lane.push(in_an_hour, Piece::End));
            let popped = scope.spawn(|| lane.pop());
            lane.close();
            assert!(!pushed.join().unwrap());
            assert_eq!(popped.join().unwrap(), None);
        });
    }
}
