//! Compares the messages that were sent at one end with those that arrived at the other, for every
//! broker and both directions.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The messages that were sent. Each key's bodies are `KEY NUMBER`, with increasing numbers.
#[derive(Debug, Default, Clone)]
pub struct Sent {
    last: BTreeMap<String, u64>,
    /// Bodies that must arrive.
    sure: BTreeSet<String>,
    /// Bodies that may arrive, because their outcome is unknown.
    unsure: BTreeSet<String>,
}

impl Sent {
    /// Returns the next body of a key, to be sent. Afterwards the caller marks it as
    /// [sure](Self::is_in) or [unsure](Self::may_be_in).
    pub fn next(&mut self, key: &str) -> String {
        let last = self.last.entry(key.to_owned()).or_default();
        *last += 1;
        format!("{key} {last}")
    }

    pub fn is_in(&mut self, body: String) {
        self.sure.insert(body);
    }

    pub fn may_be_in(&mut self, body: String) {
        self.unsure.insert(body);
    }

    /// Returns the number of bodies that must arrive.
    pub fn sure(&self) -> usize {
        self.sure.len()
    }

    /// Compares the messages that arrived with those that were sent. `arrived` is in the order of
    /// arrival, with ids if the broker has them.
    pub fn against(&self, arrived: &[Arrived]) -> Verdict {
        let mut verdict = Verdict::default();
        let mut seen: HashMap<&str, Option<&str>> = HashMap::new();
        let mut ids: HashMap<&str, &str> = HashMap::new();
        let mut highest: HashMap<&str, u64> = HashMap::new();
        for Arrived { body, id } in arrived {
            if !self.sure.contains(body) && !self.unsure.contains(body) {
                verdict.foreign.push(body.clone());
                continue;
            }
            if let Some(id) = id
                && ids.insert(id, body).is_some_and(|other| other != body)
            {
                verdict.mistaken.push(format!("{id} is two messages, {body} is one"));
            }
            if let Some(before) = seen.insert(body, id.as_deref()) {
                verdict.repeats.push(body.clone());
                if before != id.as_deref() {
                    verdict.mistaken.push(format!("{body} came as {before:?} and {id:?}"));
                }
                continue;
            }
            let (key, number) = body
                .rsplit_once(' ')
                .and_then(|(key, number)| Some((key, number.parse::<u64>().ok()?)))
                .expect("a body of ours");
            let highest = highest.entry(key).or_default();
            if number < *highest {
                verdict.disordered.push(format!("{body} after {key} {highest}"));
            }
            *highest = number.max(*highest);
        }
        verdict.lost = self.sure.iter().filter(|body| !seen.contains_key(body.as_str())).cloned().collect();
        verdict
    }
}

#[derive(Debug, Clone)]
pub struct Arrived {
    pub body: String,
    /// The `trunkline-id` of the message, if a relay carried it out of a queue.
    pub id: Option<String>,
}

#[derive(Debug, Default)]
pub struct Verdict {
    pub lost: Vec<String>,
    /// Bodies that no test has sent.
    pub foreign: Vec<String>,
    /// Bodies that arrived more than once.
    pub repeats: Vec<String>,
    /// Bodies whose first arrival followed a later body of the same key.
    pub disordered: Vec<String>,
    /// Ids that would make a consumer drop the wrong messages as duplicates.
    pub mistaken: Vec<String>,
}

impl Verdict {
    /// Checks a relay out of a queue: all messages arrive, the first arrivals of each key are in
    /// order, and repeats have the same ids.
    #[track_caller]
    pub fn at_least_once(&self) {
        let Self { lost, foreign, disordered, mistaken, .. } = self;
        assert!(
            lost.is_empty() && foreign.is_empty() && disordered.is_empty() && mistaken.is_empty(),
            "{}",
            self.shown()
        );
    }

    /// Checks a relay into a queue: the checks of `at_least_once`, and no duplicates.
    #[track_caller]
    pub fn exactly_once(&self) {
        self.at_least_once();
        assert!(self.repeats.is_empty(), "{}", self.shown());
    }

    fn shown(&self) -> String {
        let all = [
            ("lost", &self.lost),
            ("foreign", &self.foreign),
            ("repeats", &self.repeats),
            ("disordered", &self.disordered),
            ("mistaken", &self.mistaken),
        ];
        let show =
            |(name, some): (&str, &Vec<String>)| format!("{} {name}: {:?}\n", some.len(), &some[..some.len().min(8)]);
        all.into_iter().map(show).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent() -> Sent {
        let mut sent = Sent::default();
        for key in ["a", "b", "a", "a"] {
            let body = sent.next(key);
            sent.is_in(body);
        }
        let body = sent.next("b");
        sent.may_be_in(body);
        sent
    }

    fn verdict(bodies: &[&str]) -> Verdict {
        let arrived: Vec<_> =
            bodies.iter().map(|body| Arrived { body: (*body).to_owned(), id: Some(format!("id of {body}")) }).collect();
        sent().against(&arrived)
    }

    #[test]
    fn what_is_well_passes() {
        verdict(&["b 1", "a 1", "a 2", "a 3"]).exactly_once();
        verdict(&["a 1", "a 2", "b 1", "a 3", "b 2"]).exactly_once();
        let repeated = verdict(&["a 1", "a 2", "a 1", "a 2", "a 3", "b 1"]);
        repeated.at_least_once();
        assert_eq!(repeated.repeats, ["a 1", "a 2"]);
    }

    #[test]
    fn each_defect_is_found() {
        assert_eq!(verdict(&["a 1", "a 2", "a 3"]).lost, ["b 1"]);
        assert_eq!(verdict(&["a 1", "a 2", "a 3", "b 1", "c 1"]).foreign, ["c 1"]);
        assert_eq!(verdict(&["a 2", "a 1", "a 3", "b 1"]).disordered, ["a 1 after a 2"]);
        let twice = |first: &str, second: &str| {
            let one = |id: &str| Arrived { body: "a 1".to_owned(), id: Some(id.to_owned()) };
            sent().against(&[one(first), one(second)]).mistaken.len()
        };
        assert_eq!((twice("x", "y"), twice("x", "x")), (1, 0));
        let of = |body: &str| Arrived { body: body.to_owned(), id: Some("x".to_owned()) };
        assert_eq!(sent().against(&[of("a 1"), of("a 2")]).mistaken.len(), 1);
    }
}
