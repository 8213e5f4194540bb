//! Puts the texts of `sql/` into the library, so that no list of them is kept by hand.

#[path = "build/listing.rs"]
mod listing;

use std::{env, error::Error, fmt::Write, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let sql = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("sql");
    let mut code = String::new();
    for (list, folder) in [("STEPS", "steps"), ("FUNCTIONS", "functions")] {
        writeln!(code, "const {list}: &[(&str, &str)] = &[")?;
        for file in listing::files(watched(&sql.join(folder)))? {
            writeln!(code, "    ({:?}, include_str!({:?})),", name(&file)?, path(&file)?)?;
        }
        writeln!(code, "];")?;
    }
    writeln!(code, "const TEMPLATES: &[(&str, &str, &str)] = &[")?;
    for part in listing::folders(watched(&sql.join("queue")))? {
        for file in listing::files(watched(&part))? {
            writeln!(code, "    ({:?}, {:?}, include_str!({:?})),", name(&part)?, name(&file)?, path(&file)?)?;
        }
    }
    writeln!(code, "];")?;
    Ok(fs::write(Path::new(&env::var("OUT_DIR")?).join("schema.rs"), code)?)
}

/// Lets cargo run this program again when something in the folder changes.
fn watched(folder: &Path) -> &Path {
    println!("cargo:rerun-if-changed={}", folder.display());
    folder
}

fn name(file: &Path) -> Result<&str, String> {
    let name = file.file_stem().and_then(|name| name.to_str());
    name.ok_or_else(|| format!("{}: the name is not UTF-8", file.display()))
}

fn path(file: &Path) -> Result<&str, String> {
    file.to_str().ok_or_else(|| format!("{}: the path is not UTF-8", file.display()))
}
