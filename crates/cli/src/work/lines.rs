//! Splits the output of a command into lines with a prefix.

/// The maximum length of a line. Longer lines are split, to limit the memory.
const LONGEST: usize = 16 << 10;

pub struct OutputLines {
    prefix: Vec<u8>,
    /// The bytes after the last line break.
    open: Vec<u8>,
}

impl OutputLines {
    pub fn new(prefix: impl Into<Vec<u8>>) -> Self {
        Self { prefix: prefix.into(), open: Vec::new() }
    }

    /// Adds output. Returns the lines that are now complete.
    pub fn add(&mut self, written: &[u8]) -> Vec<u8> {
        let mut whole = Vec::new();
        for piece in written.split_inclusive(|byte| *byte == b'\n') {
            self.open.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.open.len() >= LONGEST {
                self.close(&mut whole);
            }
        }
        whole
    }

    /// Returns the rest of the output, with a line break at its end.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut whole = Vec::new();
        if !self.open.is_empty() {
            self.close(&mut whole);
        }
        whole
    }

    fn close(&mut self, whole: &mut Vec<u8>) {
        whole.extend_from_slice(&self.prefix);
        whole.append(&mut self.open);
        if whole.last() != Some(&b'\n') {
            whole.push(b'\n');
        }
    }
}

/// The last lines of a command's output.
#[derive(Debug, Default)]
pub struct LastLines(Vec<u8>);

impl LastLines {
    /// The maximum number of bytes that are kept.
    const MOST: usize = 4 << 10;

    pub fn add(&mut self, written: &[u8]) {
        self.0.extend_from_slice(written);
        if self.0.len() > 4 * Self::MOST {
            self.0.drain(..self.0.len() - Self::MOST);
        }
    }

    pub fn text(&self) -> String {
        let all = self.0.trim_ascii_end();
        let mut last = &all[all.len().saturating_sub(Self::MOST)..];
        if last.len() < all.len()
            && let Some(end) = last.iter().position(|byte| *byte == b'\n')
        {
            last = &last[end + 1..]; // drops a line that is incomplete
        }
        String::from_utf8_lossy(last).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn lines_are_whole_however_they_were_written() {
        let mut lines = OutputLines::new("q 7 | ");
        assert_eq!(text(lines.add(b"one\ntw")), "q 7 | one\n");
        assert_eq!(text(lines.add(b"")), "");
        assert_eq!(text(lines.add(b"o\n\nthree")), "q 7 | two\nq 7 | \n");
        assert_eq!(text(lines.rest()), "q 7 | three\n");
        assert_eq!(text(lines.rest()), "");
    }

    #[test]
    fn a_line_without_end_is_cut_and_held_no_longer() {
        let mut lines = OutputLines::new("| ");
        let mut out = Vec::new();
        for _ in 0..100 {
            out.extend(lines.add(&[b'x'; 1000]));
            assert!(lines.open.len() < LONGEST + 1000);
        }
        out.extend(lines.rest());
        assert!(out.split(|byte| *byte == b'\n').all(|line| line.is_empty() || line.starts_with(b"| x")));
        assert_eq!(text(out).matches('x').count(), 100_000);
    }

    #[test]
    fn the_last_lines_are_kept_and_no_half_line() {
        let mut last = LastLines::default();
        last.add(b"one\ntwo\n");
        assert_eq!(last.text(), "one\ntwo");
        for number in 0..100_000 {
            last.add(format!("line {number}\n").as_bytes());
            assert!(last.0.len() <= 5 * LastLines::MOST);
        }
        let text = last.text();
        assert!(text.len() <= LastLines::MOST && text.ends_with("line 99999"), "{text}");
        assert!(text.lines().all(|line| line.starts_with("line ")), "{text}");
    }
}
