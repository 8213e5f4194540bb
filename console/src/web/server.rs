//! The server: what it knows, and which path leads where.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use tokio::{net::TcpListener, sync::Semaphore};
use trunkline::Db;

use super::{
    access::{Access, Guard, Role, Visitor},
    connections::{self, Bounds},
    deeds, letters, live, of_queue, packed, pages,
    pulse::Pulse,
    shield,
    tls::Certificate,
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
    certificate: Option<Certificate>,
    bounds: Bounds,
}

/// Pages whose numbers move, at a time.
const LIVE: usize = 256;

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
    /// Whether visitors come by TLS alone.
    pub is_secure: bool,
    /// Of those whose numbers move.
    pub live: Arc<Semaphore>,
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
        let bounds = Bounds { connections: 512, patience: Duration::from_secs(10) };
        let (access, title) = (Access::Anybody, String::new());
        Self { db, access, token: None, read_only: false, title, certificate: None, bounds }
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

    /// Speaks TLS 1.2 or 1.3 alone.
    #[must_use]
    pub fn certificate(mut self, certificate: Certificate) -> Self {
        self.certificate = Some(certificate);
        self
    }

    /// Connections at a time: 512 if not set, at least 1. Whoever comes then waits until one ends.
    #[must_use]
    pub fn connections(mut self, most: usize) -> Self {
        self.bounds.connections = most.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// How long a handshake, the head of a request, its body, or an answer of which nothing is read may take: ten seconds if not set. A connection on which no
    /// request comes ends after that time, too.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.bounds.patience = patience;
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
        let site = Arc::new(Site {
            db: self.db,
            guard,
            pulse,
            metrics,
            read_only: self.read_only,
            title: self.title,
            is_secure: self.certificate.is_some(),
            live: Arc::new(Semaphore::new(LIVE)),
        });
        let (ending, ended) = tokio::sync::watch::channel(false);
        let router = router(Arc::clone(&site), ended, self.bounds);
        connections::serve(listener, self.certificate, self.bounds, router, ending, shutdown).await;
        Ok(())
    }
}

fn router(site: Arc<Site>, ended: tokio::sync::watch::Receiver<bool>, bounds: Bounds) -> Router {
    Router::new()
        .route("/", get(pages::overview))
        .route("/queues/{queue}", get(of_queue::queue))
        .route("/queues/{queue}/messages", get(pages::messages))
        .route("/queues/{queue}/messages/{id}", get(pages::message))
        .route("/queues/{queue}/dead", get(letters::dead))
        .route("/schedules", get(pages::schedules))
        .route("/relays", get(pages::relays))
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
        .layer(axum::extract::DefaultBodyLimit::disable()) // they are whole by then
        .layer(axum::middleware::from_fn_with_state(bounds, connections::whole))
        .layer(axum::middleware::from_fn(packed::packed))
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&site), shield::shield))
        .with_state(site)
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "max-age=300")], text).into_response()
}
