use std::{future::Future, pin::Pin, sync::Arc};

use postgres_types::{Field, Kind, Oid, Type};

use super::{Connection, Failure, Group, Row, row::Columns};

const TYPE: &str = include_str!("../../sql/type.sql");
const FIELDS: &str = include_str!("../../sql/type_fields.sql");
const LABELS: &str = include_str!("../../sql/type_labels.sql");

type Found<'a> = Pin<Box<dyn Future<Output = Result<Type, Failure>> + Send + 'a>>;

impl Connection {
    /// Asks the catalog for a type that Postgres does not come with.
    pub(super) fn look_up(&self, oid: Oid) -> Found<'_> {
        Box::pin(async move {
            // An array's element, a composite's fields: types of types, asked for in turn.
            let found =
                self.about(TYPE, oid, &[Type::NAME, Type::NAME, Type::CHAR, Type::OID, Type::OID, Type::OID]).await?;
            let Some(row) = found.first() else {
                return Ok(Type::new("?".to_owned(), oid, Kind::Simple, String::new()));
            };
            let (name, schema): (String, String) = (row.get(0), row.get(1));
            let (kind, element, base, relation): (i8, Oid, Oid, Oid) = (row.get(2), row.get(3), row.get(4), row.get(5));
            let kind = match kind as u8 {
                b'e' => {
                    Kind::Enum(self.about(LABELS, oid, &[Type::NAME]).await?.iter().map(|row| row.get(0)).collect())
                }
                b'd' => Kind::Domain(self.of_oid(base).await?),
                b'r' => Kind::Range(self.of_oid(element).await?),
                b'c' => {
                    let mut fields = Vec::new();
                    for row in self.about(FIELDS, relation, &[Type::NAME, Type::OID]).await? {
                        fields.push(Field::new(row.get(0), self.of_oid(row.get(1)).await?));
                    }
                    Kind::Composite(fields)
                }
                b'p' => Kind::Pseudo,
                _ if element != 0 => Kind::Array(self.of_oid(element).await?),
                _ => Kind::Simple,
            };
            Ok(Type::new(name, oid, kind, schema))
        })
    }

    pub(super) async fn of_oid(&self, oid: Oid) -> Result<Type, Failure> {
        match Type::from_oid(oid) {
            Some(known) => Ok(known),
            None => self.look_up(oid).await,
        }
    }

    /// The types of these statements' columns are known: asking for them would ask for itself.
    async fn about(&self, text: &str, oid: Oid, types: &[Type]) -> Result<Vec<Row>, Failure> {
        let columns = types.iter().map(|ty| (String::new(), ty.clone())).collect();
        let columns = Arc::new(Columns { parameters: vec![Type::OID], columns });
        let mut group = Group::new();
        group.push_unnamed(&text.into(), &columns.parameters, &[&oid])?;
        Ok(self.send(group).await?.rows(0, &columns))
    }
}
