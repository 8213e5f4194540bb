//! Calls the user's function. Each message receives a result, even if the function panics or
//! exceeds its timeout.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};

use crate::{
    error::text_of,
    queue::message::{
        Message,
        failure::Failure,
        trace::{self, TraceContext},
    },
    worker::attempt::Attempt,
};

type Answers = Vec<Result<(), Failure>>;
type Call<T> = dyn Fn(Vec<Message<T>>, Option<Attempt<T>>) -> BoxFuture<'static, Answers> + Send + Sync;

pub(super) struct Handler<T> {
    /// The maximum number of messages per call.
    pub each: usize,
    /// True if the handler receives the attempt, through which it learns of a lost lease.
    pub is_told: bool,
    call: Box<Call<T>>,
}

impl<T: Send + 'static> Handler<T> {
    pub fn of_one<F, E>(handle: impl Fn(Message<T>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Failure> + 'static,
    {
        let call = move |messages: Vec<Message<T>>, _| one(messages.into_iter().next().map(&handle));
        Self { each: 1, is_told: false, call: Box::new(call) }
    }

    pub fn of_attempt<F, E>(handle: impl Fn(Message<T>, Attempt<T>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Failure> + 'static,
    {
        let call = move |messages: Vec<Message<T>>, attempt: Option<Attempt<T>>| {
            one(messages.into_iter().next().zip(attempt).map(|(message, attempt)| handle(message, attempt)))
        };
        Self { each: 1, is_told: true, call: Box::new(call) }
    }

    pub fn of_batches<F, E>(most: usize, handle: impl Fn(Vec<Message<T>>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Vec<Result<(), E>>> + Send + 'static,
        E: Into<Failure> + 'static,
    {
        let call = move |messages: Vec<Message<T>>, _| -> BoxFuture<'static, Answers> {
            let answers = handle(messages);
            Box::pin(async move { answers.await.into_iter().map(failed).collect() })
        };
        Self { each: most.max(1), is_told: false, call: Box::new(call) }
    }

    /// Returns a result for each message: the handler's own, or the same failure for all messages.
    pub async fn answers(
        &self,
        messages: Vec<Message<T>>,
        attempt: Option<Attempt<T>>,
        longest: Option<Duration>,
    ) -> Answers {
        let count = messages.len();
        let trace = TraceContext::of_all(&messages);
        let work = AssertUnwindSafe(async { trace::within(trace, || (self.call)(messages, attempt)).await });
        let work = work.catch_unwind();
        let outcome = match longest {
            Some(longest) => tokio::time::timeout(longest, work).await,
            None => Ok(work.await),
        };
        let failure = match (outcome, longest) {
            (Ok(Ok(answers)), _) if answers.len() == count => return answers,
            (Ok(Ok(answers)), _) => format!("the handler answered {} times for {count} messages", answers.len()),
            (Ok(Err(panic)), _) => format!("the handler panicked: {}", text_of(panic)),
            (Err(_), longest) => format!("the handler took longer than {:?}", longest.unwrap_or_default()),
        };
        vec![Err(Failure::retry(failure)); count]
    }
}

fn one<F, E>(answer: Option<F>) -> BoxFuture<'static, Answers>
where
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Into<Failure> + 'static,
{
    Box::pin(async move {
        match answer {
            Some(answer) => vec![failed(answer.await)],
            None => Vec::new(),
        }
    })
}

/// Converts one result. If the conversion of the user's error panics, only that message fails.
fn failed<E: Into<Failure>>(answer: Result<(), E>) -> Result<(), Failure> {
    answer.map_err(Failure::of)
}
