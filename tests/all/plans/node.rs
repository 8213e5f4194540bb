//! Query plans as PostgreSQL prints them.

/// A node of a printed plan: `{NAME :field value … {CHILD …} …}`.
#[derive(Debug, Default)]
pub struct Node {
    pub name: String,
    /// The fields of the node and of all nodes below it.
    text: String,
    inner: Vec<Node>,
}

impl Node {
    pub fn parse(text: &str) -> Self {
        let mut open = vec![Self::default()];
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}', '\\']) {
            let (before, from) = rest.split_at(at);
            let node = open.last_mut().expect("the root stays");
            node.text.push_str(before);
            rest = &from[1..];
            match &from[..1] {
                "\\" => rest = rest.get(1..).unwrap_or_default(), // skips a constant's name
                "{" => {
                    let name = rest.split([' ', '}']).next().unwrap_or_default().to_owned();
                    open.push(Self { name, ..Self::default() });
                }
                _ => {
                    let done = open.pop().expect("as many ends as beginnings");
                    open.last_mut().expect("the root stays").inner.push(done);
                }
            }
        }
        assert_eq!(open.len(), 1, "as many beginnings as ends");
        open.remove(0)
    }

    /// Returns the node and all nodes below it.
    pub fn all(&self) -> Vec<&Self> {
        std::iter::once(self).chain(self.inner.iter().flat_map(Self::all)).collect()
    }

    /// Returns true if the node reads from a table, by any kind of scan.
    pub fn is_scan(&self) -> bool {
        let ways = ["SEQSCAN", "INDEXSCAN", "INDEXONLYSCAN", "BITMAPHEAPSCAN", "TIDSCAN", "TIDRANGESCAN", "SAMPLESCAN"];
        ways.contains(&&*self.name)
    }

    /// Returns true if the node reads all rows from a node below it before it returns its first
    /// row.
    pub fn gathers(&self) -> bool {
        ["SORT", "INCREMENTALSORT", "HASH", "AGG", "MATERIAL"].contains(&&*self.name)
    }

    pub fn index(&self) -> Option<&str> {
        self.text.split_once(":indexid ")?.1.split(' ').next()
    }
}
