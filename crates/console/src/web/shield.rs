//! Guards every request: checks the host and the visitor, and sets the headers that restrict the
//! browser.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Redirect, Response},
};

use super::{access::Visitor, admission::Seat, notice::Notice, reply::plain, site::Site};

/// The policy that allows only the console's own scripts and files, and forbids embedding in
/// another site's frame.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

pub async fn shield(State(site): State<Arc<Site>>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let known = site.guard.visitor(request.headers());
    if let Some(seat) = request.extensions().get::<Arc<Seat>>() {
        seat.of(known.is_some());
    }
    let notice = Notice::read(request.headers()).filter(|_| *request.method() == Method::GET && path != "/live");
    let mut response = match pass(&site, &request, known) {
        Ok(visitor) => {
            if let Some(mut visitor) = visitor {
                visitor.notice.clone_from(&notice);
                request.extensions_mut().insert(visitor);
            }
            next.run(request).await
        }
        Err(refused) => *refused,
    };
    if notice.is_some() {
        Notice::forget(&mut response, &site.base, site.is_secure);
    }
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    if !path.starts_with("/assets/") {
        // Lets the browser keep a confirmation page. When the visitor goes back to it, the browser
        // does not send the form again, and so needs a stored copy.
        let kept = if path.starts_with("/act") { "private, no-cache" } else { "no-store" };
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    }
    response
}

/// Returns the visitor if the path requires one, or the refusal.
fn pass(site: &Site, request: &Request, known: Option<Visitor>) -> Refusal<Option<Visitor>> {
    let (headers, path) = (request.headers(), request.uri().path());
    let host = host(request);
    if site.guard.is_open() && !host.as_deref().is_some_and(is_loopback) {
        // Refuses other host names. Another site can point its own host name at this machine;
        // without this check, that site's pages would be admitted.
        return refused(StatusCode::MISDIRECTED_REQUEST, "open the console as http://127.0.0.1 or http://localhost\n");
    }
    if *request.method() == Method::POST && !is_same_origin(headers, host.as_deref()) {
        return refused(
            StatusCode::FORBIDDEN,
            "this form was sent from another site; nothing was done. If a proxy is in between, it must pass on the Host header \
             (nginx: proxy_set_header Host $http_host)\n",
        );
    }
    if path == "/healthz" || path.starts_with("/assets/") {
        return Ok(None);
    }
    match known {
        Some(visitor) => Ok(Some(visitor)),
        None if path == "/login" && site.guard.has_logins() => Ok(None),
        None if path == "/metrics" || !site.guard.has_logins() => {
            refused(StatusCode::UNAUTHORIZED, "the request has no accepted token, and no header that names a visitor\n")
        }
        None if *request.method() == Method::GET && path != "/live" => {
            Err(Box::new(Redirect::to(&site.path("/login")).into_response()))
        }
        None => refused(StatusCode::UNAUTHORIZED, "log in first; nothing was done\n"),
    }
}

type Refusal<V> = Result<V, Box<Response>>;

fn refused<V>(status: StatusCode, text: &'static str) -> Refusal<V> {
    Err(Box::new(plain(status, text)))
}

fn host(request: &Request) -> Option<String> {
    let said = request.headers().get(header::HOST).and_then(|value| value.to_str().ok());
    said.or_else(|| request.uri().authority().map(axum::http::uri::Authority::as_str)).map(str::to_ascii_lowercase)
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Checks that a form comes from the console itself. A browser compares the origins itself, and
/// sends the result in a header that pages cannot set, but only over TLS or to this machine.
/// Without that header, the origin is compared with the host, which a proxy may have changed.
/// Programs other than browsers may send no origin, but they do not have a visitor's cookies.
fn is_same_origin(headers: &HeaderMap, host: Option<&str>) -> bool {
    let said = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if let Some(site) = said("sec-fetch-site") {
        return site == "same-origin";
    }
    let origin = said("origin").map(str::to_ascii_lowercase);
    origin.is_none_or(|origin| origin.split_once("://").map(|(_, of)| of) == host)
}

/// Returns the visitor's address, as the connection reports it.
pub fn address(info: &ConnectInfo<SocketAddr>) -> std::net::IpAddr {
    info.0.ip().to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_the_loopback() {
        for is in ["localhost", "localhost:7070", "127.0.0.1:7070", "127.9.9.9", "[::1]:7070", "[::1]"] {
            assert!(is_loopback(is), "{is}");
        }
        for other in
            ["", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:7070", "10.0.0.1", "[::2]:1"]
        {
            assert!(!is_loopback(other), "{other}");
        }
    }

    #[test]
    fn a_form_of_another_site_is_told() {
        let of = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, HeaderValue::from_static(value));
            }
            is_same_origin(&headers, Some("127.0.0.1:7070"))
        };
        assert!(of(&[]));
        assert!(of(&[("origin", "http://127.0.0.1:7070"), ("sec-fetch-site", "same-origin")]));
        // Accepts a host that a proxy has changed, because the browser compared the origin with the
        // name that it used.
        assert!(of(&[("origin", "https://console.example"), ("sec-fetch-site", "same-origin")]));
        assert!(!of(&[("origin", "https://console.example"), ("sec-fetch-site", "none")]));
        assert!(!of(&[("origin", "http://evil.example")]));
        assert!(!of(&[("origin", "null")]));
        assert!(!of(&[("sec-fetch-site", "cross-site")]));
        assert!(!of(&[("sec-fetch-site", "same-site"), ("origin", "http://127.0.0.1:7071")]));
    }
}
