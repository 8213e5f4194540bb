use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::{
    IsNull,
    message::frontend::{self, BindError},
};
use postgres_types::{IsNull as TypesIsNull, ToSql, Type};

use super::{Failure, Named};

/// Statements on their way to one Sync.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(super) bytes: BytesMut,
    /// The statement of each place; none where it is not kept.
    pub(super) statements: Vec<Option<Arc<Named>>>,
    /// A text of several statements by the simple protocol, which ends with an answer of its own.
    pub(super) script: bool,
    /// There is a copy with its data among them.
    pub(super) copies: bool,
}

impl Group {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn len(&self) -> usize {
        self.statements.len()
    }

    /// Adds a prepared statement with parameters of these types. On an error the group is as it was.
    pub fn push(
        &mut self,
        named: &Arc<Named>,
        types: &[Type],
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<(), Failure> {
        self.bind(&named.name, types, parameters)?;
        self.statements.push(Some(named.clone()));
        Ok(())
    }

    /// Adds a statement that is parsed in its place and not kept: behind a pooler that gives every transaction another
    /// server connection, it must be parsed and bound before the same Sync.
    pub fn push_unnamed(
        &mut self,
        text: &str,
        types: &[Type],
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<(), Failure> {
        let before = self.bytes.len();
        frontend::parse("", text, types.iter().map(Type::oid), &mut self.bytes).map_err(Failure::encode)?;
        frontend::describe(b'S', "", &mut self.bytes).map_err(Failure::encode)?;
        if let Err(failure) = self.bind("", types, parameters) {
            self.bytes.truncate(before);
            return Err(failure);
        }
        self.statements.push(None);
        Ok(())
    }

    /// `copy … from stdin` and its data: nothing waits for the server's word in between, and the only Sync comes behind the end of
    /// the data.
    pub fn push_copy(&mut self, text: &str, data: &[u8]) -> Result<(), Failure> {
        /// Bytes of data in one message.
        const PART: usize = 64 << 10;
        self.push_unnamed(text, &[], &[])?;
        for part in data.chunks(PART) {
            frontend::CopyData::new(part).map_err(Failure::encode)?.write(&mut self.bytes);
        }
        frontend::copy_done(&mut self.bytes);
        self.copies = true;
        Ok(())
    }

    /// Makes the group a text of several statements instead.
    pub fn script(&mut self, text: &str) -> Result<(), Failure> {
        self.script = true;
        frontend::query(text, &mut self.bytes).map_err(Failure::encode)
    }

    fn bind(&mut self, name: &str, types: &[Type], parameters: &[&(dyn ToSql + Sync)]) -> Result<(), Failure> {
        if types.len() != parameters.len() {
            let text = format!("the statement has {} parameters, not {}", types.len(), parameters.len());
            return Err(Failure::encode(text));
        }
        let before = self.bytes.len();
        let write = |(parameter, ty): (&&(dyn ToSql + Sync), &Type), out: &mut BytesMut| {
            Ok(match parameter.to_sql_checked(ty, out)? {
                TypesIsNull::Yes => IsNull::Yes,
                TypesIsNull::No => IsNull::No,
            })
        };
        // One format stands for all parameters, and must not stand there for none.
        let formats = (!parameters.is_empty()).then_some(1);
        let bound = frontend::bind("", name, formats, parameters.iter().zip(types), write, Some(1), &mut self.bytes);
        let sent = match bound {
            Ok(()) => frontend::execute("", 0, &mut self.bytes).map_err(Failure::encode),
            Err(BindError::Conversion(cause)) => Err(Failure::encode(cause)),
            Err(BindError::Serialization(cause)) => Err(Failure::encode(cause)),
        };
        if sent.is_err() {
            self.bytes.truncate(before);
        }
        sent
    }
}
