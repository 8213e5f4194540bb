//! The console: a web server that shows the queues of a database, and acts on them.
//!
//! ```no_run
//! # async fn example(db: trunkline::Db) -> std::io::Result<()> {
//! use trunkline_console::web::Console;
//!
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:7070").await?;
//! Console::new(db).serve(listener, std::future::pending()).await
//! # }
//! ```
//!
//! The server renders the pages, which work without JavaScript. With JavaScript, the numbers update
//! by themselves. The console asks for confirmation before each action. It records each action in
//! the table `trunkline.audit`, in the same transaction.

mod json;
mod words;
mod spark;
mod chart;
mod sieve;
mod statement;
mod point;
mod history;
mod pulse;
mod access;
mod notice;
mod admission;
mod tls;
mod stall;
mod form;
mod act;
mod phrases;
mod gate;
mod health;
mod checkup;
mod workings;
mod shared;
mod site;
mod row;
mod verdict;
mod view;
mod reply;
mod shield;
mod turn;
mod pages;
mod of_queue;
mod letters;
mod live;
mod deeds;
mod entry;
mod packed;
mod connections;
mod server;

pub use self::{
    access::{Access, Role, User, hash, users},
    server::Console,
    tls::Certificate,
};
