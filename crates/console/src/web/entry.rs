//! Logins and logouts.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Extension, Form,
    extract::{ConnectInfo, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use tokio::{sync::Semaphore, time::timeout};

use super::{
    access::{Refused, Visitor, cookie, same},
    reply::{Here, plain},
    shield::address,
    site::Site,
    view::{Frame, Login, with},
};

/// The maximum number of passwords that are checked at the same time. Each takes 19 MiB of memory
/// and a processor.
pub const AT_ONCE: usize = 2;
/// The maximum time that a login waits for earlier ones.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
pub struct Credentials {
    name: String,
    password: String,
}

pub async fn log_in(
    State(site): Here,
    from: ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    Form(said): Form<Credentials>,
) -> Response {
    let (of, from) = (Arc::clone(&site), address(&from));
    let check = move || of.guard.log_in(from, &said.name, &said.password);
    let (status, wrong) = match in_turn(&site.logins, PATIENCE, check).await {
        Some(Ok(session)) => return with_cookie(&site, &headers, &session, 43_200),
        Some(Err(Refused::Wrong)) => (StatusCode::UNAUTHORIZED, "the name or the password is wrong"),
        Some(Err(Refused::TooOften)) => (StatusCode::TOO_MANY_REQUESTS, "too many wrong passwords: wait five minutes"),
        None => (StatusCode::SERVICE_UNAVAILABLE, "too many logins at the same time: try again in a moment"),
    };
    with(status, &Login { frame: Frame::anonymous(&site), wrong: Some(wrong) })
}

/// Runs a check as blocking work, because a hash deliberately takes tens of milliseconds of
/// processor time. Returns `None` if earlier checks take longer than `patience`.
async fn in_turn<V: Send + 'static>(
    turns: &Arc<Semaphore>,
    patience: Duration,
    check: impl FnOnce() -> V + Send + 'static,
) -> Option<V> {
    let turn = timeout(patience, Arc::clone(turns).acquire_owned()).await.ok()?.ok()?;
    let checked = tokio::task::spawn_blocking(move || {
        let _turn = turn; // the check ends after a visitor who leaves
        check()
    });
    checked.await.ok()
}

#[derive(Deserialize)]
pub struct Csrf {
    csrf: String,
}

pub async fn log_out(
    State(site): Here,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    Form(form): Form<Csrf>,
) -> Response {
    if !same(&form.csrf, &visitor.csrf) {
        return plain(StatusCode::FORBIDDEN, "this form does not belong to your session\n");
    }
    site.guard.log_out(&headers);
    with_cookie(&site, &headers, "", 0)
}

/// Redirects to the start page, with a cookie that is valid for `lasts` seconds.
fn with_cookie(site: &Site, headers: &HeaderMap, session: &str, lasts: u32) -> Response {
    let secure = if site.is_secure { "; Secure" } else { "" };
    let (base, name) = (&site.base, cookie(headers));
    let cookie = format!("{name}={session}; Path={base}/; HttpOnly; SameSite=Strict; Max-Age={lasts}{secure}");
    let mut response = Redirect::to(&site.path("/")).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use std::sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    };

    use tokio::task::JoinSet;

    use super::*;
    use crate::web::access::hash;

    #[tokio::test(flavor = "multi_thread")]
    async fn few_passwords_are_checked_at_once() {
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut logins = JoinSet::new();
        for _ in 0..8 {
            let (turns, running, most) = (turns.clone(), running.clone(), most.clone());
            logins.spawn(async move {
                let check = move || {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    let hash = hash("correct horse battery");
                    running.fetch_sub(1, Ordering::SeqCst);
                    hash.is_ok()
                };
                in_turn(&turns, Duration::from_secs(60), check).await
            });
        }
        assert_eq!(logins.join_all().await, [Some(true); 8]);
        assert!(most.load(Ordering::SeqCst) <= AT_ONCE, "{most:?} at once");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn login_that_was_left_keeps_its_turn_until_it_ends() {
        let turns = Arc::new(Semaphore::new(1));
        let (started, begun) = tokio::sync::oneshot::channel();
        let (end, ended) = mpsc::channel::<()>();
        let login = tokio::spawn({
            let turns = turns.clone();
            async move {
                let check = move || {
                    let _ = started.send(());
                    let _ = ended.recv();
                };
                in_turn(&turns, PATIENCE, check).await
            }
        });
        begun.await.expect("it has begun");
        login.abort();
        assert!(login.await.is_err_and(|error| error.is_cancelled()));
        assert_eq!(in_turn(&turns, Duration::from_millis(10), || ()).await, None);
        drop(end);
        assert_eq!(in_turn(&turns, Duration::from_secs(60), || ()).await, Some(()));
    }
}
