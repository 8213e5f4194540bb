//! A model of the batcher. It tries every order of steps on the real [`Batcher`], up to a given
//! length: calls join, statements start and end, and permits are dropped.

use std::{cell::RefCell, collections::BTreeSet, rc::Rc};

use super::*;

/// A call of the model. It stays open until its number is in one of the sets.
#[derive(Debug)]
struct Call(usize);

/// The outcomes of the calls.
#[derive(Debug, Default, PartialEq)]
struct Calls {
    served: BTreeSet<usize>,
    failed: BTreeSet<usize>,
}

struct Waiters(Vec<Call>, Rc<RefCell<Calls>>);

impl Waiting for Waiters {
    type Call = (Call, Rc<RefCell<Calls>>);
    type Work = Vec<Call>;
    const STATEMENTS: usize = 2;

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn deserve_another(&self, _: &Running) -> bool {
        self.0.len() > 1
    }

    /// Limits a statement to two calls, so that some calls have to wait.
    fn next(&mut self, running: &Running) -> Option<(Vec<Call>, usize)> {
        assert!((1..=Self::STATEMENTS).contains(&running.statements));
        let calls: Vec<Call> = self.0.drain(..self.0.len().min(2)).collect();
        let count = calls.len();
        (count > 0).then_some((calls, count))
    }

    fn abandoned(&mut self) -> Vec<Self::Call> {
        self.0.drain(..).map(|call| (call, self.1.clone())).collect()
    }

    fn fail((call, calls): Self::Call) {
        assert!(calls.borrow_mut().failed.insert(call.0), "failed once");
    }
}

/// A permit, and the calls in the statement that it runs.
struct Task(Permit<Waiters>, Vec<Call>);

#[derive(Debug, Clone, Copy)]
enum Step {
    Join,
    /// The statement of a task ends, if the task runs one. The next statement starts.
    Next(usize),
    /// A task is dropped, together with the calls of its statement.
    Drop(usize),
}

const STEPS: [Step; 5] = [Step::Join, Step::Next(0), Step::Next(1), Step::Drop(0), Step::Drop(1)];
const LENGTH: usize = 8;

/// Runs the steps. Returns `None` if a step names a task that does not exist.
fn run(steps: &[Step]) -> Option<()> {
    let calls = Rc::new(RefCell::new(Calls::default()));
    let batcher = Batcher::new(Waiters(Vec::new(), calls.clone()));
    let (mut tasks, mut joined): (Vec<Task>, _) = (Vec::new(), 0);
    for step in steps {
        match *step {
            Step::Join => {
                let permit = batcher.join(|waiting| waiting.0.push(Call(joined)));
                joined += 1;
                tasks.extend(permit.map(|permit| Task(permit, Vec::new())));
            }
            Step::Next(nr) => {
                let Task(permit, running) = tasks.get_mut(nr)?;
                calls.borrow_mut().served.extend(running.drain(..).map(|call| call.0));
                match permit.next() {
                    Some(work) => *running = work,
                    None => drop(tasks.remove(nr)),
                }
            }
            Step::Drop(nr) => {
                let Task(permit, running) = (nr < tasks.len()).then(|| tasks.remove(nr))?;
                calls.borrow_mut().failed.extend(running.iter().map(|call| call.0));
                drop(permit);
            }
        }
        let state = batcher.state();
        let (calls, waiting) = (calls.borrow(), state.waiting.0.len());
        let running: usize = tasks.iter().map(|Task(_, running)| running.len()).sum();
        assert_eq!(joined, calls.served.len() + calls.failed.len() + waiting + running, "each call is in one place");
        assert!(calls.served.is_disjoint(&calls.failed));
        assert_eq!((state.running.statements, state.running.messages), (tasks.len(), running), "counts go down");
        assert!(waiting == 0 || !tasks.is_empty(), "a call waits, and no task is there to serve it");
    }
    Some(())
}

#[test]
fn calls_are_answered_in_every_order_of_steps() {
    let mut tried = 0;
    for mut nr in 0..STEPS.len().pow(LENGTH as u32) {
        let steps: [Step; LENGTH] = std::array::from_fn(|_| {
            let step = STEPS[nr % STEPS.len()];
            nr /= STEPS.len();
            step
        });
        tried += usize::from(run(&steps).is_some());
    }
    assert!(tried > 3_000, "{tried}");
}
