//! Builds a contender's sources into a program that can be started.

use trunkline_programs::{Entry, Program, Sources, Unfit, cargo, ran, target};

use crate::contenders::{Contender, Language};

/// The name of our program.
pub const LAYERS: &str = "layers";
/// The name of our program that counts allocations.
pub const COUNTED: &str = "counted";

/// Builds a contender if necessary. `many` is set if its calls have many messages; `own` is the
/// name of our program.
pub fn prepare(contender: &Contender, many: bool, own: &str) -> Result<Program, Unfit> {
    built(contender.language, many, own)
}

fn built(language: Language, many: bool, own: &str) -> Result<Program, Unfit> {
    let peers = Sources::peers()?;
    match language {
        Language::Own(one, more) => layers(if many { more } else { one }, own),
        Language::Caller(language) => in_processes(built(*language, many, own)?, own),
        Language::Plain(words) => in_processes(layers(words, own)?, own),
        Language::Rust(name) => peers.rust(name, Entry::Load),
        Language::Go(name) => peers.go(name, Entry::Load),
        Language::Node(name) => peers.node(name, Entry::Load),
        Language::Python(name) => peers.python(name, Entry::Load),
        Language::Java(name) => peers.java(name, Entry::Load),
    }
}

/// Returns our own program, which runs the given program in one process per caller.
fn in_processes(program: Program, own: &str) -> Result<Program, Unfit> {
    let Program { path, arguments, folder } = program;
    let mut all = layers(&["processes"], own)?;
    all.arguments.push(path.to_string_lossy().into_owned());
    all.arguments.extend(arguments);
    Ok(Program { folder, ..all })
}

fn layers(words: &[&str], own: &str) -> Result<Program, Unfit> {
    let target = target()?;
    let (profile, release) = if cfg!(debug_assertions) { ("debug", None) } else { ("release", Some("--release")) };
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked", "-p", "trunkline-layers", "--bin", own]).args(release);
    build.arg("--target-dir").arg(&target).current_dir(env!("CARGO_MANIFEST_DIR"));
    ran(build, "cargo")?;
    let arguments = words.iter().map(ToString::to_string).collect();
    Ok(Program { path: target.join(profile).join(own), arguments, folder: target })
}
