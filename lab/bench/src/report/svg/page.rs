//! The page that a figure is drawn on: its words are escaped, and its colours follow the reader's.

use std::fmt::Write;

pub const WIDTH: f64 = 840.0;
/// Ours are heavier as well as coloured. The lines of peers have six colours and three kinds of
/// dashes.
const STYLE: &str = "\
text{font-family:system-ui,'Segoe UI',Helvetica,Arial,sans-serif;font-size:12px;fill:#1f2328}\
.title{font-size:16px;font-weight:600}.head{font-weight:600}.dim{font-size:11px;fill:#59636e}.ours{font-weight:700}\
.words{font-size:11px;font-style:italic;fill:#59636e}.grid{stroke:#d1d9e0}.whisker{stroke:#1f2328}\
.bar{fill:#8c959f}.bar.us{fill:#0969da}.line{fill:none;stroke-width:1.6}.line.us{stroke-width:3.2}\
.range{stroke:#8c959f;stroke-width:3}.range.us{stroke:#0969da;stroke-width:5}.lead{stroke-width:.8;fill:none}\
.c0{stroke:#bc4c00}.c1{stroke:#8250df}.c2{stroke:#1a7f37}.c3{stroke:#bf3989}.c4{stroke:#7d6100}.c5{stroke:#57606a}\
.c-us{stroke:#0969da}.d1{stroke-dasharray:7 3}.d2{stroke-dasharray:2 3}";
const DARK: &str = "\
text{fill:#e6edf3}.dim,.words{fill:#9da7b1}.grid{stroke:#3d444d}.whisker{stroke:#e6edf3}\
.bar{fill:#7d8590}.bar.us{fill:#4493f8}.range{stroke:#7d8590}.range.us{stroke:#4493f8}\
.c0{stroke:#f0883e}.c1{stroke:#bc8cff}.c2{stroke:#56d364}.c3{stroke:#ff7bac}.c4{stroke:#e3b341}.c5{stroke:#9da7b1}\
.c-us{stroke:#4493f8}";

#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// What was drawn so far, and how far down it reaches.
pub struct Page {
    body: String,
    title: String,
    about: String,
    /// Where the next thing goes.
    pub y: f64,
}

impl Page {
    /// A page with its title and what it shows; both are there for screen readers, too.
    pub fn new(title: &str, about: &str) -> Self {
        let mut page = Self { body: String::new(), title: title.into(), about: about.into(), y: 24.0 };
        page.text("title", 12.0, page.y, Anchor::Start, title);
        page.y += 4.0;
        page.paragraph("dim", about);
        page.y += 6.0;
        page
    }

    /// Words over the whole width, broken where they are too long.
    pub fn paragraph(&mut self, class: &str, words: &str) {
        let room = WIDTH - 24.0;
        let mut line = String::new();
        for word in words.split_whitespace() {
            if !line.is_empty() && width(&line, 11.0) + width(word, 11.0) + 4.0 > room {
                self.y += 15.0;
                self.text(class, 12.0, self.y, Anchor::Start, &line);
                line.clear();
            }
            line += if line.is_empty() { "" } else { " " };
            line += word;
        }
        self.y += 15.0;
        self.text(class, 12.0, self.y, Anchor::Start, &line);
    }

    pub fn text(&mut self, class: &str, x: f64, y: f64, anchor: Anchor, words: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let words = escape(words);
        let _ = writeln!(self.body, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\"{anchor}>{words}</text>");
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(self.body, "<path class=\"{class}\" d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\"/>");
    }

    /// An upright line, broken where something stands in its way.
    pub fn upright(&mut self, class: &str, x: f64, pieces: &[(f64, f64)]) {
        let mut way = String::new();
        for (from, to) in pieces {
            let _ = write!(way, "M{x:.1} {from:.1}V{to:.1}");
        }
        let _ = writeln!(self.body, "<path class=\"{class}\" d=\"{way}\"/>");
    }

    /// A line through all these points.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut way = String::new();
        for (at, (x, y)) in points.iter().enumerate() {
            let _ = write!(way, "{}{x:.1} {y:.1}", if at == 0 { 'M' } else { 'L' });
        }
        let _ = writeln!(self.body, "<path class=\"{class}\" d=\"{way}\"/>");
    }

    pub fn bar(&mut self, class: &str, (x, y): (f64, f64), width: f64, height: f64) {
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"1.5\"/>"
        );
    }

    /// The figure's file; nothing is drawn behind it.
    pub fn finish(self) -> String {
        let height = self.y + 12.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" height=\"{height:.0}\" \
             role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">{}</title>\n<desc id=\"desc\">{}</desc>\n\
             <style>{STYLE}@media (prefers-color-scheme:dark){{{DARK}}}</style>\n{}</svg>\n",
            escape(&self.title),
            escape(&self.about),
            self.body
        )
    }
}

/// How wide words are in the widest of the usual fonts.
pub fn width(words: &str, size: f64) -> f64 {
    words.chars().map(letter).sum::<f64>() * size
}

/// The same in bold.
pub fn bold_width(words: &str, size: f64) -> f64 {
    width(words, size) * 1.12
}

/// Words cut so that they fit.
pub fn cut(words: &str, room: f64, size: f64) -> String {
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if width(&words, size) <= room + 0.1 {
        return words;
    }
    let mut left = room - size;
    let fits = |next: &char| {
        left -= letter(*next) * size;
        left > 0.0
    };
    words.chars().take_while(fits).chain(['…']).collect()
}

fn letter(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ' ' | '·' | '|' | '\'' => 0.32,
        'f' | 'r' | 't' | '-' | '(' | ')' => 0.41,
        'm' | 'w' | 'M' | 'W' | '×' | '%' => 0.97,
        letter if letter.is_uppercase() => 0.72,
        _ => 0.64,
    }
}

fn escape(words: &str) -> String {
    let words: String = words.chars().filter(|letter| !letter.is_control()).collect();
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
