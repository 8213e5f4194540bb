//! Compresses long responses: the overview, the metrics and the assets.
//!
//! No other page is compressed. If a page contained both a secret, such as the token of its forms,
//! and text from the request, the compressed length could reveal the secret. The overview contains
//! no text from the request.

use std::io::Write;

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::Response,
};
use flate2::{Compression, write::GzEncoder};

/// The minimum size of a response that is compressed, in bytes. A shorter response fits into one
/// packet.
const SHORT: usize = 1024;

pub async fn packed(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let may = matches!(path, "/" | "/metrics") || path.starts_with("/assets/");
    let wanted = may && accepts(request.headers());
    let response = next.run(request).await;
    if !may || response.status() != StatusCode::OK {
        return response;
    }
    let (mut head, body) = response.into_parts();
    head.headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if !wanted {
        return Response::from_parts(head, body);
    }
    let Ok(whole) = to_bytes(body, usize::MAX).await else {
        head.status = StatusCode::INTERNAL_SERVER_ERROR;
        return Response::from_parts(head, Body::empty());
    };
    if whole.len() <= SHORT {
        return Response::from_parts(head, Body::from(whole));
    }
    let mut packed = GzEncoder::new(Vec::with_capacity(whole.len() / 4), Compression::fast());
    match packed.write_all(&whole).and_then(|()| packed.finish()) {
        Ok(packed) => {
            head.headers.remove(header::CONTENT_LENGTH);
            head.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            Response::from_parts(head, Body::from(packed))
        }
        Err(_) => Response::from_parts(head, Body::from(whole)),
    }
}

fn accepts(headers: &HeaderMap) -> bool {
    let said = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    said.flat_map(|line| line.split(',')).any(|one| {
        let (name, quality) = one.split_once(';').unwrap_or((one, ""));
        name.trim().eq_ignore_ascii_case("gzip") && !matches!(quality.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_get_it_packed_who_can_read_it() {
        let of = |text| accepts(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(text))]));
        assert!(of("gzip") && of("br;q=1.0, GZIP;q=0.8") && of("deflate,gzip"));
        assert!(!of("") && !of("br") && !of("gzip;q=0") && !of("identity, gzip; q=0.0") && !accepts(&HeaderMap::new()));
    }
}
