//! The parameters of a statement, which are encoded directly into the connection's buffer.

use postgres_types::ToSql;

type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The parameters of a statement, starting with `$1`.
///
/// This trait is implemented for tuples of up to ten values. For more than ten values, or if their
/// number is known only at run time, use a slice of references: `&[&(dyn ToSql + Sync)]`.
pub trait Params {
    /// Passes the values to `write`.
    fn with<R>(&self, write: impl FnOnce(&[&(dyn ToSql + Sync)]) -> R) -> R;
}

impl Params for Parameters<'_> {
    fn with<R>(&self, write: impl FnOnce(&[&(dyn ToSql + Sync)]) -> R) -> R {
        write(self)
    }
}

impl Params for () {
    fn with<R>(&self, write: impl FnOnce(&[&(dyn ToSql + Sync)]) -> R) -> R {
        write(&[])
    }
}

impl<A: ToSql + Sync> Params for (A,) {
    fn with<R>(&self, write: impl FnOnce(&[&(dyn ToSql + Sync)]) -> R) -> R {
        write(&[&self.0])
    }
}

impl<A: ToSql + Sync, B: ToSql + Sync> Params for (A, B) {
    fn with<R>(&self, write: impl FnOnce(&[&(dyn ToSql + Sync)]) -> R) -> R {
        write(&[&self.0, &self.1])
    }
}

impl<A: ToSql + Sync, B: ToSql + Sync, C: ToSql + Sync> Params for (A, B, C) {
    fn with<R>(&self, write: impl FnOnce(&[&(dyn ToSql + Sync)]) -> R) -> R {
        write(&[&self.0, &self.1, &self.2])
    }
}

impl<A: ToSql + Sync, B: ToSql + Sync, C: ToSql + Sync, D: ToSql + Sync> Params for (A, B, C, D) {
    fn with<R>(&self, write: impl FnOnce(&[&(dyn ToSql + Sync)]) -> R) -> R {
        write(&[&self.0, &self.1, &self.2, &self.3])
    }
}

impl<A: ToSql + Sync, B: ToSql + Sync, C: ToSql + Sync, D: ToSql + Sync, E: ToSql + Sync> Params for (A, B, C, D, E) {
    fn with<R>(&self, write: impl FnOnce(&[&(dyn ToSql + Sync)]) -> R) -> R {
        write(&[&self.0, &self.1, &self.2, &self.3, &self.4])
    }
}

impl<A: ToSql + Sync, B: ToSql + Sync, C: ToSql + Sync, D: ToSql + Sync, E: ToSql + Sync, F: ToSql + Sync> Params
    for (A, B, C, D, E, F)
{
    fn with<R>(&self, write: impl FnOnce(&[&(dyn ToSql + Sync)]) -> R) -> R {
        write(&[&self.0, &self.1, &self.2, &self.3, &self.4, &self.5])
    }
}

impl<
    A: ToSql + Sync,
    B: ToSql + Sync,
    C: ToSql + Sync,
    D: ToSql + Sync,
    E: ToSql + Sync,
    F: ToSql + Sync,
    G: ToSql + Sync,
> Params for (A, B, C, D, E, F, G)
{
    fn with<R>(&self, write: impl FnOnce(&[&(dyn ToSql + Sync)]) -> R) -> R {
        write(&[&self.0, &self.1, &self.2, &self.3, &self.4, &self.5, &self.6])
    }
}

impl<
    A: ToSql + Sync,
    B: ToSql + Sync,
    C: ToSql + Sync,
    D: ToSql + Sync,
    E: ToSql + Sync,
    F: ToSql + Sync,
    G: ToSql + Sync,
    H: ToSql + Sync,
> Params for (A, B, C, D, E, F, G, H)
{
    fn with<R>(&self, write: impl FnOnce(&[&(dyn ToSql + Sync)]) -> R) -> R {
        write(&[&self.0, &self.1, &self.2, &self.3, &self.4, &self.5, &self.6, &self.7])
    }
}

impl<
    A: ToSql + Sync,
    B: ToSql + Sync,
    C: ToSql + Sync,
    D: ToSql + Sync,
    E: ToSql + Sync,
    F: ToSql + Sync,
    G: ToSql + Sync,
    H: ToSql + Sync,
    I: ToSql + Sync,
> Params for (A, B, C, D, E, F, G, H, I)
{
    fn with<R>(&self, write: impl FnOnce(&[&(dyn ToSql + Sync)]) -> R) -> R {
        write(&[&self.0, &self.1, &self.2, &self.3, &self.4, &self.5, &self.6, &self.7, &self.8])
    }
}

impl<
    A: ToSql + Sync,
    B: ToSql + Sync,
    C: ToSql + Sync,
    D: ToSql + Sync,
    E: ToSql + Sync,
    F: ToSql + Sync,
    G: ToSql + Sync,
    H: ToSql + Sync,
    I: ToSql + Sync,
    J: ToSql + Sync,
> Params for (A, B, C, D, E, F, G, H, I, J)
{
    fn with<R>(&self, write: impl FnOnce(&[&(dyn ToSql + Sync)]) -> R) -> R {
        write(&[&self.0, &self.1, &self.2, &self.3, &self.4, &self.5, &self.6, &self.7, &self.8, &self.9])
    }
}
