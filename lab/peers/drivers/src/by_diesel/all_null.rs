use diesel::{
    expression::{AppearsOnTable, SelectableExpression, ValidGrouping, is_aggregate},
    pg::Pg,
    prelude::*,
    query_builder::{AstPass, QueryFragment, QueryId},
    sql_types::{BigInt, Bool, Double, Integer, Text},
};
use trunkline_drivers::Person;

/// A condition that has every column of these people as a parameter. The type of diesel's own
/// expressions contains every part of the expression, so they cannot have a thousand rows.
pub struct AllNull<'a>(pub &'a [Person]);

impl Expression for AllNull<'_> {
    type SqlType = Bool;
}

impl<T> SelectableExpression<T> for AllNull<'_> {}

impl<T> AppearsOnTable<T> for AllNull<'_> {}

impl ValidGrouping<()> for AllNull<'_> {
    type IsAggregate = is_aggregate::Never;
}

impl QueryId for AllNull<'_> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl QueryFragment<Pg> for AllNull<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        for (at, Person { id, name, email, age, score, active }) in self.0.iter().enumerate() {
            out.push_sql(if at == 0 { "(" } else { " AND (" });
            out.push_bind_param::<BigInt, _>(id)?;
            out.push_sql(", ");
            out.push_bind_param::<Text, _>(name)?;
            out.push_sql(", ");
            out.push_bind_param::<Text, _>(email)?;
            out.push_sql(", ");
            out.push_bind_param::<Integer, _>(age)?;
            out.push_sql(", ");
            out.push_bind_param::<Double, _>(score)?;
            out.push_sql(", ");
            out.push_bind_param::<Bool, _>(active)?;
            out.push_sql(") IS NULL");
        }
        Ok(())
    }
}
