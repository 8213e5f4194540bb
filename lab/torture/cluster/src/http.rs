//! Implements the part of HTTP that Patroni's interface needs.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::Failure;

const LIMIT: Duration = Duration::from_secs(2);

/// Sends the request, and returns the status and the body of the response.
async fn exchange(port: u16, request: &str, limit: Duration) -> Result<(u16, String), Failure> {
    let whole = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or("no answer in HTTP")?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        Ok::<_, Failure>((status, body.to_owned()))
    };
    timeout(limit, whole).await.map_err(|_| "no answer in time")?
}

/// Returns the document at this path, regardless of the status.
pub async fn get(port: u16, path: &str) -> Result<Value, Failure> {
    let request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
    let (_, body) = exchange(port, &request, LIMIT).await?;
    Ok(serde_json::from_str(&body)?)
}

/// Sends a request, and waits until it is completed or refused.
pub async fn post(port: u16, path: &str, password: &str, body: &Value) -> Result<(u16, String), Failure> {
    let (body, proof) = (body.to_string(), STANDARD.encode(format!("operator:{password}")));
    let request = format!(
        "POST {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Basic {proof}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    exchange(port, &request, Duration::from_secs(60)).await
}
