//! A model of the announcement. It tries every order of the steps of a few producers and one
//! listening consumer. The real [`Announced`] decides when the consumer relies on notifications.

use stateright::{Checker, HasDiscoveries, Model, Property};

use super::Announced;

#[derive(Debug, Clone)]
struct Protocol {
    producers: usize,
    defect: Option<Defect>,
}

/// Variants of the protocol, each without one of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    /// The consumer relies on notifications although older transactions are still running.
    NoWait,
    /// The consumer lists the transactions before it announces itself.
    ListFirst,
    /// A producer asks before its transaction has an id.
    AskFirst,
    /// The consumer does not probe again once it relies on notifications.
    NoLook,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    producers: Vec<Producer>,
    consumer: Consumer,
    is_announced: bool,
    /// The listed transactions that have not ended.
    unaware: Vec<usize>,
    /// True if the consumer is about to dequeue.
    is_rung: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Producer {
    Idle,
    /// The transaction is open. It may have an id, and it may have asked whether to notify.
    Open {
        has_id: bool,
        notifies: Option<bool>,
    },
    Committed,
    /// The message was dequeued, or the transaction was rolled back.
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Consumer {
    Awake,
    /// The consumer listens, and has either announced itself or listed the transactions, but not
    /// both.
    Half,
    /// The consumer has announced itself and listed the transactions. It polls until these have
    /// ended.
    Waits,
    /// The consumer sends nothing until a notification arrives.
    Sleeps,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Id(usize),
    Ask(usize),
    Commit(usize),
    RollBack(usize),
    Announce,
    List,
    Check,
    Dequeue,
    /// The consumer stops listening, or its session ends.
    Withdraw,
}

impl State {
    fn running(&self) -> Vec<usize> {
        let has_id = |at: &usize| matches!(self.producers[*at], Producer::Open { has_id: true, .. });
        (0..self.producers.len()).filter(has_id).collect()
    }

    fn check(&mut self, protocol: &Protocol) {
        let names = |transactions: &[usize]| transactions.iter().map(ToString::to_string).collect::<Vec<_>>();
        let channel = ["channel".to_owned()];
        let mut announced = Announced::default();
        announced.add(&channel, names(&self.unaware));
        announced.ended(&names(&self.running()));
        self.unaware.retain(|_| announced.is_waiting());
        if !announced.awaits(&channel[0]) || protocol.defect == Some(Defect::NoWait) {
            self.consumer = Consumer::Sleeps;
            self.unaware.clear();
            self.is_rung |= protocol.defect != Some(Defect::NoLook);
        }
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let producers = vec![Producer::Idle; self.producers];
        let (consumer, unaware) = (Consumer::Awake, Vec::new());
        vec![State { producers, consumer, is_announced: false, unaware, is_rung: false }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let ask_first = self.defect == Some(Defect::AskFirst);
        for (at, producer) in state.producers.iter().enumerate() {
            match *producer {
                Producer::Idle if ask_first => steps.push(Step::Ask(at)),
                Producer::Idle | Producer::Open { has_id: false, .. } => steps.push(Step::Id(at)),
                Producer::Open { notifies: None, .. } => steps.extend([Step::Ask(at), Step::RollBack(at)]),
                Producer::Open { .. } => steps.extend([Step::Commit(at), Step::RollBack(at)]),
                Producer::Committed | Producer::Gone => {}
            }
        }
        let list_first = self.defect == Some(Defect::ListFirst);
        match state.consumer {
            Consumer::Awake if list_first => steps.push(Step::List),
            Consumer::Awake => steps.push(Step::Announce),
            Consumer::Half if list_first => steps.push(Step::Announce),
            Consumer::Half => steps.push(Step::List),
            Consumer::Waits => steps.extend([Step::Check, Step::Withdraw]),
            Consumer::Sleeps => steps.push(Step::Withdraw),
        }
        if state.is_rung || state.consumer != Consumer::Sleeps {
            steps.push(Step::Dequeue);
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        let then = if state.consumer == Consumer::Awake { Consumer::Half } else { Consumer::Waits };
        match step {
            Step::Id(at) => {
                let asked = if let Producer::Open { notifies, .. } = state.producers[at] { notifies } else { None };
                state.producers[at] = Producer::Open { has_id: true, notifies: asked };
            }
            Step::Ask(at) => {
                let has_id = matches!(state.producers[at], Producer::Open { has_id: true, .. });
                state.producers[at] = Producer::Open { has_id, notifies: Some(state.is_announced) };
            }
            Step::Commit(at) => {
                state.is_rung |= matches!(state.producers[at], Producer::Open { notifies: Some(true), .. });
                state.producers[at] = Producer::Committed;
            }
            Step::RollBack(at) => state.producers[at] = Producer::Gone,
            Step::Announce => (state.is_announced, state.consumer) = (true, then),
            Step::List => (state.unaware, state.consumer) = (state.running(), then),
            Step::Check => state.check(self),
            Step::Dequeue => {
                state.is_rung = false;
                for producer in &mut state.producers {
                    if *producer == Producer::Committed {
                        *producer = Producer::Gone;
                    }
                }
            }
            Step::Withdraw => {
                (state.is_announced, state.consumer) = (false, Consumer::Awake);
                state.unaware.clear();
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(LOST, |_, state: &State| {
                let sleeps = state.consumer == Consumer::Sleeps && !state.is_rung;
                !sleeps || !state.producers.contains(&Producer::Committed)
            }),
            Property::sometimes("the consumer sleeps beside a transaction", |_, state: &State| {
                state.consumer == Consumer::Sleeps && !state.running().is_empty()
            }),
            Property::sometimes("the consumer waits for a transaction", |_, state: &State| {
                state.consumer == Consumer::Waits && !state.unaware.is_empty()
            }),
        ]
    }
}

const LOST: &str = "no consumer sleeps while a message waits";

#[test]
fn no_consumer_sleeps_while_a_message_waits_in_any_order() {
    let checked = Protocol { producers: 4, defect: None }.checker().threads(2).spawn_bfs().join();
    checked.assert_properties();
    assert!(checked.unique_state_count() > 5_000, "{} states", checked.unique_state_count());
}

#[test]
fn each_part_of_the_announcement_is_needed() {
    for defect in [Defect::NoWait, Defect::ListFirst, Defect::AskFirst, Defect::NoLook] {
        let protocol = Protocol { producers: 2, defect: Some(defect) };
        let checked = protocol.checker().finish_when(HasDiscoveries::AnyOf([LOST].into())).spawn_bfs().join();
        assert!(checked.discovery(LOST).is_some(), "{defect:?} loses no wake-up");
    }
}
