//! Connections: their maximum number, their time limits, and how they end.

use std::{io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{
    Extension, Router,
    body::{Body, to_bytes},
    extract::{ConnectInfo, Request, State},
    http::StatusCode,
    middleware::Next,
    response::Response,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{interval, sleep, timeout},
};

use super::{
    access::Visitor,
    admission::{Door, Seat},
    reply::plain,
    stall::Stall,
    tls::Certificate,
};

/// The limits for visitors.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The maximum number of connections. Further visitors wait until a connection ends.
    pub connections: usize,
    /// The time limit for a handshake, the head of a request, its body, and a write that makes no
    /// progress.
    pub patience: Duration,
}

/// The time limit for requests in progress after `shutdown`.
const LAST: Duration = Duration::from_secs(15);
/// The maximum size of a body. A form encodes each byte of a typed payload as up to three bytes.
const BODY: usize = 8 * 1024 * 1024;
/// The maximum size of the body of a login, whose sender is not yet known.
const BODY_OF_LOGIN: usize = 16 * 1024;

/// Accepts connections until `shutdown`, then ends the connections that are open.
pub async fn serve(
    listener: TcpListener,
    certificate: Option<Certificate>,
    bounds: Bounds,
    router: Router,
    ending: watch::Sender<bool>,
    shutdown: impl Future<Output = ()>,
) {
    let (door, mut open) = (Arc::new(Door::new(bounds.connections)), JoinSet::new());
    let mut shutdown = pin!(shutdown);
    loop {
        let next = tokio::select! {
            () = &mut shutdown => break,
            next = accept(&listener, &door) => next,
        };
        while open.try_join_next().is_some() {}
        let Some((stream, from, seat)) = next else { continue };
        let app = router.clone().layer(Extension(ConnectInfo(from))).layer(Extension(Arc::clone(&seat)));
        let (acceptor, ended) = (certificate.as_ref().map(Certificate::acceptor), ending.subscribe());
        open.spawn(async move {
            let Some(acceptor) = acceptor else { return converse(stream, app, bounds, ended, &seat).await };
            let handshake = timeout(bounds.patience, acceptor.accept(stream));
            let stream = tokio::select! {
                stream = handshake => stream,
                () = seat.taken() => return,
            };
            if let Ok(Ok(stream)) = stream {
                converse(stream, app, bounds, ended, &seat).await;
            }
        });
    }
    let _ = ending.send(true); // ends the live events, and each connection after its current response
    let _ = timeout(LAST, async { while open.join_next().await.is_some() {} }).await;
}

async fn accept(listener: &TcpListener, door: &Arc<Door>) -> Option<(TcpStream, SocketAddr, Arc<Seat>)> {
    match listener.accept().await {
        Ok((stream, from)) => {
            let _ = stream.set_nodelay(true); // connections are slower without it
            Some((stream, from, Arc::new(door.admit(from.ip().to_canonical()).await?)))
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) => None,
        Err(_) => {
            sleep(Duration::from_secs(1)).await; // for example, there is no free file descriptor: an immediate retry would fail again
            None
        }
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    app: Router,
    bounds: Bounds,
    mut ended: watch::Receiver<bool>,
    seat: &Seat,
) {
    let stream = TokioIo::new(Stall::new(stream, bounds.patience));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(bounds.patience).max_buf_size(64 * 1024);
    let mut conversation = pin!(http.serve_connection(stream, TowerToHyperService::new(app)));
    let mut looks = interval(Duration::from_secs(5));
    loop {
        tokio::select! {
            _ = conversation.as_mut() => return, // errors of a connection are not reported
            () = seat.taken() => return,
            _ = ended.wait_for(|is| *is) => break,
            _ = looks.tick() => if seat.is_over() { break },
        }
    }
    conversation.as_mut().graceful_shutdown();
    let _ = timeout(LAST, conversation).await;
}

/// Reads the whole body of a request. Refuses a body that arrives too slowly or is too large.
pub async fn whole(State(bounds): State<Bounds>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    // Accepts a large form only from a visitor who is logged in.
    let is_known = head.extensions.get::<Visitor>().is_some() && head.uri.path() != "/login";
    let most = if is_known { BODY } else { BODY_OF_LOGIN };
    match timeout(bounds.patience, to_bytes(body, most)).await {
        Ok(Ok(bytes)) => next.run(Request::from_parts(head, Body::from(bytes))).await,
        Ok(Err(_)) => plain(StatusCode::PAYLOAD_TOO_LARGE, "the form is too large or incomplete; nothing was done\n"),
        Err(_) => plain(StatusCode::REQUEST_TIMEOUT, "the form arrived too slowly; nothing was done\n"),
    }
}
