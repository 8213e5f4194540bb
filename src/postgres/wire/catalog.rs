//! Lookup of a statement's types in the server's catalog, with a cache.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use postgres_types::{Field, FromSql, Kind, Oid, Type};

use super::{
    Connection, Group, Prepared, Row, WireError,
    cached_statement::Signature,
    row::Columns,
    soil::{bounds_transaction, copies},
};

/// The maximum nesting depth of types, and the maximum number of lookups for one statement. No real
/// catalog exceeds these limits, but a malicious server might.
const DEEPEST: usize = 32;
const MOST: usize = 10_000;

const TYPE: &str = include_str!("../../../sql/statements/type.sql");
const FIELDS: &str = include_str!("../../../sql/statements/type_fields.sql");
const LABELS: &str = include_str!("../../../sql/statements/type_labels.sql");

type Lookup<'a> = Pin<Box<dyn Future<Output = Result<Type, WireError>> + Send + 'a>>;

#[derive(Clone, Copy)]
pub(super) struct Depth<'a> {
    depth: usize,
    count: &'a AtomicUsize,
}

impl<'a> Depth<'a> {
    pub fn new(count: &'a AtomicUsize) -> Self {
        Self { depth: 0, count }
    }

    fn deeper(self) -> Result<Self, WireError> {
        if self.depth >= DEEPEST || self.count.fetch_add(1, Ordering::Relaxed) >= MOST {
            return Err(WireError::Protocol("a type is made of too many types"));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

impl Connection {
    /// Returns a statement with the types of its parameters and columns. Uses the cache if
    /// possible, and otherwise asks the server.
    pub async fn prepare(&self, text: &str) -> Result<Prepared, WireError> {
        match self.prepared(text) {
            Some(prepared) => Ok(prepared),
            None => self.ask_for_types(text).await.map_err(WireError::before_sending),
        }
    }

    async fn ask_for_types(&self, text: &str) -> Result<Prepared, WireError> {
        let Some(unnamed) = &self.unnamed else {
            let named = self.name(text)?;
            let columns = if let Some(columns) = named.typed.get() {
                columns.clone()
            } else {
                let columns = self.typed(&*named.described().await?).await?;
                named.typed.get_or_init(|| Arc::new(columns)).clone()
            };
            return Ok(Prepared { text: named.text.clone(), named: Some(named), columns });
        };
        let answer = self.send(Group::describe(text)?).await?;
        let columns = Arc::new(self.typed(&Signature::read(answer.chunks())?).await?);
        let text: Arc<str> = text.into();
        unnamed.insert(text.clone(), columns.clone());
        Ok(Prepared { text, named: None, columns })
    }

    /// Prepares a statement of the user. Returns an error for a copy from or to the client, because
    /// its messages would break the shared connection. Also returns an error for a statement that
    /// begins or ends a transaction, because later statements of a `Transaction` would then run
    /// outside a transaction.
    pub async fn prepare_of_user(&self, text: &str) -> Result<Prepared, WireError> {
        match self.prepared(text) {
            Some(prepared) => Ok(prepared),
            None if copies(text) => Err(WireError::encode(
                "a copy from stdin or to stdout does not take parameters or return rows: use copy_in; to copy out, use \
                 postgres::compat",
            )),
            None if bounds_transaction(text) => Err(WireError::encode(
                "this statement begins or ends a transaction: use Db::begin, Transaction::commit and Transaction::rollback, or \
                 Db::transact",
            )),
            None => self.prepare(text).await,
        }
    }

    pub async fn typed(&self, described: &Signature) -> Result<Columns, WireError> {
        let (mut columns, count) = (Columns::default(), AtomicUsize::new(0));
        let asked = Depth::new(&count);
        for oid in &described.parameters {
            columns.parameters.push(self.of_oid(*oid, asked).await?);
        }
        for (name, oid) in &described.columns {
            columns.columns.push((name.clone(), self.of_oid(*oid, asked).await?));
        }
        columns.facts.clone_from(&described.facts);
        columns.described = Some(Instant::now());
        Ok(columns)
    }

    fn look_up<'a>(&'a self, oid: Oid, asked: Depth<'a>) -> Lookup<'a> {
        Box::pin(async move {
            let asked = asked.deeper()?;
            // The element type of an array and the field types of a composite are looked up
            // recursively.
            let found =
                self.about(TYPE, oid, &[Type::NAME, Type::NAME, Type::CHAR, Type::OID, Type::OID, Type::OID]).await?;
            let Some(row) = found.first() else {
                return Ok(Type::new("?".to_owned(), oid, Kind::Simple, String::new()));
            };
            let (name, schema): (String, String) = (part(row, 0)?, part(row, 1)?);
            let kind: i8 = part(row, 2)?;
            let (element, base, relation): (Oid, Oid, Oid) = (part(row, 3)?, part(row, 4)?, part(row, 5)?);
            let kind = match kind as u8 {
                b'e' => {
                    let labels = self.about(LABELS, oid, &[Type::NAME]).await?;
                    Kind::Enum(labels.iter().map(|row| part(row, 0)).collect::<Result<_, _>>()?)
                }
                b'd' => Kind::Domain(self.of_oid(base, asked).await?),
                b'r' => Kind::Range(self.of_oid(element, asked).await?),
                b'c' => {
                    let mut fields = Vec::new();
                    for row in self.about(FIELDS, relation, &[Type::NAME, Type::OID]).await? {
                        fields.push(Field::new(part(&row, 0)?, self.of_oid(part(&row, 1)?, asked).await?));
                    }
                    Kind::Composite(fields)
                }
                b'p' => Kind::Pseudo,
                _ if element != 0 => Kind::Array(self.of_oid(element, asked).await?),
                _ => Kind::Simple,
            };
            Ok(Type::new(name, oid, kind, schema))
        })
    }

    pub(super) async fn of_oid(&self, oid: Oid, asked: Depth<'_>) -> Result<Type, WireError> {
        match Type::from_oid(oid) {
            Some(known) => Ok(known),
            None => self.look_up(oid, asked).await,
        }
    }

    /// Runs a catalog statement with known column types. Looking these types up would never end.
    async fn about(&self, text: &str, oid: Oid, types: &[Type]) -> Result<Vec<Row>, WireError> {
        let columns = types.iter().map(|ty| (String::new(), ty.clone())).collect();
        let columns = Arc::new(Columns::new(vec![Type::OID], columns));
        let mut group = Group::new();
        group.push_unnamed(&text.into(), &columns.parameters, &[&oid])?;
        Ok(self.send(group).await?.rows(0, &columns))
    }
}

fn part<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, WireError> {
    row.try_get(at).map_err(|_| WireError::Protocol("a row about a type has another shape"))
}
