//! The database that the verbs work on.

use trunkline::{Db, Payload, Queue, Readable, shards};
use trunkline_embedded::Cluster;

use crate::{
    any::AnyQueue,
    error::{Error, Result},
    print, progress,
    text::{Text, Unread},
};

/// The options that name the database.
#[derive(Debug, Clone, clap::Args)]
pub struct Database {
    /// A connection string: `postgres://user@host/database` or `host=… dbname=…`
    ///
    /// Keep a connection string with a password in the environment variable, because every user of
    /// the machine can read the arguments of a running program. Without an option or
    /// `DATABASE_URL`, libpq's variables name the database (`PGHOST` and the like, `PGSERVICE`).
    /// They also fill in what a connection string leaves out. Without any of `PGHOST`,
    /// `PGHOSTADDR`, `PGDATABASE` and `PGSERVICE`, a private PostgreSQL is used: it is kept in the
    /// user's data folder, started when first needed, and left running (see `trunkline postgres`).
    ///
    /// Several connection strings, each with its own `--database-url` or on its own line in the
    /// variable, name shards: servers that hold queues of the same names. Ids then begin with the
    /// shard, as in 1f3a9c02:1024.
    #[arg(
        long = "database-url",
        global = true,
        env = "DATABASE_URL",
        hide_env_values = true,
        value_name = "URL",
        value_parser = named,
        value_delimiter = '\n'
    )]
    pub urls: Vec<String>,
    /// The schema that holds the queues; `trunkline` by default
    #[arg(long, global = true, env = "TRUNKLINE_SCHEMA", value_name = "NAME")]
    pub schema: Option<String>,
    /// Print only errors and warnings on standard error: neither the database that is used nor a
    /// summary at the end
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Report on standard error which database is used, even if `DATABASE_URL` or --database-url
    /// names it
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub verbose: bool,
}

/// Refuses an empty option, such as the value of an unset shell variable, because an empty option
/// would select another database. The environment variable may be empty.
fn named(url: &str) -> std::result::Result<String, &'static str> {
    let has_empty_line = |text: String| text.split('\n').any(|line| line.trim().is_empty());
    if url.trim().is_empty() && !std::env::var("DATABASE_URL").is_ok_and(has_empty_line) {
        return Err("the connection string is empty; name a database, or leave the option out");
    }
    Ok(url.to_owned())
}

impl Database {
    /// Returns the connection strings that were given. A variable with an empty value counts as
    /// unset.
    fn given(&self) -> Vec<&str> {
        self.urls.iter().map(|url| url.trim()).filter(|url| !url.is_empty()).collect()
    }

    pub fn is_sharded(&self) -> bool {
        self.given().len() > 1
    }

    /// Connects to one database. Reports which database it is, unless a connection string names it.
    pub async fn connect(&self) -> Result<Db> {
        match self.given()[..] {
            [] => {}
            [url] => {
                check(url)?;
                self.say_more(&format!("database: {}", without_secrets(url)));
                return Ok(Db::connect(&in_schema(url, self.schema.as_deref())).await?);
            }
            _ => {
                return Err(Error::usage("this command works on one server, and several are given")
                    .hint("run it once for each server, with --database-url"));
            }
        }
        if let Some(said) = said_by_environment(|name| std::env::var(name).ok()) {
            self.say(&format!("database: {said}"));
            return Ok(Db::connect(&in_schema("", self.schema.as_deref())).await?);
        }
        let (url, folder) = crate::blocking(kept).await?;
        self.say(&format!("database: the private PostgreSQL in {folder}"));
        let db = connect_to_private(&in_schema(&url, self.schema.as_deref())).await?;
        db.migrate().await?;
        Ok(db)
    }

    /// Connects to all named databases, one after another, for verbs that act on every server.
    pub async fn connect_each(&self) -> Result<Vec<(String, Db)>> {
        let tried = self.try_each().await?.into_iter();
        tried.map(|(place, db)| db.map(|db| (place.clone(), db)).map_err(|error| error.at(&place))).collect()
    }

    /// Connects to each server. Each of several that cannot be reached is an error in the result.
    pub async fn try_each(&self) -> Result<Vec<(String, Result<Db>)>> {
        if !self.is_sharded() {
            return Ok(vec![(String::new(), Ok(self.connect().await?))]);
        }
        let mut dbs = Vec::new();
        for url in self.given() {
            check(url)?;
            let shown = without_secrets(url);
            self.say_more(&format!("database: {shown}"));
            dbs.push((shown, Db::connect(&in_schema(url, self.schema.as_deref())).await.map_err(Error::from)));
        }
        Ok(dbs)
    }

    pub async fn shards(&self) -> Result<shards::Set> {
        let given = self.given();
        given.iter().try_for_each(|url| check(url))?;
        let shown: Vec<String> = given.iter().map(|url| without_secrets(url)).collect();
        self.say_more(&format!("databases: {}", shown.join(", ")));
        let urls: Vec<String> = given.iter().map(|url| in_schema(url, self.schema.as_deref())).collect();
        Ok(shards::Set::connect(urls).await?)
    }

    fn say(&self, line: &str) {
        if !self.quiet {
            print::note(line);
        }
    }

    /// Reports the database that an option or a variable names, if `--verbose` is set.
    fn say_more(&self, line: &str) {
        if self.verbose {
            print::note(line);
        }
    }

    /// Opens a queue to read or write payloads.
    pub async fn queue(&self, name: &str) -> Result<AnyQueue<Text>> {
        self.any(name).await
    }

    /// Opens a queue to show payloads. An unreadable payload does not hide the other messages.
    pub async fn queue_to_show(&self, name: &str) -> Result<AnyQueue<Readable<Text>>> {
        self.any(name).await
    }

    /// Opens a queue whose payloads are never read, so any payload type is accepted.
    pub async fn queue_unread(&self, name: &str) -> Result<AnyQueue<Unread>> {
        self.any(name).await
    }

    /// Opens a queue for a verb that works only on a single server.
    pub async fn queue_of_one(&self, name: &str) -> Result<Queue<Text>> {
        open(&self.connect().await?, name).await
    }

    async fn any<T: Payload>(&self, name: &str) -> Result<AnyQueue<T>> {
        if self.is_sharded() {
            let shards = self.shards().await?;
            let opened = shards.queue(name).await;
            return Ok(AnyQueue::of_several(opened.map_err(|error| readable(error, name))?));
        }
        Ok(AnyQueue::One(open(&self.connect().await?, name).await?))
    }
}

async fn open<T: Payload>(db: &Db, name: &str) -> Result<Queue<T>> {
    let mut opened = db.queue(name).await;
    for _ in 0..3 {
        // Opening changes nothing, so it is safe to try once more after a broken connection.
        if opened.as_ref().is_err_and(trunkline::Error::is_outcome_unknown) {
            opened = db.queue(name).await;
        }
    }
    match opened {
        Err(error) if error.is_wrong_type() => {
            let payload = db.describe_queue(name).await?.payload;
            let told =
                format!("the payloads of queue {name:?} are of type {payload}, which this program cannot show as text");
            Err(Error::new(told).hint(in_sql(name)))
        }
        opened => Ok(opened?),
    }
}

/// Returns a hint that names the SQL functions, which accept every type.
fn in_sql(name: &str) -> String {
    format!(
        "the SQL functions can: select trunkline.enqueue('{name}', '…'::text), select * from trunkline.take('{name}', 10), \
         select * from trunkline.messages('{name}')"
    )
}

fn readable(error: trunkline::Error, name: &str) -> Error {
    match error.is_wrong_type() {
        true => Error::from(error).hint(in_sql(name)),
        false => error.into(),
    }
}

/// Connects to a private PostgreSQL. libpq's variables do not apply to it.
pub async fn connect_to_private(url: &str) -> Result<Db> {
    let ours = |name: &str| name.starts_with("TRUNKLINE_").then(|| std::env::var(name).ok()).flatten();
    Ok(Db::connect_with(url, ours).await?)
}

/// Describes the database that libpq's variables name, as `NAME=value` pairs without passwords.
/// Returns `None` if they name no server or database.
fn said_by_environment(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let said = |name: &'static str| Some((name, variable(name).filter(|value| !value.is_empty())?));
    ["PGSERVICE", "PGHOST", "PGHOSTADDR", "PGDATABASE"].into_iter().find_map(said)?;
    let shown = ["PGSERVICE", "PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGDATABASE"].into_iter().filter_map(said);
    let shown = shown.map(|(name, value)| match value.contains(['=', '@', ' ']) {
        true => format!("{name}=…"), // the value may be a connection string with a password
        false => format!("{name}={value}"),
    });
    Some(shown.collect::<Vec<_>>().join(" "))
}

/// Starts the private PostgreSQL if it is not running. Returns its connection string and its
/// folder.
pub fn kept() -> Result<(String, String)> {
    let folder = Cluster::usual_place()?;
    let cluster = Cluster::at(&folder).stay(true).progress(progress::download()).start()?;
    Ok((cluster.url("postgres"), folder.display().to_string()))
}

/// Returns the connection string with the requested schema. The library refuses a connection string
/// that names another schema.
fn in_schema(url: &str, schema: Option<&str>) -> String {
    match schema.filter(|schema| !schema.is_empty()) {
        None => url.to_owned(),
        Some(schema) if url.contains("://") => {
            let place = url.rsplit('@').next().unwrap_or(url); // a password may contain a question mark
            let mark = if place.contains('?') { '&' } else { '?' };
            format!("{url}{mark}schema={}", schema.replace('%', "%25").replace('&', "%26"))
        }
        Some(schema) => format!("{url} schema='{}'", schema.replace('\\', "\\\\").replace('\'', "\\'")),
    }
}

/// Refuses a text that is not a connection string. Also refuses a connection string in which part
/// of the password would be parsed as the host. The error does not repeat the text, because it may
/// contain a secret.
fn check(url: &str) -> Result<()> {
    let told = match url.split_once("://") {
        Some(("postgres" | "postgresql", rest)) if is_torn(rest) => {
            let told = "an `@` in the connection string is in the way";
            return Err(
                Error::new(told).hint("the first one ends the login; write an `@` of a password or an option as %40")
            );
        }
        Some(("postgres" | "postgresql", _)) => return Ok(()),
        Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric()) => {
            format!("{scheme}://… is not the address of a PostgreSQL")
        }
        None if url.contains('=') => return Ok(()),
        _ => "this is not a connection string".to_owned(),
    };
    Err(Error::new(told)
        .hint("--database-url and DATABASE_URL have the form postgres://user@host/database or host=… dbname=…"))
}

/// Returns true if the first `@` does not end the login, because another `@` follows in the host or
/// the first `@` is part of an option.
fn is_torn(rest: &str) -> bool {
    rest.split_once('@').is_some_and(|(login, rest)| {
        let is_option = login.split_once('?').is_some_and(|(_, options)| options.contains('='));
        is_option || rest.split(['?', '#']).next().is_some_and(|place| place.contains('@'))
    })
}

/// Returns the user, host and database of a connection string. Leaves out everything else, and any
/// text that could belong to a password in a malformed string.
fn without_secrets(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return words_without_secrets(url) };
    // A password may contain any character except `@`, but users also write an unescaped `@`.
    let (user, rest) = match rest.split_once('@') {
        Some((login, rest)) => {
            let user = login.split(':').next().unwrap_or_default();
            let is_query = login.split_once('?').is_some_and(|(_, options)| options.contains('='));
            if user.contains(['/', '?', '#']) || is_query {
                return format!("{scheme}://…");
            }
            (format!("{user}@"), rest)
        }
        None => (String::new(), rest),
    };
    let (place, options) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let hosts = place.split('/').next().unwrap_or_default();
    let is_port = |host: &str| host.rsplit_once(':').is_none_or(|(_, port)| port.chars().all(|c| c.is_ascii_digit()));
    if options.contains('@') || !hosts.split(',').all(|host| host.ends_with(']') || is_port(host)) {
        return format!("{scheme}://{user}…");
    }
    format!("{scheme}://{user}{place}")
}

fn words_without_secrets(words: &str) -> String {
    let mut shown = Vec::new();
    let mut rest = words.trim_start();
    while let Some((key, after)) = rest.split_once('=') {
        let after = after.trim_start();
        let quote = if after.starts_with('\'') { Some('\'') } else { None };
        let mut escaped = false;
        let end = after.char_indices().skip(usize::from(quote.is_some())).find(|(_, c)| {
            let ends = !escaped && quote.map_or(c.is_whitespace(), |quote| *c == quote);
            escaped = *c == '\\' && !escaped;
            ends
        });
        let end = end.map_or(after.len(), |(at, c)| if quote.is_some() { at + c.len_utf8() } else { at });
        if ["service", "host", "hostaddr", "port", "dbname", "user"].contains(&key.trim()) {
            shown.push(format!("{}={}", key.trim(), &after[..end]));
        }
        rest = after[end..].trim_start();
    }
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::{said_by_environment, without_secrets};

    #[test]
    fn the_environment_names_a_database_or_none() {
        let said = |variables: &[(&str, &str)]| {
            let value = |name: &str| Some(variables.iter().find(|(known, _)| *known == name)?.1.to_owned());
            said_by_environment(value).unwrap_or_default()
        };
        assert_eq!(said(&[("PGPORT", "1"), ("PGUSER", "me"), ("PGPASSWORD", "secret"), ("PGHOST", "")]), "");
        assert_eq!(said(&[("PGUSER", "me"), ("PGPASSWORD", "secret"), ("PGHOST", "h")]), "PGHOST=h PGUSER=me");
        assert_eq!(said(&[("PGSERVICE", "prod")]), "PGSERVICE=prod");
        assert_eq!(said(&[("PGHOSTADDR", "::1"), ("PGDATABASE", "d")]), "PGHOSTADDR=::1 PGDATABASE=d");
        assert_eq!(said(&[("PGDATABASE", "postgres://u:secret@h/d")]), "PGDATABASE=…");
        assert_eq!(said(&[("PGDATABASE", "host=h password=secret")]), "PGDATABASE=…");
    }

    #[test]
    fn no_password_is_shown() {
        let cases = [
            ("postgres://me:secret@host:5433/app?sslmode=require&password=secret", "postgres://me@host:5433/app"),
            ("postgres://me:sec@ret@host/app", "postgres://me@host/app"),
            ("postgresql://host/app", "postgresql://host/app"),
            ("postgres://u:pw#frag@h/d", "postgres://u@h/d"),
            ("postgres://u:pw?frag@h/d?user=x", "postgres://u@h/d"),
            ("postgres://u:p@w?frag@h/d", "postgres://u@…"),
            ("postgres://u:p@w#fr/ag@h/d", "postgres://u@…"),
            ("postgres://u:a/b@h/d", "postgres://u@h/d"),
            ("postgres://u:secret", "postgres://…"),
            ("postgres://h/d?password=sec@ret", "postgres://…"),
            ("postgres://h:5432/d?password=sec@ret", "postgres://…"),
            ("postgres://u@h/d?password=sec@ret", "postgres://u@…"),
            ("postgres://u@h:5432,[::1]:5433,[::2]/d", "postgres://u@h:5432,[::1]:5433,[::2]/d"),
            ("host=/run user=me password='a b\\' host=secret' dbname=app", "host=/run user=me dbname=app"),
            ("password = secret host = 'my host'", "host='my host'"),
            ("service=prod password=secret", "service=prod"),
        ];
        for (url, shown) in cases {
            assert_eq!(without_secrets(url), shown);
        }
    }
}
