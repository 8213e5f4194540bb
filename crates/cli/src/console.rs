//! `trunkline console`

use std::{
    io::{BufRead, stdin},
    path::{Path, PathBuf},
};

use tokio::net::TcpListener;
use trunkline_console::web::{self, Access, Certificate, Console};

use crate::{
    database::Database,
    error::{Error, Result},
    print,
    stop::Stop,
};

/// The arguments of `trunkline console`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --users and --proxy-header, every visitor of the console may do everything. In that case it
listens only on this machine, and answers to no other host name.

A file of users has one line per user: name:viewer:HASH or name:operator:HASH. Viewers may look, and
operators may also act. --hash-password makes a HASH of the password on standard input. Every action
is written to the table trunkline.audit. Actions are limited to the rights of the role that the
console connects as.

/metrics serves metrics for Prometheus. /healthz reports whether the database answers and the queues can
be read.

Examples:
  trunkline console
  trunkline console --read-only --listen 127.0.0.1:8080
  trunkline console --listen 10.0.0.5:7070 --proxy-header X-Forwarded-User --operators ada,bob")]
pub struct Args {
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7070")]
    listen: String,
    /// Ask for a name and a password, and check them against this file
    #[arg(long, value_name = "FILE", conflicts_with = "proxy_header")]
    users: Option<PathBuf>,
    /// Admit, as viewers, requests with the token in this file, as `Authorization: Bearer TOKEN`
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Take the user's name from this header, which a proxy sets; only the proxy must be able to
    /// reach the console
    #[arg(long, value_name = "NAME")]
    proxy_header: Option<String>,
    /// The users who may act; all other users that the proxy names may only look
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "proxy_header")]
    operators: Vec<String>,
    /// Serve TLS with the certificate in this PEM file, which may also contain the intermediate
    /// certificates
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key, in PEM. Both files are read again when they change
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The prefix of all paths, if a proxy serves the console next to other sites
    #[arg(long, value_name = "PATH", default_value = "")]
    path_prefix: String,
    /// Leave out these checks on the doctor's page
    #[arg(long, value_name = "CHECKS", value_delimiter = ',')]
    doctor_skip_check: Vec<String>,
    /// Leave out these queues on the doctor's page; a * at the end of a name matches any ending
    #[arg(long, value_name = "QUEUES", value_delimiter = ',')]
    doctor_skip_queue: Vec<String>,
    /// Show everything and offer no action
    #[arg(long)]
    read_only: bool,
    /// Print the hash of the password read from standard input, and exit
    #[arg(long)]
    hash_password: bool,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    if args.hash_password {
        return hash();
    }
    let access = access(&args)?;
    let token = args.token_file.as_deref().map(token).transpose()?;
    let certificate = certificate(&args)?;
    let (doctor, prefix) =
        (crate::doctor::doctor(&args.doctor_skip_check, &args.doctor_skip_queue)?, &*args.path_prefix);
    let scheme = if certificate.is_some() { "https" } else { "http" };
    let db = database.connect().await?;
    let listener = TcpListener::bind(&args.listen).await.map_err(|cause| {
        Error::new(format!("cannot listen on {}: {cause}", args.listen)).hint("name another with --listen ADDRESS:PORT")
    })?;
    let address = listener.local_addr().map_err(|cause| Error::new(cause.to_string()))?;
    let mut console = Console::new(db).access(access).read_only(args.read_only).doctor(doctor).path_prefix(prefix);
    if let Some(token) = token {
        console = console.token(token);
    }
    if let Some(certificate) = certificate {
        console = console.certificate(certificate);
    }
    console.check(address).map_err(|refused| {
        if refused.kind() == std::io::ErrorKind::InvalidInput {
            return Error::usage(refused.to_string());
        }
        Error::usage(refused.to_string()).hint("pass --users FILE or --proxy-header NAME, or listen on 127.0.0.1")
    })?;
    let mut stop = Stop::on_signals()?;
    if !database.quiet {
        print::note(format!("console: {scheme}://{address}{}", prefix.trim_end_matches('/')));
    }
    let served = console.serve(listener, async move { stop.asked().await }).await;
    served.map_err(|cause| Error::new(format!("the console ended: {cause}")))
}

fn access(args: &Args) -> Result<Access> {
    if let Some(file) = &args.users {
        let users = web::users(&read(file)?);
        let users = users.map_err(|why| Error::usage(format!("{}: {why}", file.display())))?;
        return Ok(Access::Passwords(users));
    }
    Ok(match &args.proxy_header {
        Some(header) => Access::Proxy { header: header.to_ascii_lowercase(), operators: args.operators.clone() },
        None => Access::Anybody,
    })
}

fn certificate(args: &Args) -> Result<Option<Certificate>> {
    let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) else { return Ok(None) };
    Certificate::of_files(certificate, key).map(Some).map_err(|why| Error::usage(why.to_string()))
}

fn token(file: &Path) -> Result<String> {
    let token = read(file)?.trim().to_owned();
    match token.len() {
        16.. => Ok(token),
        _ => Err(Error::usage(format!("the token in {} is shorter than 16 characters", file.display()))
            .hint("openssl rand -hex 32 makes one")),
    }
}

fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).map_err(|cause| Error::usage(format!("cannot read {}: {cause}", file.display())))
}

fn hash() -> Result<()> {
    crate::closed::check_input()?;
    let mut line = String::new();
    stdin().lock().read_line(&mut line).map_err(|cause| Error::new(format!("cannot read the password: {cause}")))?;
    let hash = web::hash(line.trim_end_matches(['\r', '\n'])).map_err(Error::usage)?;
    print::line(hash)
}
