//! The server: what it knows, and which path leads where.

use std::{io, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use tokio::net::TcpListener;
use trunkline::Db;

use super::{
    access::{Access, Guard, Role, Visitor},
    deeds, live, pages,
    pulse::Pulse,
    shield,
};
use crate::metrics::Metrics;

/// A console of one database.
#[derive(Debug)]
pub struct Console {
    db: Db,
    access: Access,
    token: Option<String>,
    read_only: bool,
    title: String,
}

/// What the pages know.
#[derive(Debug)]
pub struct Site {
    pub db: Db,
    pub guard: Guard,
    pub pulse: Pulse,
    pub metrics: Metrics,
    pub read_only: bool,
    /// The database's name, for people who have several.
    pub title: String,
}

impl Site {
    /// Whether a visitor may act; if not, why.
    pub async fn may_act(&self, visitor: &Visitor) -> Result<(), &'static str> {
        if self.read_only {
            return Err("the console was started with --read-only");
        }
        if visitor.role < Role::Operator {
            return Err("you are a viewer");
        }
        match super::statement::may_act(&self.db).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err("the console's Postgres role may not write trunkline.audit: grant it the rights of an operator")
            }
            Err(_) => Err("the database does not answer"),
        }
    }
}

impl Console {
    /// One that lets in whoever reaches it: see [`Console::access`].
    #[must_use]
    pub fn new(db: Db) -> Self {
        Self { db, access: Access::Anybody, token: None, read_only: false, title: String::new() }
    }

    /// Who is let in. With [`Access::Anybody`] it serves the loopback alone.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Lets in, as a viewer, whoever sends `Authorization: Bearer TOKEN`.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Nobody may act.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// What the pages call the database.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Whether it may listen there.
    ///
    /// # Errors
    /// The address can be reached from other machines, and nobody would be asked who they are.
    pub fn check(&self, address: SocketAddr) -> io::Result<()> {
        match self.access {
            Access::Anybody if !address.ip().is_loopback() => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{address} can be reached from other machines, and nobody would be asked who they are"),
            )),
            _ => Ok(()),
        }
    }

    /// Serves until `shutdown`, then ends what is under way.
    ///
    /// # Errors
    /// Those of [`Console::check`], and of the listener.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        self.check(listener.local_addr()?)?;
        let metrics = Metrics::new();
        let pulse = Pulse::begin(self.db.clone(), metrics.clone()).await;
        let guard = Guard::new(self.access, self.token);
        let site = Arc::new(Site { db: self.db, guard, pulse, metrics, read_only: self.read_only, title: self.title });
        let (end, ended) = tokio::sync::watch::channel(false);
        let app = router(Arc::clone(&site), ended).into_make_service_with_connect_info::<SocketAddr>();
        axum::serve(listener, app)
            .with_graceful_shutdown(async move {
                shutdown.await;
                let _ = end.send(true); // the pages' numbers move no more, and their connections end
            })
            .await
    }
}

fn router(site: Arc<Site>, ended: tokio::sync::watch::Receiver<bool>) -> Router {
    Router::new()
        .route("/", get(pages::overview))
        .route("/queues/{queue}", get(pages::queue))
        .route("/queues/{queue}/messages", get(pages::messages))
        .route("/queues/{queue}/messages/{id}", get(pages::message))
        .route("/queues/{queue}/dead", get(pages::dead))
        .route("/schedules", get(pages::schedules))
        .route("/doctor", get(pages::doctor))
        .route("/audit", get(pages::audit))
        .route("/live", get(move |state| async move { live::live(state, ended) }))
        .route("/act/ask", post(deeds::ask))
        .route("/act", post(deeds::act))
        .route("/login", get(pages::login).post(deeds::log_in))
        .route("/logout", post(deeds::log_out))
        .route("/healthz", get(pages::healthz))
        .route("/metrics", get(pages::metrics))
        .route(
            "/assets/style.css",
            get(|| async { asset("text/css; charset=utf-8", include_str!("../../assets/style.css")) }),
        )
        .route(
            "/assets/live.js",
            get(|| async { asset("text/javascript; charset=utf-8", include_str!("../../assets/live.js")) }),
        )
        .fallback(pages::nothing)
        .layer(axum::extract::DefaultBodyLimit::max(8 * 1024 * 1024))
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&site), shield::shield))
        .with_state(site)
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "max-age=300")], text).into_response()
}
