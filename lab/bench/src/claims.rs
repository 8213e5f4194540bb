//! Measures claims about what makes queues on Postgres faster. Each claim compares two or more ways
//! to do the same thing, which take turns.

mod each;
mod emptied;
mod marked;

use std::fmt::Write;

use tokio_postgres::Client;
use trunkline_programs::{machine, say};

use self::{each::EACH, emptied::EMPTIED, marked::MARKED};
use crate::{
    Claims, Failure,
    ground::Ground,
    report::{date, markdown::Table, number},
    results::{Server, Spread},
    tree,
};

/// A claim, and the ways that test it.
pub struct Claim {
    pub name: &'static str,
    pub says: &'static str,
    /// The SQL that creates the claim's tables; it runs once.
    tables: &'static str,
    ways: &'static [Way],
    kind: Kind,
}

pub struct Way {
    name: &'static str,
    sql: &'static str,
}

#[derive(Clone, Copy)]
enum Kind {
    /// A prepared statement that runs repeatedly in one transaction.
    Each,
    /// A table that is filled and emptied while another session holds a snapshot.
    Emptied,
    /// A table whose messages are dequeued, perhaps while another session holds a snapshot.
    Marked { held: bool },
}

/// The title of a figure, and its format.
type Column = (&'static str, fn(f64) -> String);

/// The figures of one turn, in the order of the columns of the claim's kind.
type Turn = Vec<f64>;

pub async fn run(asked: &Claims) -> Result<(), Failure> {
    let file = match &asked.markdown {
        Some(file) => file.clone(),
        None => tree::runs()?.join("claims.md"),
    };
    tree::outside(&file)?;
    let is_asked = |claim: &&Claim| {
        asked.patterns.is_empty() || asked.patterns.iter().any(|pattern| claim.name.contains(pattern.as_str()))
    };
    let claims: Vec<&Claim> = EACH.iter().chain(EMPTIED).chain(MARKED).filter(is_asked).collect();
    if claims.is_empty() {
        return Err("no claim has such a name".into());
    }
    let began = tree::now();
    let mut ground = Ground::start(&asked.server.wanted()).await?;
    let mut sections = String::new();
    for claim in claims {
        let database = ground.database(false, 0).await?;
        let turns = turns(claim, &database.client, &ground, &database.name, asked).await;
        if !asked.server.skip_cleanup {
            ground.drop(database).await?;
        }
        sections += &section(claim, &turns?, asked);
        say(claim.name);
    }
    let text = head(&ground.server, asked, began) + &sections;
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&file, text)?;
    say(file.display());
    Ok(())
}

/// Runs the turns of all ways. The first turn of each way does not count, because its tables are
/// not cached and its plans are not made yet.
async fn turns(
    claim: &Claim,
    client: &Client,
    ground: &Ground,
    database: &str,
    asked: &Claims,
) -> Result<Vec<Vec<Turn>>, Failure> {
    client.batch_execute(claim.tables).await?;
    let mut all: Vec<Vec<Turn>> = claim.ways.iter().map(|_| Vec::new()).collect();
    for round in 0..=asked.rounds {
        for (way, turns) in claim.ways.iter().zip(&mut all) {
            let turn = match claim.kind {
                Kind::Each => each::turn(client, way.sql, asked.rows).await,
                Kind::Emptied => emptied::turn(client, ground, database, way.sql, asked.rows).await,
                Kind::Marked { held } => marked::turn(client, ground, database, way.sql, (asked.rows, held)).await,
            };
            let turn = turn.map_err(|failure| format!("{}, {}: {failure}", claim.name, way.name))?;
            if round > 0 {
                turns.push(turn);
            }
        }
    }
    Ok(all)
}

fn head(server: &Server, asked: &Claims, began: u64) -> String {
    let made = tree::made();
    format!(
        "# What queues on Postgres are said to gain by\n\nMade by `trunkline-bench {}`, commit `{}`, {} build, from {} to {}: {} rounds of {} \
         rows. PostgreSQL {}, fsync {}, synchronous_commit {}, {}; {}, shared with the client. A figure is the median of its rounds, in \
         brackets the least and the most; the first round of each way is not counted.\n\n",
        made.arguments,
        made.commit,
        made.build,
        date(began),
        date(tree::now()),
        asked.rounds,
        asked.rows,
        server.version,
        server.fsync,
        server.synchronous_commit,
        server.connection,
        machine::described(),
    )
}

fn section(claim: &Claim, turns: &[Vec<Turn>], asked: &Claims) -> String {
    let columns: &[Column] = match claim.kind {
        Kind::Each => each::COLUMNS,
        Kind::Emptied => emptied::COLUMNS,
        Kind::Marked { .. } => marked::COLUMNS,
    };
    let titles = ["way".to_owned()].into_iter();
    let titles = titles.chain(columns.iter().flat_map(|(title, _)| [(*title).to_owned(), "to the first".to_owned()]));
    let mut table = Table::new(titles);
    let spread = |turns: &[Turn], column: usize| {
        Spread::of(turns.iter().map(|turn| turn[column]).collect()).unwrap_or(Spread {
            median: 0.0,
            least: 0.0,
            most: 0.0,
        })
    };
    for (way, of) in claim.ways.iter().zip(turns) {
        let mut cells = vec![Some(way.name.to_owned())];
        for (column, (_, show)) in columns.iter().enumerate() {
            let (here, first) = (spread(of, column), spread(&turns[0], column));
            let told = format!("{} ({}–{})", show(here.median), show(here.least), show(here.most));
            let says = !here.scatters() && !first.scatters();
            cells.push(Some(if here.scatters() {
                format!("says nothing ({}–{})", show(here.least), show(here.most))
            } else {
                told
            }));
            cells.push(says.then(|| number::times(here.median / first.median)));
        }
        table.row(cells);
    }
    let mut text = format!("## {}\n\n{}\n\n{}", claim.name, claim.says, table.text());
    for way in claim.ways {
        let _ = writeln!(text, "- {}: `{}`", way.name, way.sql.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    let rounds = asked.rounds;
    let _ = writeln!(
        text,
        "\nAgain: `cargo run --release --manifest-path lab/Cargo.toml -p trunkline-bench -- claims --rounds {rounds} --rows {} -p '{}'`\n",
        asked.rows, claim.name
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_says_its_command_its_ways_and_what_scatters() {
        let asked = Claims {
            server: crate::ServerArgs {
                database_url: None,
                settings: Vec::new(),
                programs: None,
                tcp: false,
                skip_cleanup: false,
            },
            rounds: 2,
            rows: 100,
            patterns: Vec::new(),
            markdown: None,
        };
        let text = section(&EACH[0], &[vec![vec![10.0], vec![11.0]], vec![vec![5.0], vec![50.0]]], &asked);
        assert!(text.contains("| 10.5 µs (10.0 µs–11.0 µs) | ×1.00 |"), "{text}");
        assert!(text.contains("| says nothing (5.00 µs–50.0 µs) | – |"), "{text}");
        assert!(text.contains(&format!("claims --rounds 2 --rows 100 -p '{}'", EACH[0].name)), "{text}");
        assert!(EACH.iter().chain(EMPTIED).chain(MARKED).all(|claim| claim.ways.len() > 1));
    }
}
