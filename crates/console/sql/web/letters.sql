-- Returns a page of dead letters, by id. Only the start of a payload is shown, so only that part is sent.
select d.id, d.dead_at, d.attempt, left(d.error, 200), left(d.payload::text, 200), coalesce(octet_length(d.payload::text), 0)::bigint,
       case when $3::bool then ((d.own ->> 'keys')::text[])[1] end
from trunkline.{dead} d
where d.id > $2::bigint and {conditions}
order by d.id limit 50
