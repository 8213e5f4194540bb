//! Runs the README and the guide, block after block, against the database of `DATABASE_URL`, with
//! `trunkline` in `PATH`.

mod table;
mod guide;
#[allow(unused, clippy::all, clippy::pedantic)]
mod chapters {
    use crate::guide::{Guide, Outcome};

    include!(concat!(env!("OUT_DIR"), "/chapters.rs"));
}

#[tokio::main]
async fn main() -> guide::Outcome {
    let guide = guide::Guide::new(&std::env::var("DATABASE_URL")?).await?;
    chapters::all(&guide).await?;
    guide.ends();
    Ok(())
}
