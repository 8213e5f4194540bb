use tokio_postgres::{Client, Error, Statement};

use crate::texts;

/// All prepared statements.
pub struct Statements {
    pub select: Statement,
    pub get: Statement,
    pub r#in: Statement,
    pub list: Statement,
    pub results: Statement,
    pub stream: Statement,
    pub insert: Statement,
    pub append: Statement,
    pub add: Statement,
    pub upsert: Statement,
    pub update: Statement,
    pub replace: Statement,
    pub delete: Statement,
    pub delete_where: Statement,
    pub left: Statement,
    pub parameters: Statement,
    pub many_parameters: Statement,
    pub take: Statement,
    pub give: Statement,
}

impl Statements {
    pub async fn prepare(client: &Client) -> Result<Self, Error> {
        Ok(Self {
            select: client.prepare(texts::SELECT).await?,
            get: client.prepare(texts::GET).await?,
            r#in: client.prepare(texts::IN).await?,
            list: client.prepare(texts::LIST).await?,
            results: client.prepare(texts::RESULTS).await?,
            stream: client.prepare(texts::STREAM).await?,
            insert: client.prepare(texts::INSERT).await?,
            append: client.prepare(texts::APPEND).await?,
            add: client.prepare(texts::ADD).await?,
            upsert: client.prepare(texts::UPSERT).await?,
            update: client.prepare(texts::UPDATE).await?,
            replace: client.prepare(texts::REPLACE).await?,
            delete: client.prepare(texts::DELETE).await?,
            delete_where: client.prepare(texts::DELETE_WHERE).await?,
            left: client.prepare(texts::LEFT).await?,
            parameters: client.prepare(texts::PARAMETERS).await?,
            many_parameters: client.prepare(&texts::MANY_PARAMETERS).await?,
            take: client.prepare(texts::TAKE).await?,
            give: client.prepare(texts::GIVE).await?,
        })
    }
}
