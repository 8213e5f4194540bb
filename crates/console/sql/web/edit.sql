-- Deletes the letter and enqueues the message, or does neither. The message keeps the letter's metadata, priority and key, and its values in columns
-- that users added, except in columns that Postgres fills.
with letter as materialized (
    select f.metadata, f.priority, f.key,
           (select jsonb_object_agg(c.key, c.value)
            from trunkline.own_columns($3, array[$6::bigint]) o, jsonb_each(o.columns) c, pg_attribute a
            where a.attrelid = to_regclass(format('trunkline.%I', 'queue_' || $3)) and a.attname = c.key
              and not a.attisdropped and a.attgenerated = '' and a.attidentity = '') as own
    from trunkline.find($3, $6::bigint) f where f.state = 'dead'),
gone as materialized (select l.*, trunkline.discard($3, array[$6::bigint]) as n from letter l)
select case when g.own is null then trunkline.enqueue($3, $7::text, metadata => g.metadata, priority => g.priority, key => g.key)
            else trunkline.enqueue_with_columns($3, $7::text, g.own, metadata => g.metadata, priority => g.priority, key => g.key) end as id,
       1::bigint as n
from gone g where g.n = 1
