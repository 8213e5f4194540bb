//! Messages by their ids, and pages of waiting, dead and archived messages.

use std::time::SystemTime;

use pyo3::{IntoPyObjectExt, prelude::*};
use trunkline::Due;

use crate::{
    draft::seconds,
    pages,
    pages::{Seen, list},
    queue::Queue,
    raw::Raw,
    reply::{Answered, Loop},
};

/// A due time as Python passes it.
#[derive(FromPyObject)]
enum Given {
    Seconds(f64),
    Time(SystemTime),
}

impl Given {
    fn due(self) -> PyResult<Due> {
        Ok(match self {
            Self::Seconds(delay) => seconds(delay)?.into(),
            Self::Time(time) => time.into(),
        })
    }
}

impl Queue {
    fn look<R: Send + 'static, F: Future<Output = Result<Vec<R>, trunkline::Error>> + Send + 'static>(
        &self,
        py: Python<'_>,
        bridge: &Loop<'_>,
        work: impl FnOnce(trunkline::Queue<Seen>) -> F,
        each: impl Fn(&Bound<'_, pyo3::types::PyDict>, R) -> PyResult<()> + Send + 'static,
    ) -> Answered {
        let seen = self.seen.clone();
        self.reply(py, bridge, |_| work(seen), move |py, all| list(py, all, each))
    }
}

#[pymethods]
impl Queue {
    #[pyo3(signature = (bridge, after, n))]
    fn dead_letters(&self, py: Python<'_>, bridge: Loop<'_>, after: i64, n: usize) -> Answered {
        self.look(py, &bridge, |queue| async move { queue.dead_letters(after, n).await }, pages::dead)
    }

    #[pyo3(signature = (bridge, after, n))]
    fn archived(&self, py: Python<'_>, bridge: Loop<'_>, after: i64, n: usize) -> Answered {
        self.look(py, &bridge, |queue| async move { queue.archived(after, n).await }, pages::archived)
    }

    #[pyo3(signature = (bridge, n))]
    fn peek(&self, py: Python<'_>, bridge: Loop<'_>, n: usize) -> Answered {
        self.look(py, &bridge, |queue| async move { queue.peek(n).await }, pages::peeked)
    }

    #[pyo3(signature = (bridge, id))]
    fn find(&self, py: Python<'_>, bridge: Loop<'_>, id: i64) -> Answered {
        let find = |queue: trunkline::Queue<Seen>| async move { Ok(queue.find(id).await?.into_iter().collect()) };
        self.look(py, &bridge, find, pages::found)
    }

    /// Replays the dead letters with these ids, or all with `None`.
    #[pyo3(signature = (bridge, ids))]
    fn replay(&self, py: Python<'_>, bridge: Loop<'_>, ids: Option<Vec<i64>>) -> Answered {
        let work = |queue: trunkline::Queue<Raw>| async move {
            match ids {
                Some(ids) => queue.replay(&ids).await,
                None => queue.replay_all().await,
            }
        };
        self.store(py, &bridge, work, |py, count| count.into_py_any(py))
    }

    /// Discards the dead letters with these ids, or all with `None`.
    #[pyo3(signature = (bridge, ids))]
    fn discard(&self, py: Python<'_>, bridge: Loop<'_>, ids: Option<Vec<i64>>) -> Answered {
        let work = |queue: trunkline::Queue<Raw>| async move {
            match ids {
                Some(ids) => queue.discard(&ids).await,
                None => queue.discard_all().await,
            }
        };
        self.reply(py, &bridge, work, |py, count| count.into_py_any(py))
    }

    #[pyo3(signature = (bridge, ids))]
    fn cancel(&self, py: Python<'_>, bridge: Loop<'_>, ids: Vec<i64>) -> Answered {
        self.reply(py, &bridge, |queue| async move { queue.cancel(&ids).await }, |py, ids| ids.into_py_any(py))
    }

    /// Makes messages due after a number of seconds, or at a given time.
    #[pyo3(signature = (bridge, ids, due))]
    fn reschedule(&self, py: Python<'_>, bridge: Loop<'_>, ids: Vec<i64>, due: Given) -> Answered {
        let due = due.due()?;
        let work = |queue: trunkline::Queue<Raw>| async move { queue.reschedule(&ids, due).await };
        self.reply(py, &bridge, work, |py, ids| ids.into_py_any(py))
    }
}
