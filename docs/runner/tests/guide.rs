//! Runs the README and the guide as they stand, from the first block to the last, on the private
//! database of a new user.

use std::{
    collections::BTreeSet,
    env,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use trunkline_embedded::Cluster;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The home of a new user. Dropping the value removes the folder.
struct Home(PathBuf);

impl Home {
    /// Creates a folder that other users may enter, regardless of the umask: root's server belongs
    /// to another user.
    fn new() -> Self {
        let is_open = |folder: &Path| folder.metadata().is_ok_and(|found| found.permissions().mode() & 0o001 != 0);
        let temporary = env::temp_dir();
        let place = if temporary.ancestors().all(is_open) { temporary } else { PathBuf::from("/tmp") };
        // Tries several names, because a killed process with the same id may have left a folder.
        let name = |number: u32| place.join(format!("trunkline-guide-{}-{number}", std::process::id()));
        let home = (0..1000).map(name).find(|home| fs::create_dir(home).is_ok()).expect("a new folder");
        fs::set_permissions(&home, Permissions::from_mode(0o755)).expect("the folder belongs to the test");
        fs::create_dir(home.join("work")).expect("a folder");
        Self(home)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// A new user. Their private server ends with this process, even if the process is killed.
struct Reader {
    // Dropped first, so that the server ends before its folder is removed.
    server: Cluster,
    home: Home,
    programs: PathBuf,
}

impl Reader {
    fn new() -> Self {
        let home = Home::new();
        let programs = Path::new(env!("CARGO_BIN_EXE_trunkline-guide")).parent().expect("a folder").to_owned();
        assert!(
            programs.join("trunkline").exists(),
            "the guide uses the program: `cargo build -p trunkline-cli`, or test the whole workspace"
        );
        let place = home.0.join("trunkline/postgres");
        let server = Cluster::at(&place).start().expect("a private PostgreSQL starts");
        let reader = Self { server, home, programs };
        // Root's program uses the machine's own private PostgreSQL if the server's account cannot
        // enter this home. The blocks must not change that one.
        let status = reader.run("trunkline", &["postgres", "status"], None);
        let shown = String::from_utf8_lossy(&status.stdout).into_owned();
        assert!(shown.trim_end().ends_with(&format!(" in {}", place.display())), "{status:?}");
        reader
    }

    fn run(&self, program: &str, args: &[&str], url: Option<&str>) -> Output {
        let path = format!("{}:{}", self.programs.display(), env::var("PATH").unwrap_or_default());
        let mut command = Command::new(self.programs.join(program));
        for (name, _) in env::vars().filter(|(name, _)| name.starts_with("PG") || name == "TRUNKLINE_SCHEMA") {
            command.env_remove(name);
        }
        command.args(args).current_dir(self.home.0.join("work")).env("PATH", path).env_remove("DATABASE_URL");
        command.env("HOME", &self.home.0).env("XDG_DATA_HOME", &self.home.0);
        // Share the cache of downloads, so that each reader does not fetch them again.
        let caches = || Some(PathBuf::from(env::var_os("HOME")?).join(".cache"));
        if let Some(cache) = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(caches) {
            command.env("XDG_CACHE_HOME", cache);
        }
        if let Some(url) = url {
            command.env("DATABASE_URL", url);
        }
        command.output().expect("it runs")
    }
}

#[test]
fn every_block_runs_in_order_against_one_database() {
    let reader = Reader::new();
    let started = reader.run("trunkline", &["postgres", "url"], None);
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    let url = String::from_utf8(started.stdout).expect("text");
    assert_eq!(url.trim(), reader.server.url("postgres"));
    let ran = reader.run("trunkline-guide", &[], Some(url.trim()));
    let (said, complaint) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}{complaint}");
    let blocks = said.lines().last().and_then(|line| line.strip_suffix(" blocks ran")?.parse::<usize>().ok());
    assert!(blocks.is_some_and(|blocks| blocks >= 50), "{said}");
}

/// The pages of the guide and of the design, by their paths within `docs`.
fn chapters() -> BTreeSet<String> {
    let pages = |inside: &str| {
        let folder = fs::read_dir(root().join("docs").join(inside)).expect("the guide is there");
        let names = folder.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
        let pages = names.filter(|name| Path::new(name).extension().is_some_and(|ending| ending == "md"));
        pages.map(|name| format!("{inside}{name}")).collect::<Vec<_>>()
    };
    ["", "design/"].into_iter().flat_map(pages).collect()
}

#[test]
fn the_summary_lists_every_chapter() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).expect("a summary");
    let listed = summary.lines().filter_map(|line| Some(line.split_once("](")?.1.strip_suffix(')')?.to_owned()));
    let mut there = chapters();
    there.remove("SUMMARY.md");
    assert_eq!(listed.collect::<BTreeSet<_>>(), there);
}

/// The targets of a page's links, without those in code.
fn links(text: &str) -> Vec<&str> {
    let mut inside = false;
    let prose = text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    });
    prose.flat_map(|line| line.split("](").skip(1).filter_map(|rest| rest.split(')').next())).collect()
}

/// The anchor of a heading, as forges and mdBook compute it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut pages: Vec<PathBuf> = chapters().iter().map(|name| root().join("docs").join(name)).collect();
    pages.push(root().join("README.md"));
    let mut broken = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page");
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (path, place) = link.split_once('#').map_or((link, None), |(path, place)| (path, Some(place)));
            let target = if path.is_empty() { page.clone() } else { page.with_file_name("").join(path) };
            let there = target.exists()
                && place.is_none_or(|place| {
                    let text = fs::read_to_string(&target).unwrap_or_default();
                    text.lines()
                        .any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#').trim()) == place)
                });
            if !there {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn the_readme_is_a_front_door() {
    let lines = fs::read_to_string(root().join("README.md")).expect("a page").lines().count();
    assert!(lines <= 130, "{lines} lines: move some to the guide");
}
