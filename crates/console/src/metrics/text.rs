//! The text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write as _};

#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Counter,
    Gauge,
}

#[derive(Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Starts a metric. All its samples must be written before the next metric starts.
    pub fn metric(&mut self, name: &'static str, kind: Kind, help: &str) -> Samples<'_> {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        self.say(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        Samples { text: self, name }
    }

    pub fn into_string(self) -> String {
        self.0
    }

    fn say(&mut self, words: std::fmt::Arguments<'_>) {
        let _ = self.0.write_fmt(words); // writing to a string cannot fail
    }
}

#[derive(Debug)]
pub struct Samples<'a> {
    text: &'a mut Exposition,
    name: &'static str,
}

impl Samples<'_> {
    pub fn add(&mut self, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        let labels: Vec<String> = labels.iter().map(|(label, is)| format!("{label}=\"{}\"", escaped(is))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.text.say(format_args!("{}{labels} {value}\n", self.name));
        self
    }
}

fn escaped(label: &str) -> String {
    label.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_cannot_break_out_of_their_line() {
        let mut text = Exposition::default();
        text.metric("a_metric", Kind::Gauge, "Two\nlines and a \\.")
            .add(&[("queue", "x\"} 1\ny{z=\"\\"), ("state", "due")], 2.5)
            .add(&[], 7);
        let lines = "# HELP a_metric Two\\nlines and a \\\\.\n# TYPE a_metric gauge\n\
                     a_metric{queue=\"x\\\"} 1\\ny{z=\\\"\\\\\",state=\"due\"} 2.5\na_metric 7\n";
        assert_eq!(text.into_string(), lines);
    }
}
