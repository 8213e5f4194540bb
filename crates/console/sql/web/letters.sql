-- Returns a page of dead letters by id. The page shows only the beginning of a payload, so only that is sent. The size of bytea is that of the bytes, as
-- in messages.sql.
select d.id, d.dead_at, d.attempt, left(d.error, 200), left(d.payload::text, 200),
       coalesce(case when (select trunkline.base_type(trunkline.payload_type({name})) = 'bytea'::regtype) then octet_length(d.payload::text::bytea)
                     else octet_length(d.payload::text) end, 0)::bigint,
       case when $3::bool then ((d.own ->> 'keys')::text[])[1] end
from trunkline.{dead} d
where d.id > $2::bigint and {conditions}
order by d.id limit 50
