-- Like enqueue, for messages some of which have unique keys. Claims the keys, and splits the
-- messages into rows on the server. Must be the only statement of its transaction. The statement
-- fails if another transaction has claimed a key and stays open: a wait for it would hold up the
-- other statements of the connection. The setting ends with the transaction.
select e.id, e.outcome
from (select pg_catalog.set_config('lock_timeout', '50ms', true) as patience) t,
     lateral trunkline.{do_unique_}($1, $2, $3, $4, $5, $6, $7, t.patience is not null) e
