//! A minimal HTTP client: one connection per request, and cookies that the caller passes.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(is, _)| is.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns the text between `beginning` and the next tag.
    pub fn text_after(&self, beginning: &str) -> String {
        let at = self.body.find(beginning).unwrap_or_else(|| panic!("no {beginning} in {}", self.body));
        let rest = &self.body[at + beginning.len()..];
        rest.split('<').next().unwrap_or_default().trim().to_owned()
    }

    pub fn csrf(&self) -> String {
        self.hidden("csrf")
    }

    /// Returns the value of a hidden field.
    pub fn hidden(&self, name: &str) -> String {
        self.text_before(&format!(r#"name="{name}" value=""#), "\"")
    }

    fn text_before(&self, beginning: &str, end: &str) -> String {
        let at = self.body.find(beginning).unwrap_or_else(|| panic!("no {beginning} in {}", self.body));
        self.body[at + beginning.len()..].split(end).next().unwrap_or_default().to_owned()
    }
}

/// Sends a request on a new connection, and reads the response to its end.
pub async fn send(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let stream = TcpStream::connect(address).await.expect("connected");
    over(stream, address, method, path, headers, body).await
}

/// Sends a request on an open connection.
pub async fn over(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut lines = vec![format!("{method} {path} HTTP/1.1"), "connection: close".to_owned()];
    if !headers.iter().any(|(name, _)| *name == "host") {
        lines.push(format!("host: {address}"));
    }
    for (name, value) in headers {
        lines.push(format!("{name}: {value}"));
    }
    if method == "POST" {
        lines.push(format!("content-type: application/x-www-form-urlencoded\r\ncontent-length: {}", body.len()));
    }
    stream.write_all(format!("{}\r\n\r\n{body}", lines.join("\r\n")).as_bytes()).await.expect("sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.expect("read");
    parse(&String::from_utf8(bytes).expect("text"))
}

pub async fn get(address: SocketAddr, path: &str) -> Answer {
    send(address, "GET", path, &[], "").await
}

pub async fn post(address: SocketAddr, path: &str, fields: &[(&str, &str)]) -> Answer {
    send(address, "POST", path, &[], &form(fields)).await
}

pub fn form(fields: &[(&str, &str)]) -> String {
    let encoded = |text: &str| -> String {
        text.bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
                _ => format!("%{byte:02X}"),
            })
            .collect()
    };
    let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    pairs.join("&")
}

fn parse(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {text:?}"));
    let mut lines = head.lines();
    let status =
        lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok()).expect("a status");
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let is_chunked =
        headers.iter().any(|(name, value)| name.eq_ignore_ascii_case("transfer-encoding") && value == "chunked");
    let body = if is_chunked { unchunked(body) } else { body.to_owned() };
    Answer { status, headers, body }
}

fn unchunked(mut rest: &str) -> String {
    let mut whole = String::new();
    while let Some((size, from)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a size");
        whole += &from[..size];
        rest = from[size..].trim_start_matches("\r\n");
    }
    whole
}
