//! A database with queues in it.

use pyo3::{IntoPyObjectExt, prelude::*, types::PyDict};
use trunkline::Error;

use crate::{
    error::raised,
    pages::list,
    queue::Queue,
    raw::Raw,
    reply::{Answered, Loop, none, reply},
    runtime::Owner,
    schedule::scheduled,
    settings::{changes, described, limits, settings},
};

#[pyclass(frozen, module = "trunkline._trunkline")]
pub struct Db {
    db: trunkline::Db,
    owner: Owner,
}

impl Db {
    fn reply<R: Send + 'static, F: Future<Output = Result<R, Error>> + Send + 'static>(
        &self,
        py: Python<'_>,
        bridge: &Loop<'_>,
        work: impl FnOnce(trunkline::Db) -> F,
        make: impl FnOnce(Python<'_>, R) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Answered {
        self.owner.check()?;
        reply(py, bridge.as_deref(), work(self.db.clone()), make)
    }
}

#[pymethods]
impl Db {
    #[staticmethod]
    #[pyo3(signature = (bridge, url))]
    fn connect(py: Python<'_>, bridge: Loop<'_>, url: String) -> Answered {
        let owner = Owner::this();
        let connect = async move { trunkline::Db::connect(&url).await };
        reply(py, bridge.as_deref(), connect, move |py, db| Self { db, owner }.into_py_any(py))
    }

    #[getter]
    fn schema(&self) -> &str {
        self.db.schema_name()
    }

    #[pyo3(signature = (bridge))]
    fn migrate(&self, py: Python<'_>, bridge: Loop<'_>) -> Answered {
        self.reply(py, &bridge, |db| async move { db.migrate().await }, |py, steps| steps.into_py_any(py))
    }

    #[pyo3(signature = (bridge, name, payload, named))]
    fn create_queue(
        &self,
        py: Python<'_>,
        bridge: Loop<'_>,
        name: String,
        payload: &str,
        named: &Bound<'_, PyDict>,
    ) -> Answered {
        let settings = settings(payload, named)?;
        self.reply(py, &bridge, |db| async move { db.create_queue(&name, &settings).await }, none)
    }

    #[pyo3(signature = (bridge, name, named))]
    fn alter_queue(&self, py: Python<'_>, bridge: Loop<'_>, name: String, named: &Bound<'_, PyDict>) -> Answered {
        let changes = changes(named)?;
        self.reply(py, &bridge, |db| async move { db.alter_queue(&name, &changes).await }, none)
    }

    #[pyo3(signature = (bridge, name))]
    fn drop_queue(&self, py: Python<'_>, bridge: Loop<'_>, name: String) -> Answered {
        self.reply(py, &bridge, |db| async move { db.drop_queue(&name).await }, none)
    }

    #[pyo3(signature = (bridge, name))]
    fn pause_queue(&self, py: Python<'_>, bridge: Loop<'_>, name: String) -> Answered {
        self.reply(py, &bridge, |db| async move { db.pause_queue(&name).await }, none)
    }

    #[pyo3(signature = (bridge, name))]
    fn resume_queue(&self, py: Python<'_>, bridge: Loop<'_>, name: String) -> Answered {
        self.reply(py, &bridge, |db| async move { db.resume_queue(&name).await }, none)
    }

    #[pyo3(signature = (bridge, name, max_leased, of_all, of_keys))]
    fn limit_queue(
        &self,
        py: Python<'_>,
        bridge: Loop<'_>,
        name: String,
        max_leased: Option<u32>,
        of_all: (Option<f64>, Option<u32>),
        of_keys: (Option<f64>, Option<u32>),
    ) -> Answered {
        let limits = limits(max_leased, of_all, of_keys);
        self.reply(py, &bridge, |db| async move { db.limit_queue(&name, &limits).await }, none)
    }

    #[pyo3(signature = (bridge))]
    fn list_queues(&self, py: Python<'_>, bridge: Loop<'_>) -> Answered {
        self.reply(py, &bridge, |db| async move { db.list_queues().await }, |py, all| list(py, all, described))
    }

    #[pyo3(signature = (bridge, name))]
    fn describe_queue(&self, py: Python<'_>, bridge: Loop<'_>, name: String) -> Answered {
        let work = |db: trunkline::Db| async move { db.describe_queue(&name).await };
        self.reply(py, &bridge, work, |py, one| list(py, vec![one], described))
    }

    #[pyo3(signature = (bridge, name))]
    fn queue(&self, py: Python<'_>, bridge: Loop<'_>, name: String) -> Answered {
        let owner = self.owner;
        let work = |db: trunkline::Db| async move {
            let queue = db.queue::<Raw>(&name).await?;
            Ok((queue, db.queue(&name).await?))
        };
        self.reply(py, &bridge, work, move |py, (queue, seen)| Queue { queue, seen, owner }.into_py_any(py))
    }

    #[pyo3(signature = (bridge))]
    fn schedules(&self, py: Python<'_>, bridge: Loop<'_>) -> Answered {
        self.reply(py, &bridge, |db| async move { db.schedules().await }, |py, all| list(py, all, scheduled))
    }

    #[pyo3(signature = (bridge, name))]
    fn pause_schedule(&self, py: Python<'_>, bridge: Loop<'_>, name: String) -> Answered {
        self.reply(py, &bridge, |db| async move { db.pause_schedule(&name).await }, none)
    }

    #[pyo3(signature = (bridge, name))]
    fn resume_schedule(&self, py: Python<'_>, bridge: Loop<'_>, name: String) -> Answered {
        self.reply(py, &bridge, |db| async move { db.resume_schedule(&name).await }, none)
    }

    #[pyo3(signature = (bridge, name))]
    fn drop_schedule(&self, py: Python<'_>, bridge: Loop<'_>, name: String) -> Answered {
        self.reply(py, &bridge, |db| async move { db.drop_schedule(&name).await }, none)
    }

    #[pyo3(signature = (bridge, name))]
    fn fire_schedule(&self, py: Python<'_>, bridge: Loop<'_>, name: String) -> Answered {
        self.reply(py, &bridge, |db| async move { db.fire_schedule(&name).await }, |py, id| id.into_py_any(py))
    }
}

/// Returns the schema that a connection to this address would use.
#[pyfunction]
pub fn schema_of(py: Python<'_>, url: &str) -> PyResult<String> {
    trunkline::Db::schema_of(url).map_err(|error| raised(py, &error))
}
