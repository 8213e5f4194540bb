//! Puts the texts of `sql/` into the library, so that no list of them is kept by hand.

use std::{
    env,
    error::Error,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

fn main() -> Result<(), Box<dyn Error>> {
    let sql = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("sql");
    let mut code = String::new();
    for (list, folder) in [("STEPS", "steps"), ("FUNCTIONS", "functions")] {
        writeln!(code, "const {list}: &[(&str, &str)] = &[")?;
        for file in listed(&sql.join(folder))? {
            writeln!(code, "    ({:?}, include_str!({:?})),", name(&file)?, path(&file)?)?;
        }
        writeln!(code, "];")?;
    }
    writeln!(code, "const TEMPLATES: &[(&str, &str, &str)] = &[")?;
    for part in listed(&sql.join("queue"))? {
        for file in listed(&part)? {
            writeln!(code, "    ({:?}, {:?}, include_str!({:?})),", name(&part)?, name(&file)?, path(&file)?)?;
        }
    }
    writeln!(code, "];")?;
    Ok(fs::write(Path::new(&env::var("OUT_DIR")?).join("schema.rs"), code)?)
}

/// Returns the files and folders of a folder, sorted.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut files = fs::read_dir(folder)?.map(|file| Ok(file?.path())).collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    files.sort();
    Ok(files)
}

fn name(file: &Path) -> Result<&str, &'static str> {
    file.file_stem().and_then(|name| name.to_str()).ok_or("a file has a name in UTF-8")
}

fn path(file: &Path) -> Result<&str, &'static str> {
    file.to_str().ok_or("the folder has a name in UTF-8")
}
