//! The same report as one page for a browser: its figures are in it.

use std::{fs, io::ErrorKind, path::Path};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html::push_html};

use crate::Failure;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:80rem;padding:0 1rem}\
table{border-collapse:collapse;display:block;overflow-x:auto;margin:1rem 0}th,td{border:1px solid #ccc;padding:.2rem .6rem}\
th{background:#f4f4f4;position:sticky;top:0}code{font-size:.95em}svg{max-width:100%;height:auto}";

/// The text as a page, with the figures of this folder that it links to.
pub fn page(text: &str, folder: &Path) -> Result<String, Failure> {
    let mut figures = Vec::new();
    let mut inside = false;
    let mut events = Vec::new();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Image { dest_url, .. }) if dest_url.ends_with(".svg") => {
                inside = true;
                let figure = figure(&folder.join(&*dest_url))?;
                events.push(Event::InlineHtml(format!("<!-- figure {} -->", figures.len()).into()));
                figures.push(figure);
            }
            Event::End(TagEnd::Image) if inside => inside = false,
            _ if inside => {}
            event => events.push(event),
        }
    }
    let mut body = String::new();
    push_html(&mut body, events.into_iter());
    for (at, figure) in figures.iter().enumerate() {
        body = body.replace(&format!("<!-- figure {at} -->"), figure);
    }
    let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or("Results");
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n{body}</body>\n</html>\n"
    ))
}

/// The drawing itself, without the words before it that are for a file of its own.
fn figure(file: &Path) -> Result<String, Failure> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(text.find("<svg").map_or(String::new(), |at| text[at..].to_owned())),
        Err(failure) if failure.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(failure) => Err(failure.into()),
    }
}
