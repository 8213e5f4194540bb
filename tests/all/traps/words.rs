//! The words of a statement, including the words that PostgreSQL looks up in the search path.

/// Keywords that may precede a parenthesis without being a call.
const NO_CALLS: &str = " all and any array as by case cast coalesce conflict distinct else exists extract filter from in nullif greatest grouping key lateral least limit \
                         materialized not on operator or over partition row select set sets then union values when where with within ";
/// Types that are keywords, so PostgreSQL does not look them up.
const TYPES: &str = " bigint boolean int integer interval smallint ";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Operator,
    Other,
}

type Token = (Kind, String);

/// Returns the functions, operators and types that PostgreSQL looks up in the search path. Also
/// returns constructs that hide an operator.
pub fn left_to_the_path(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let at = |place: usize| tokens.get(place).map_or("", |token| token.1.as_str());
    let (mut found, mut assigns, mut casts) = (Vec::new(), false, Vec::new());
    for (place, (kind, word)) in tokens.iter().enumerate() {
        let before = |steps: usize| place.checked_sub(steps).map_or("", at);
        match (kind, word.as_str()) {
            (Kind::Word, "from") if before(1) == "distinct" => found.push("distinct from hides an operator".to_owned()),
            (Kind::Word, "set") => assigns = true,
            (Kind::Word, "where" | "from" | "returning" | "select") => assigns = false,
            (Kind::Word, "between" | "like" | "ilike" | "similar" | "nullif" | "in") => {
                found.push(format!("{word} hides an operator"));
            }
            _ => {}
        }
        let is_name = *kind == Kind::Word && before(1) != "." && !NO_CALLS.contains(&format!(" {word} "));
        let is_target = before(1) == "into";
        if is_name && !is_target && at(place + 1) == "(" && !matches!(before(1), ")" | "as") && before(2) != "as" {
            found.push(format!("function {word}"));
        }
        if *kind == Kind::Operator {
            let qualified = before(1) == "." && before(2) == "pg_catalog" && before(4) == "operator";
            let all_columns = word == "*" && matches!(before(1), "select" | "." | "(" | "unlisten");
            let negative = word == "-"
                && matches!(before(1), "," | "(" | "select")
                && at(place + 1).starts_with(|c: char| c.is_ascii_digit());
            let assignment = word == "=" && assigns;
            if !(qualified || all_columns || negative || assignment || word == "=>") {
                found.push(format!("operator {word} behind {} {}", before(2), before(1)));
            }
        }
        // Recognizes both forms of a cast, `cast(x as type)` and `x::type`.
        match word.as_str() {
            "(" => casts.push(before(1) == "cast"),
            ")" => drop(casts.pop()),
            _ => {}
        }
        let is_type = before(1) == "::" || before(1) == "as" && casts.last() == Some(&true);
        if is_type
            && !TYPES.contains(&format!(" {word} "))
            && !matches!(word.as_str(), "pg_catalog" | "trunkline")
            && !word.starts_with('{')
        {
            found.push(format!("type {word}"));
        }
    }
    found
}

/// Returns the words in lower case. Placeholders count as words; comments and literals are omitted.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '\'' => literal(rest),
            '{' | '"' => {
                let end = rest[1..].find(if first == '{' { '}' } else { '"' }).map_or(rest.len(), |end| end + 2);
                tokens.push((Kind::Word, rest[..end].to_owned()));
                end
            }
            _ if first.is_ascii_alphanumeric() || matches!(first, '_' | '$') => {
                let end =
                    rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$'))).unwrap_or(rest.len());
                let kind = if first.is_ascii_alphabetic() || first == '_' { Kind::Word } else { Kind::Other };
                tokens.push((kind, rest[..end].to_ascii_lowercase()));
                end
            }
            ':' if rest.starts_with("::") => {
                tokens.push((Kind::Other, "::".to_owned()));
                2
            }
            _ if "+-*/<>=~!@#%^&|`".contains(first) => {
                let end = rest.find(|c: char| !"+-*/<>=~!@#%^&|`".contains(c)).unwrap_or(rest.len());
                tokens.push((Kind::Operator, rest[..end].to_owned()));
                end
            }
            _ if first.is_whitespace() => first.len_utf8(),
            _ => {
                tokens.push((Kind::Other, first.to_string()));
                first.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    tokens
}

/// Returns the length of a quoted literal, in which quotes are doubled.
fn literal(text: &str) -> usize {
    let mut end = 1;
    while let Some(quote) = text[end..].find('\'') {
        end += quote + 1;
        if !text[end..].starts_with('\'') {
            return end;
        }
        end += 1;
    }
    text.len()
}

#[test]
fn words_that_a_path_decides_are_found() {
    for (text, wanted) in [
        ("select unnest($1)", 1),
        ("select pg_catalog.unnest($1) u(key) -- unnest($1)", 0),
        ("select a from t where a = 1 and b operator(pg_catalog.=) any ($1)", 1),
        ("update t set a = 1, b = c where d in (1, 2)", 1),
        ("select a::text, b::pg_catalog.text, 'x = f(y)'::bigint", 1),
        ("select a + 1, -1, count(*)", 2),
        ("with a as (select 1) select cast(a as float8) from a", 1),
        ("select a is distinct from b, nullif(a, b), a between b and c", 3),
    ] {
        let found = left_to_the_path(text);
        assert_eq!(found.len(), wanted, "{text}: {found:?}");
    }
}
