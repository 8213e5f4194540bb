use crate::error::{Error, Result};
use std::borrow::Cow;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Unpacks the jar's only tar archive, which is compressed with xz.
pub(crate) fn unpack(jar: &Path, to: &Path) -> Result<()> {
    let failed = |why: String| Error::new(format!("cannot unpack {} into {}: {why}", jar.display(), to.display()));
    let file = File::open(jar).map_err(Error::at("cannot open", jar))?;
    let mut zip = zip::ZipArchive::new(BufReader::new(file)).map_err(|why| failed(why.to_string()))?;
    let name = zip.file_names().flatten().find(|name| name.ends_with(".txz")).map(Cow::into_owned);
    let name = name.ok_or_else(|| failed("it contains no .txz file".to_owned()))?;
    let packed = zip.by_name(&name).map_err(|why| failed(why.to_string()))?;
    let unpacked = lzma_rust2::XzReader::new(BufReader::new(packed), true);
    tar::Archive::new(unpacked).unpack(to).map_err(|why| failed(why.to_string()))
}
