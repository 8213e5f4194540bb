//! The server: its settings and its routes.

use std::{io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    http::{StatusCode, header},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use tokio::{net::TcpListener, sync::Semaphore};
use trunkline::Db;

use super::{
    access::{Access, Guard},
    checkup::Checkup,
    connections::{self, Bounds},
    deeds, entry,
    gate::Gate,
    health::Health,
    letters, live, of_queue, packed, pages,
    pulse::Pulse,
    shared::Shared,
    shield,
    site::Site,
    tls::Certificate,
    turn,
    workings::Workings,
};
use crate::{doctor::Doctor, metrics::Metrics};

/// A console for one database.
#[derive(Debug)]
pub struct Console {
    db: Db,
    access: Access,
    token: Option<String>,
    read_only: bool,
    title: String,
    certificate: Option<Certificate>,
    bounds: Bounds,
    base: String,
    doctor: Doctor,
}

/// The maximum number of pages with live numbers.
const LIVE: usize = 256;

impl Console {
    /// Creates a console that admits every visitor: see [`Console::access`].
    #[must_use]
    pub fn new(db: Db) -> Self {
        let bounds = Bounds { connections: 512, patience: Duration::from_secs(10) };
        let (access, title) = (Access::Anybody, String::new());
        let (base, doctor) = (String::new(), Doctor::new());
        Self { db, access, token: None, read_only: false, title, certificate: None, bounds, base, doctor }
    }

    /// Sets which visitors are admitted. With [`Access::Anybody`] the console listens only on
    /// loopback addresses.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Admits every client that sends `Authorization: Bearer TOKEN`, as a viewer.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Forbids all actions if `read_only` is true.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Sets the name of the database on the pages.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Serves only TLS 1.2 or 1.3.
    #[must_use]
    pub fn certificate(mut self, certificate: Certificate) -> Self {
        self.certificate = Some(certificate);
        self
    }

    /// Sets the prefix of all paths, such as `/ops/queues`, for a proxy that also serves other
    /// sites. The proxy may forward the prefix or remove it.
    #[must_use]
    pub fn path_prefix(mut self, prefix: impl Into<String>) -> Self {
        prefix.into().trim_end_matches('/').clone_into(&mut self.base);
        self
    }

    /// Sets the doctor whose findings the console shows. The doctor determines the skipped checks
    /// and queues, and the patience.
    #[must_use]
    pub fn doctor(mut self, doctor: Doctor) -> Self {
        self.doctor = doctor;
        self
    }

    /// Sets the maximum number of connections: 512 by default, at least 1. Further visitors wait
    /// until a connection ends. Visitors who are not admitted have at most an eighth of the
    /// connections per address, each for a minute. They lose their connections to other visitors if
    /// none is free.
    #[must_use]
    pub fn connections(mut self, most: usize) -> Self {
        self.bounds.connections = most.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// Sets the time limit for a handshake, the head of a request, its body, and a response that
    /// the visitor does not read: ten seconds by default. A connection without a request also ends
    /// after that time.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.bounds.patience = patience;
        self
    }

    /// Checks whether the console may listen on an address.
    ///
    /// # Errors
    /// If the address can be reached from other machines although visitors are not identified, or
    /// if the prefix of the paths is invalid.
    pub fn check(&self, address: SocketAddr) -> io::Result<()> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
        let is_path = self.base.starts_with('/') && self.base.bytes().all(is_plain);
        if !is_path && !self.base.is_empty() {
            let why = format!("{:?} is not a path prefix such as /ops/queues", self.base);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        match self.access {
            Access::Anybody if !address.ip().is_loopback() => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{address} can be reached from other machines, and visitors would not have to log in"),
            )),
            _ => Ok(()),
        }
    }

    /// Serves until `shutdown` ends, then finishes the requests in progress.
    ///
    /// # Errors
    /// The same as for [`Console::check`], and errors of the listener.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        self.check(listener.local_addr()?)?;
        let (metrics, mut shutdown) = (Metrics::new(), pin!(shutdown));
        let pulse = tokio::select! {
            () = &mut shutdown => return Ok(()),
            pulse = Pulse::begin(self.db.clone(), metrics.clone()) => pulse,
        };
        let guard = Guard::new(self.access, self.token);
        let site = Arc::new(Site {
            db: self.db,
            guard,
            pulse,
            metrics,
            read_only: self.read_only,
            title: self.title,
            is_secure: self.certificate.is_some(),
            logins: Arc::new(Semaphore::new(entry::AT_ONCE)),
            live: Arc::new(Semaphore::new(LIVE)),
            gate: Gate::default(),
            health: Health::default(),
            checkup: Arc::new(Checkup::new(self.doctor)),
            workings: Shared::new(Workings::is_whole),
            base: self.base,
        });
        let (ending, ended) = tokio::sync::watch::channel(false);
        let router = router(Arc::clone(&site), ended, self.bounds);
        connections::serve(listener, self.certificate, self.bounds, router, ending, shutdown).await;
        Ok(())
    }
}

fn router(site: Arc<Site>, ended: tokio::sync::watch::Receiver<bool>, bounds: Bounds) -> Router {
    let (base, first) = (site.base.clone(), site.path("/"));
    let pages = pages_of(site, ended, bounds);
    if base.is_empty() {
        return pages;
    }
    let outer = Router::new().route(&base, get(move || async move { Redirect::to(&first) }));
    outer.nest_service(&format!("{base}/"), pages.clone()).fallback_service(pages)
}

fn pages_of(site: Arc<Site>, ended: tokio::sync::watch::Receiver<bool>, bounds: Bounds) -> Router {
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
        .route("/live", get(move |state, headers| async move { live::live(state, headers, ended) }))
        .route("/act/ask", post(deeds::ask))
        .route("/act/change", post(deeds::change))
        .route("/act", post(deeds::act))
        .route("/login", get(pages::login).post(entry::log_in))
        .route("/logout", post(entry::log_out))
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
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&site), turn::turn))
        .layer(axum::extract::DefaultBodyLimit::disable()) // the layer `whole` limits bodies instead
        .layer(axum::middleware::from_fn_with_state(bounds, connections::whole))
        .layer(axum::middleware::from_fn(packed::packed))
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&site), shield::shield))
        .with_state(site)
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "max-age=300")], text).into_response()
}
