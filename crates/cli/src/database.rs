//! The database that the verbs work on.

use clap::{ArgMatches, parser::ValueSource};
use trunkline::{Db, Payload, Queue, Readable, shards};
use trunkline_embedded::Cluster;

use crate::{
    address::{check, in_schema, said_by_environment, without_secrets},
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
pub fn check_options(given: &ArgMatches) -> Result<()> {
    if let Some((_, given)) = given.subcommand() {
        return check_options(given); // has the options of all commands, wherever they were given
    }
    let is_option = given.value_source("urls") == Some(ValueSource::CommandLine);
    if is_option && given.get_many("urls").is_some_and(|mut urls| urls.any(|url: &String| url.trim().is_empty())) {
        return Err(Error::usage("--database-url: the connection string is empty")
            .hint("name a database, or leave the option out"));
    }
    Ok(())
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

    /// Describes the databases and the schema, without secrets, for a question.
    pub fn place(&self) -> String {
        let schema = self.schema.as_deref().filter(|schema| !schema.is_empty());
        let given: Vec<String> = self.given().iter().map(|url| without_secrets(&in_schema(url, schema))).collect();
        if !given.is_empty() {
            return given.join(" and ");
        }
        let said = said_by_environment(|name| std::env::var(name).ok());
        let said = said.unwrap_or_else(|| "the private PostgreSQL".to_owned());
        schema.map_or_else(|| said.clone(), |schema| format!("{said} schema={schema}"))
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

/// Starts the private PostgreSQL if it is not running. Returns its connection string and its
/// folder.
pub fn kept() -> Result<(String, String)> {
    let folder = Cluster::usual_place()?;
    let cluster = Cluster::at(&folder).stay(true).progress(progress::download()).start()?;
    Ok((cluster.url("postgres"), folder.display().to_string()))
}
