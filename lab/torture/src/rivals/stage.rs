//! Runs a rival. Each rival has the same processes, messages and faults.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde::Deserialize;
use tokio_postgres::Client;
use trunkline_programs::{Program, say};

use super::{judge::EXACT, list::Rival, payload, turns::Done, verdict::Record};
use crate::{
    crew::{Crew, Launch},
    faults::{Fault, Scene, schedule},
    folder::{About, Folder},
    ground::{self, Ground},
    history::now,
    plan::MAX_ATTEMPTS,
    tables::{Entry, Kept, Tables, Waiting},
};

const FAULTS: [Fault; 4] = [Fault::Kill, Fault::Stop, Fault::Terminate, Fault::Crash];
const CONSUMERS: usize = 3;
/// The duration of the shortest stop of a process in the schedule.
const SHORTEST_STOP: u64 = 2_500;
const LEDGER: &str =
    "create table public.ledger (tag bigint not null, op text not null); alter table public.ledger owner to torture";

/// The output of an adapter after the installation.
#[derive(Debug, Deserialize)]
struct Installed {
    version: String,
    settings: String,
}

pub fn run(rival: &Rival, program: &Program, into: &Path, seed: u64, seconds: u64) -> Result<(), String> {
    say(format_args!("{}: seed {seed}, {seconds} s, in {}", rival.name, into.display()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(act(rival, program, &Folder::create(into)?, seed, seconds))
}

async fn act(rival: &Rival, program: &Program, folder: &Folder, seed: u64, seconds: u64) -> Result<(), String> {
    let ground = Ground::start(&[]).await?;
    let client = ground.enroll().await?;
    let launch = launch(rival, program, &ground, seed);
    let installed = install(&launch, folder)?;
    for text in [LEDGER, rival.prepare] {
        client.batch_execute(text).await.map_err(|error| format!("{}: {error}", rival.name))?;
    }
    let server = client.query_one("select current_setting('server_version')", &[]).await;
    let server = server.map(|row| row.get(0)).map_err(|error| error.to_string())?;
    let ticking = tokio::spawn(tick(ground.direct(), rival.tick));
    let mut crew = Crew::new(folder.clone(), launch);
    let began = now();
    crew.add("produce")?;
    for _ in 0..CONSUMERS {
        crew.add("consume")?;
    }
    let mut scene = Scene::new(ground, crew);
    for mut planned in schedule(seed, seconds, &FAULTS) {
        if planned.fault == Fault::Stop {
            planned.lasts_ms = planned.lasts_ms - SHORTEST_STOP + rival.stop_ms;
        }
        if now() - began + (planned.after_ms + planned.lasts_ms) * 1000 > seconds * 1_000_000 {
            break;
        }
        scene.pass(planned.after_ms).await?;
        scene.strike(&planned).await?;
    }
    let gone = now() - began;
    scene.pass((seconds * 1000).saturating_sub(gone / 1000)).await?;
    let ended = now();
    scene.crew.end_part("produce");
    let drained = drain(rival, &mut scene).await?;
    scene.crew.end();
    let client = ground::client(&scene.ground.direct()).await?;
    let (mut tables, done) = left(rival, &client).await?;
    if drained {
        // A message that still waits after the drain was in a pause between two attempts. So it was
        // not lost, even if the pause has ended in the meantime.
        tables.dead.extend(tables.waiting.drain(..).map(kept));
    }
    ticking.abort();
    let about = About {
        seed,
        seconds,
        faults: FAULTS.iter().map(|fault| fault.name()).collect(),
        mutant: None,
        server,
        began,
        ended,
        misbehaved: std::mem::take(&mut scene.crew.misbehaved),
        skipped: Vec::new(),
    };
    let log = std::fs::read(scene.ground.cluster.log_file()).unwrap_or_default();
    folder.write("server.log", log)?;
    folder.keep("about.json", &about)?;
    folder.keep("faults.json", &scene.happened)?;
    folder.keep("samples.json", &scene.samples)?;
    folder.keep("tables.json", &tables)?;
    folder.keep("record.json", &Record { version: installed.version, settings: installed.settings, done })
}

/// Returns the launcher of a rival's processes. The environment names each process's part
/// (`lab/peers/README.md`).
fn launch(rival: &Rival, program: &Program, ground: &Ground, seed: u64) -> Launch {
    let (program, uri, lease) = (program.clone(), ground.uri(), rival.lease_ms);
    Box::new(move |start| {
        let mut command = Command::new(&program.path);
        command.args(&program.arguments).current_dir(&program.folder);
        command.env("RIVAL_URL", &uri).env("RIVAL_PART", start.part).env("RIVAL_HISTORY", &start.history);
        command.env("RIVAL_NR", start.nr.to_string()).env("RIVAL_SEED", seed.to_string());
        command.env("RIVAL_LEASE_MS", lease.to_string()).env("RIVAL_ATTEMPTS", MAX_ATTEMPTS.to_string());
        command.env("RUST_BACKTRACE", "0");
        Ok(command)
    })
}

fn install(launch: &Launch, folder: &Folder) -> Result<Installed, String> {
    let start = crate::crew::Start { part: "install", nr: 0, history: folder.history("install") };
    let mut command = launch(&start).map_err(|error| error.to_string())?;
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("the adapter cannot be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("the adapter cannot install: {}", output.status));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("the adapter does not say what it installed: {error}"))
}

/// Runs a statement twice a second, in a session that is reopened after a crash of the server.
async fn tick(url: String, text: &'static str) {
    let mut client: Option<Client> = None;
    while !text.is_empty() {
        if let Some(open) = client.take_if(|open| !open.is_closed()) {
            let _ = open.batch_execute(text).await; // the next round tries again
            client = Some(open);
        } else {
            client = ground::client(&url).await.ok();
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Waits until no message is waiting, for at most `drain_secs`. Returns true if none is.
async fn drain(rival: &Rival, scene: &mut Scene) -> Result<bool, String> {
    let until = Instant::now() + Duration::from_secs(rival.drain_secs);
    while Instant::now() < until {
        let (tables, _) = left(rival, scene.client().await?).await?;
        if tables.waiting.is_empty() {
            return Ok(true);
        }
        scene.pass(500).await?;
    }
    Ok(false)
}

fn kept(Waiting { queue, id, attempt, tag }: Waiting) -> Kept {
    Kept { queue, id, attempt, tag, error: crate::plan::BURIED.to_owned() }
}

async fn left(rival: &Rival, client: &Client) -> Result<(Tables, Vec<Done>), String> {
    let failed = |error: tokio_postgres::Error| format!("cannot read the tables of {}: {error}", rival.name);
    let (mut tables, mut done) = (Tables::default(), Vec::new());
    for row in client.query(rival.left, &[]).await.map_err(failed)? {
        let (queue, id, text): (&str, i64, Option<&str>) = (row.get(0), row.get(1), row.get(2));
        let (queue, tag, attempt) = (queue.to_owned(), text.map_or(0, payload::tag), row.get(4));
        let message = Waiting { queue, id, attempt, tag };
        match row.get(3) {
            "waiting" => tables.waiting.push(message),
            "dead" => tables.dead.push(kept(message)),
            "done" => done.push(Done {
                queue: message.queue,
                id,
                at: row.get::<_, Option<f64>>(5).unwrap_or_default() as u64,
            }),
            state => return Err(format!("{} has a message in the state {state:?}", rival.name)),
        }
    }
    for row in client.query("select tag, op from public.ledger", &[]).await.map_err(failed)? {
        tables.ledger.push(Entry { tag: row.get::<_, i64>(0).cast_unsigned(), amount: 0, op: row.get(1) });
    }
    debug_assert!(tables.waiting.iter().all(|one| one.queue == EXACT || one.queue == "work"));
    Ok((tables, done))
}
