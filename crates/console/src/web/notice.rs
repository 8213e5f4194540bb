//! A notice about the last action, which the next page shows once. A cookie carries the notice. So
//! a reload of that page does nothing, and any console can show the notice.

use axum::http::{HeaderMap, HeaderValue, Response, header};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const COOKIE: &str = "trunkline_notice";
/// The maximum length of a notice's cookie.
const MOST: usize = 600;
/// The lifetime of the cookie in seconds. The browser requests the next page immediately.
const LASTS: u32 = 60;

/// A sentence, and a link to a message if the notice is about a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notice {
    pub text: String,
    /// The queue and the id of the message.
    pub message: Option<(String, i64)>,
}

impl Notice {
    pub fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), message: None }
    }

    /// Returns the cookie that carries the notice to the next page below `base`.
    pub fn cookie(&self, base: &str, is_secure: bool) -> Option<HeaderValue> {
        let message = self.message.as_ref().map_or_else(String::new, |(queue, id)| format!("{queue} {id}"));
        let value = utf8_percent_encode(&format!("{message}\n{}", self.text), NON_ALPHANUMERIC).to_string();
        set(&value, LASTS, base, is_secure)
    }

    /// Reads the notice from a request. A visitor can send any cookie, so the console only displays
    /// the notice.
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let value = cookie_named(headers, COOKIE).filter(|value| value.len() <= MOST)?;
        let text = percent_decode_str(&value).decode_utf8().ok()?;
        let (message, text) = text.split_once('\n')?;
        let message = message.split_once(' ').and_then(|(queue, id)| Some((queue.to_owned(), id.parse().ok()?)));
        let message = message.filter(|(queue, _)| {
            queue.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_.-".contains(&b))
        });
        (!text.is_empty()).then(|| Self { text: super::words::shown(text), message })
    }

    /// Removes the cookie once a page has shown the notice.
    pub fn forget<B>(response: &mut Response<B>, base: &str, is_secure: bool) {
        let is_page = |value: &HeaderValue| value.as_bytes().starts_with(b"text/html");
        if response.headers().get(header::CONTENT_TYPE).is_some_and(is_page)
            && let Some(cookie) = set("", 0, base, is_secure)
        {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
}

fn set(value: &str, lasts: u32, base: &str, is_secure: bool) -> Option<HeaderValue> {
    let secure = if is_secure { "; Secure" } else { "" };
    let cookie = format!("{COOKIE}={value}; Path={base}/; HttpOnly; SameSite=Strict; Max-Age={lasts}{secure}");
    HeaderValue::from_str(&cookie).ok()
}

pub fn cookie_named(headers: &HeaderMap, cookie: &str) -> Option<String> {
    let named = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|line| line.split(';')).find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == cookie).then(|| value.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cookie: &str) -> Option<Notice> {
        Notice::read(&HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_str(cookie).expect("a header"))]))
    }

    #[test]
    fn notice_survives_its_cookie_and_nothing_else_does() {
        let notice = Notice { text: "Enqueued a message; <b> ü".to_owned(), message: Some(("a.b-c".to_owned(), 7)) };
        let cookie = notice.cookie("/ops", true).expect("a cookie");
        let cookie = cookie.to_str().expect("text");
        assert!(cookie.contains("; Path=/ops/; HttpOnly; SameSite=Strict; Max-Age=60; Secure"), "{cookie}");
        assert_eq!(read(cookie.split(';').next().expect("a pair")), Some(notice));
        for other in ["", "trunkline_notice=", "trunkline_notice=%FF", "trunkline_notice=one"] {
            assert_eq!(read(other), None, "{other}");
        }
        let long = format!("trunkline_notice=%0A{}", "x".repeat(MOST));
        assert_eq!(read(&long), None);
        assert_eq!(read("trunkline_notice=a%22%3E%201%0Ax"), Some(Notice::of("x")));
    }
}
