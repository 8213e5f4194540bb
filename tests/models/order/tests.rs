use stateright::{Checker, HasDiscoveries, Model};

use super::{
    FENCE, ONE_HOLDER, ORDER,
    protocol::{Defect, Protocol},
};

/// Parameters with two messages, one holder, and no failures.
const CALM: Protocol = Protocol {
    messages: 2,
    holders: 1,
    per_key: 1,
    behind: 2,
    end: 0,
    attempts: 2,
    failures: 0,
    unreadable: 0,
    given_up: 0,
    acks_at_once: false,
    losses: 0,
    crashes: 0,
    defect: None,
};

/// One holder, whose messages are given back in every order. Initially, it receives more messages
/// than may wait behind another one. The messages that it gave back are leased again.
const FULL: Protocol = Protocol { messages: 3, behind: 1, failures: 1, ..CALM };
const ALONE: Protocol = Protocol { end: 1, attempts: 3, failures: 1, given_up: 1, acks_at_once: true, ..CALM };
const TWO_AT_ONCE: Protocol = Protocol { messages: 3, per_key: 2, behind: 1, ..CALM };
/// One of the messages is unreadable once, at any position of an answer.
const UNREADABLE: Protocol = Protocol { messages: 3, end: 1, unreadable: 1, acks_at_once: true, ..CALM };
/// A second holder follows the first one, which may crash.
const FOLLOWED: Protocol = Protocol { holders: 2, end: 3, crashes: 1, ..CALM };
const FAILED: Protocol = Protocol { end: 2, failures: 1, crashes: 0, acks_at_once: true, ..FOLLOWED };
/// An answer to the holder is lost.
const UNHEARD: Protocol = Protocol { end: 3, losses: 1, acks_at_once: true, ..CALM };

#[test]
fn messages_of_a_key_keep_order_and_none_is_lost() {
    // These parameters lead to 400 to 191,000 states each.
    for protocol in [FULL, ALONE, TWO_AT_ONCE, UNREADABLE, FOLLOWED, FAILED, UNHEARD] {
        let checked = protocol.checker().threads(2).spawn_bfs().join();
        checked.assert_properties();
        assert!(checked.unique_state_count() > 400, "{} states", checked.unique_state_count());
    }
}

#[test]
fn each_part_of_the_protocol_is_needed() {
    for (defect, protocol, broken) in [
        (Defect::NoFence, FOLLOWED, FENCE),
        (Defect::NothingGoesBack, ALONE, ORDER),
        (Defect::NoBar, ALONE, ORDER),
        (Defect::UnreadableIsPassed, UNREADABLE, ORDER),
        (Defect::KeyNotHeld, ALONE, ORDER),
        (Defect::HoldNotRenewed, FAILED, ONE_HOLDER),
        (Defect::LeavesLeases, FOLLOWED, ONE_HOLDER),
        (Defect::StaleList, Protocol { end: 3, failures: 0, ..FAILED }, ONE_HOLDER),
        (Defect::HoldCutShort, Protocol { end: 4, ..UNHEARD }, ONE_HOLDER),
        (Defect::SameNumber, UNHEARD, ORDER),
    ] {
        let protocol = Protocol { defect: Some(defect), ..protocol };
        let found = HasDiscoveries::AnyOf([broken].into());
        let checked = protocol.checker().threads(2).finish_when(found).spawn_bfs().join();
        assert!(checked.discovery(broken).is_some(), "{defect:?} breaks nothing");
    }
}
