//! Formats JSON for people: indented, with coloured keys and values. Numbers and the order of keys
//! do not change.

/// The kind and the text of a piece. The kind is `key`, `string`, `number`, `word`, or empty.
pub type Piece = (&'static str, String);

/// The maximum length of a formatted text. Longer texts are shown unformatted.
const MOST: usize = 256 * 1024;

/// Splits a JSON text into pieces. Returns `None` if the text is not a JSON object or array, or
/// would be too long.
pub fn pieces(text: &str) -> Option<Vec<Piece>> {
    let is_folded = text.trim_start().starts_with(['{', '[']);
    if !is_folded || serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return None;
    }
    let (mut pieces, mut depth, mut length) = (Vec::new(), 0_usize, 0);
    let mut rest = text.trim();
    while let Some(sign) = rest.chars().next() {
        let end = match sign {
            '"' => string_end(rest),
            '{' | '[' | '}' | ']' | ',' | ':' => 1,
            _ => rest.find([',', '}', ']', ' ', '\n', '\r', '\t']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(end);
        let after = after.trim_start();
        let piece = match sign {
            '{' | '[' if after.starts_with(['}', ']']) => ("", token.to_owned()),
            '{' | '[' => {
                depth += 1;
                ("", format!("{token}{}", line(depth)))
            }
            '}' | ']' if text_ends_open(&pieces) => ("", token.to_owned()),
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                ("", format!("{}{token}", line(depth)))
            }
            ',' => ("", format!(",{}", line(depth))),
            ':' => ("", ": ".to_owned()),
            '"' if after.starts_with(':') => ("key", token.to_owned()),
            '"' => ("string", token.to_owned()),
            't' | 'f' | 'n' => ("word", token.to_owned()),
            _ => ("number", token.to_owned()),
        };
        length += piece.1.len();
        if length > MOST {
            return None;
        }
        pieces.push(piece);
        rest = after;
    }
    Some(pieces)
}

/// Returns true if the last piece opens the object or array that ends now, which is therefore
/// empty.
fn text_ends_open(pieces: &[Piece]) -> bool {
    pieces.last().is_some_and(|(_, text)| text == "{" || text == "[")
}

fn line(depth: usize) -> String {
    format!("\n{}", "  ".repeat(depth))
}

/// Returns the end of the string at the start of `text`, after its closing quote.
fn string_end(text: &str) -> usize {
    let mut is_escaped = false;
    for (place, sign) in text.char_indices().skip(1) {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> String {
        pieces(json).expect("JSON").into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn json_is_shown_as_it_is_written() {
        let json = r#"{"b":12345678901234567890.10,"a":[1,{"c\"":"x, y: {\\"}],"e":{},"n": [ ] , "t":true}"#;
        let shown = "{\n  \"b\": 12345678901234567890.10,\n  \"a\": [\n    1,\n    {\n      \"c\\\"\": \"x, y: {\\\\\"\n    }\n  ],\n  \"e\": {},\n  \"n\": [],\n  \"t\": true\n}";
        assert_eq!(text(json), shown);
        let pieces = pieces(json).expect("JSON");
        let of =
            |kind: &str| pieces.iter().filter(|(is, _)| *is == kind).map(|(_, text)| text.as_str()).collect::<Vec<_>>();
        assert_eq!(of("key"), ["\"b\"", "\"a\"", "\"c\\\"\"", "\"e\"", "\"n\"", "\"t\""]);
        assert_eq!(
            (of("string"), of("number"), of("word")),
            (vec!["\"x, y: {\\\\\""], vec!["12345678901234567890.10", "1"], vec!["true"])
        );
    }

    #[test]
    fn scalar_invalid_or_overlong_json_is_left_as_it_is() {
        for other in ["", "17", "\"x\"", "{", "{a: 1}", "\\x7b7d"] {
            assert_eq!(pieces(other), None, "{other}");
        }
        assert_eq!(pieces(&"[".repeat(60_000)), None, "too deep");
        let wide = format!("{}{}{}", "[".repeat(100), "1,".repeat(20_000) + "1", "]".repeat(100));
        assert_eq!(pieces(&wide), None);
    }
}
