//! A case: the statements, the expected outcomes, and the intended differences from libpq.

use super::{
    answer::{Answer, Raw, Value, raw},
    typed::Known,
};

pub struct Case {
    pub name: String,
    pub steps: Vec<Step>,
}

pub enum Step {
    /// A statement in its own transaction.
    Run(Call),
    /// Groups of statements in one transaction. A transport that can pipeline sends a whole group
    /// before it awaits the first answer.
    Transaction(Vec<Vec<Call>>, End),
    /// A value of a type, as an SQL literal. It is read from the server, and sent back as a
    /// parameter.
    Value(Meant),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    Commit,
    Rollback,
}

pub struct Call {
    pub text: String,
    pub params: Vec<Value>,
    want: Want,
}

/// A value as SQL writes it, and optionally as a Rust value.
pub struct Meant {
    pub ty: &'static str,
    /// The literal. `None` is null.
    pub literal: Option<&'static str>,
    pub known: Option<Box<dyn Known>>,
}

#[derive(Debug)]
pub enum Want {
    /// The expected number of affected rows, without returned rows.
    Touched(u64),
    Rows(Vec<Vec<Value>>),
    /// A refusal with this code, whose text contains these words.
    Refused(&'static str, &'static str),
    /// A lost connection with this code.
    Lost(&'static str),
}

/// A configuration of the library.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Way {
    /// True if connections cache prepared statements.
    pub prepared: bool,
    /// True if the statements of a transaction are sent together, before the first answer is
    /// awaited.
    pub together: bool,
}

impl Way {
    pub const ALL: [Self; 4] = [
        Self { prepared: true, together: false },
        Self { prepared: false, together: false },
        Self { prepared: true, together: true },
        Self { prepared: false, together: true },
    ];

    pub fn name(self) -> &'static str {
        match (self.prepared, self.together) {
            (true, false) => "prepared",
            (false, false) => "unprepared",
            (true, true) => "prepared_together",
            (false, true) => "unprepared_together",
        }
    }
}

pub fn case(name: &str, steps: impl IntoIterator<Item = Step>) -> Case {
    Case { name: name.to_owned(), steps: steps.into_iter().collect() }
}

pub fn call(text: &str, params: impl IntoIterator<Item = Value>, want: Want) -> Call {
    Call { text: text.to_owned(), params: params.into_iter().collect(), want }
}

/// Returns a step with a single statement without parameters.
pub fn run(text: &str, want: Want) -> Step {
    Step::Run(call(text, [], want))
}

pub fn int4(number: i32) -> Value {
    raw(number.to_be_bytes())
}

pub fn int8(number: i64) -> Value {
    raw(number.to_be_bytes())
}

pub fn text(text: &str) -> Value {
    raw(text)
}

/// Expects one row with one value.
pub fn one(value: Value) -> Want {
    Want::Rows(vec![vec![value]])
}

impl Meant {
    /// Returns two statements: one returns the literal, and the other returns the first parameter
    /// next to the literal.
    pub fn texts(&self) -> [String; 2] {
        let ty = self.ty;
        let literal = self.literal.map_or("null".to_owned(), |text| format!("'{}'", text.replace('\'', "''")));
        [format!("select {literal}::{ty} as meant"), format!("select $1::{ty} as came, {literal}::{ty} as meant")]
    }

    /// Returns true if both statements were answered with the same bytes.
    fn is_met(&self, answers: &[Answer]) -> bool {
        let values: Vec<&Value> = answers.iter().flat_map(values).collect();
        matches!(values[..], [a, b, c] if a == b && b == c && a.is_none() == self.literal.is_none())
    }
}

/// Returns all values in an answer.
pub fn values(answer: &Answer) -> impl Iterator<Item = &Value> {
    let rows = if let Answer::Done { rows, .. } = answer { &rows[..] } else { &[] };
    rows.iter().flatten()
}

impl Call {
    pub fn bytes(&self) -> Vec<Option<&[u8]>> {
        self.params.iter().map(|param| param.as_ref().map(|Raw(bytes)| &bytes[..])).collect()
    }

    fn is_met(&self, answer: &Answer) -> bool {
        match (&self.want, answer) {
            (Want::Touched(count), Answer::Done { rows, affected, .. }) => rows.is_empty() && affected == count,
            (Want::Rows(wanted), Answer::Done { rows, affected, .. }) => {
                rows == wanted && *affected == rows.len() as u64
            }
            (Want::Refused(code, words), Answer::Refused { code: found, told }) => {
                code == found && told.contains(words)
            }
            (Want::Lost(code), Answer::Lost { code: found }) => Some(*code) == found.as_deref(),
            _ => false,
        }
    }
}

impl Case {
    /// Returns true if libpq received the expected outcomes.
    pub fn is_met(&self, told: &[Vec<Vec<Answer>>]) -> bool {
        self.steps.iter().zip(told).all(|(step, told)| match step {
            Step::Run(call) => call.is_met(&told[0][0]),
            Step::Value(meant) => meant.is_met(&told[0]),
            Step::Transaction(groups, end) => {
                let (ended, told) = told.split_last().expect("a transaction ends");
                let failed = told.iter().flatten().last().is_some_and(Answer::is_failure);
                let rolled_back = failed || *end == End::Rollback;
                groups.iter().flatten().zip(told.iter().flatten()).all(|(call, answer)| call.is_met(answer))
                    && ended[..] == [if rolled_back { Answer::RolledBack } else { Answer::Committed }]
            }
        })
    }

    /// Translates libpq's answers into the answers that a transport of the library must return.
    /// They differ in three intended ways:
    ///
    /// - The library reports a wrong number of parameters before it sends anything.
    /// - In a failed transaction, every later statement and the commit return the reason. The
    ///   server reports only that the transaction has failed.
    /// - A group that is sent together fails together. The statements before the failed one
    ///   therefore return the same failure.
    pub fn as_told(&self, way: Way, libpq: &[Vec<Vec<Answer>>]) -> Vec<Vec<Vec<Answer>>> {
        self.steps
            .iter()
            .zip(libpq)
            .map(|(step, told)| match step {
                Step::Transaction(_, end) => of_transaction(way, *end, told),
                Step::Run(_) | Step::Value(_) => told.iter().map(|group| group.iter().map(unsent).collect()).collect(),
            })
            .collect()
    }
}

fn unsent(answer: &Answer) -> Answer {
    match answer {
        Answer::Refused { code, told } if code == "08P01" && told.contains("bind message supplies") => {
            let number =
                |words: &str| told.split_once(words).and_then(|(_, rest)| rest.split(' ').next()).map(str::to_owned);
            let (supplied, wanted) = number("supplies ").zip(number("requires ")).expect("both are told");
            Answer::Unsent(format!("the statement has {wanted} parameters, not {supplied}"))
        }
        answer => answer.clone(),
    }
}

fn of_transaction(way: Way, end: End, told: &[Vec<Answer>]) -> Vec<Vec<Answer>> {
    let mut reason = None;
    let mut ours = Vec::new();
    for group in told {
        let failure = group.iter().find(|answer| answer.is_failure() && !answer.only_follows());
        if way.together {
            match failure {
                Some(failure) => {
                    reason = Some(failure.clone());
                    ours.push(vec![failure.clone(); group.len()]);
                    continue;
                }
                None if group.iter().all(|answer| matches!(answer, Answer::Done { .. })) => reason = None,
                None => {}
            }
        }
        let mut answers = Vec::new();
        for answer in group {
            answers.push(match answer {
                Answer::RolledBack if end == End::Commit => reason.clone().expect("a commit rolls back for a reason"),
                answer if answer.only_follows() => reason.clone().expect("it follows a failure"),
                answer => {
                    reason = answer.is_failure().then(|| answer.clone());
                    answer.clone()
                }
            });
        }
        ours.push(answers);
    }
    ours
}
