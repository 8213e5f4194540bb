//! Runs the example against a minimal collector, which receives one trace, from the order to its
//! handler.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use serde_json::Value;
use trunkline_embedded::test_database;

#[path = "../src/main.rs"]
#[allow(dead_code)]
mod program;

/// Collects spans, as OTLP JSON over HTTP, until the returned receiver is dropped.
fn collector() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/v1/traces", listener.local_addr().expect("an address"));
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let spans = spans(&mut stream.expect("a connection"));
            if spans.into_iter().any(|span| tell.send(span).is_err()) {
                return;
            }
        }
    });
    (address, told)
}

fn spans(stream: &mut TcpStream) -> Vec<Value> {
    let (mut asked, mut part) = (Vec::new(), [0; 4096]);
    let body = loop {
        let count = stream.read(&mut part).expect("read");
        assert!(count > 0, "cut off after {}", String::from_utf8_lossy(&asked));
        asked.extend(&part[..count]);
        let text = String::from_utf8_lossy(&asked);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()).expect("a length");
        if body.len() >= length.parse().expect("a number") {
            assert!(head.starts_with("post /v1/traces ") && head.contains("application/json"), "{head}");
            break body.to_owned();
        }
    };
    let answer =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    stream.write_all(answer.as_bytes()).expect("answered");
    let body: Value = serde_json::from_str(&body).expect("JSON");
    let all = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let scopes = all(&body, "resourceSpans").into_iter().flat_map(|of| all(&of, "scopeSpans"));
    scopes.flat_map(|scope| all(&scope, "spans")).collect()
}

#[test]
fn the_guide_shows_lines_of_the_program() {
    let (guide, program) = (include_str!("../../../docs/observability.md"), include_str!("../src/main.rs"));
    let block = guide.split("async fn order(").nth(1).and_then(|rest| rest.split("    …").next()).expect("the lines");
    for line in format!("async fn order({block}").lines() {
        assert!(program.lines().any(|of| of == line), "{line:?} is not in the program");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_enqueues_and_what_handles_are_one_trace() {
    let url = tokio::task::spawn_blocking(test_database).await.expect("no panic").expect("a database");
    let (address, told) = collector();
    assert_eq!(program::run(&url, &address).await.expect("the example runs"), 1);
    let mut spans = Vec::new();
    let has = |spans: &[Value], name: &str| spans.iter().find(|span| span["name"] == name).cloned();
    let of = |spans: &mut Vec<Value>, name: &str| loop {
        match has(spans, name) {
            Some(span) => return span,
            None => spans
                .push(told.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| panic!("no {name}: {spans:#?}"))),
        }
    };
    let [order, enqueue, handle] = ["order", "enqueue", "handle"].map(|name| of(&mut spans, name));
    assert_eq!((&order["traceId"], &order["traceId"]), (&enqueue["traceId"], &handle["traceId"]), "{spans:#?}");
    assert_eq!((&order["spanId"], &order["spanId"]), (&enqueue["parentSpanId"], &handle["parentSpanId"]), "{spans:#?}");
    assert_eq!(order["parentSpanId"].as_str().unwrap_or_default(), "", "{order:#}");
    // The library's span has the same trace id.
    let fields = handle["attributes"].as_array().expect("a list");
    let traced = fields.iter().find(|field| field["key"] == "trace_id").expect("the trace");
    assert_eq!(traced["value"]["stringValue"], order["traceId"]);
    assert!(handle["events"].to_string().contains("a mail to ada@example.org"), "{handle:#}");
}
