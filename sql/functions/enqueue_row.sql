create or replace function trunkline.enqueue_row(queue text, payloads anyarray, columns jsonb, due float8, metadata jsonb[], lane int, keys text[])
    returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp set datestyle = 'ISO' set intervalstyle = 'postgres' set timezone = 'UTC'
    set lc_monetary = 'C' as $$
-- Inserts one row of messages with values in columns that users added, and returns the first message's id. The text of
-- each value is converted to the type of its column. due: as in sql/statements/plain/enqueue_with.sql. lane: the number
-- of the row's priority or partition, in a queue with priorities or keys.
declare
    laned bool;
    keyed bool;
    named text;
    valued text;
    id bigint;
begin
    perform trunkline.check_columns(queue, columns);
    select q.priorities > 1 or q.lanes > 0, q.lanes > 0 into laned, keyed from trunkline.queue q where q.name = queue;
    select string_agg(format(', %I', a.attname), '' order by a.attnum),
           -- Converts values of domains by a function: a cast to a domain over varchar(3) would shorten the value. For
           -- other types, the insert checks the length.
           string_agg(format(case when t.typtype = 'd' or t.typname in ('name', 'char') then ', (trunkline.payload_as($7 ->> %L, null::%s[]))[1]'
                                  else ', ($7 ->> %L)::%s' end, a.attname, format_type(a.atttypid, -1)), '' order by a.attnum)
    into named, valued from pg_attribute a join pg_type t on t.oid = a.atttypid
    where a.attrelid = to_regclass(format('trunkline.%I', 'queue_' || queue)) and a.attnum > 0 and not a.attisdropped and columns ? a.attname::text;
    execute format('insert into trunkline.%I (due_at, size, payload, metadata%s%s%s) values (trunkline.due_from($1), $2, $3, $4%s%s%s) returning id',
                   'queue_' || queue, case when laned then ', lane' end, case when keyed then ', keys' end, named,
                   case when laned then ', $5' end, case when keyed then ', $6' end, valued)
        into id using due, cardinality(payloads), payloads, metadata, lane, keys, columns;
    if id is null then
        perform trunkline.not_stored(queue, cardinality(payloads), 0);
    end if;
    return id;
end $$;
