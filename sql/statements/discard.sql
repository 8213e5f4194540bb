-- Discards dead letters of a queue: those with the given ids or, if the ids are null, a page of those
-- after an id. Returns the last id of the page (null if there are no more), and how many were
-- discarded.
select l.ids[pg_catalog.cardinality(l.ids)], (select pg_catalog.count(*) from trunkline.discard_some($1, l.ids, null))
from (select coalesce($2, trunkline.letters_after($1, $3, $4)) as ids) l
