create or replace function trunkline.{do_back_}(
        id bigint, enqueued_at timestamptz, attempt int, released int, error text, size int, payload {type}[], metadata jsonb[], own jsonb)
    returns void language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan
    set datestyle = 'ISO' set intervalstyle = 'postgres' set timezone = 'UTC' set lc_monetary = 'C' as $f$
-- Puts messages back into the table under their ids, as one row, with the values that their row had
-- in columns that users added. The values are matched by name and converted to the column's present
-- type. A column that was dropped is left out, a generated column is computed again, and a column
-- that was added later gets its default. Replays of dead letters use this function, and so does the
-- return of taken messages whose caller is gone.
#variable_conflict use_variable
declare
    named text;
    restored text;
    stored bigint;
    all_keys text[];
begin
    -- The row may come from another server, or from the time before the queue got more partitions.
    own := own || '{"lane": "-1"}';
    -- A row from another shard has its keys as a JSON array. A single message has them as the text
    -- of an SQL array.
    all_keys := case when jsonb_typeof(own -> 'keys') = 'array' then array(select jsonb_array_elements_text(own -> 'keys'))
                     else (own ->> 'keys')::text[] end;
    own := own || jsonb_build_object('keys', all_keys::text);
    if size > 1 and exists (
        select from unnest(all_keys) k(key) where trunkline.lane_of(k.key, {key_lanes}) <> trunkline.lane_of(all_keys[1], {key_lanes})) then
        for k in 1..size loop
            perform trunkline.{do_back_}(id + k - 1, enqueued_at, attempt, released, error, 1, payload[k:k], metadata[k:k],
                                         own || jsonb_build_object('keys', all_keys[k:k]::text));
        end loop;
        return;
    end if;
    if own is not null then
        select string_agg(quote_ident(a.attname), ', ' order by a.attnum),
               -- Converts values of domains by a function: a cast to a domain over varchar(3) would
               -- shorten the value.
               string_agg(format(case when t.typtype = 'd' then '(trunkline.payload_as($9 ->> %L, null::%s[]))[1]' else '($9 ->> %L)::%s' end,
                                 a.attname, format_type(a.atttypid, -1)), ', ' order by a.attnum)
        into named, restored from pg_attribute a join pg_type t on t.oid = a.atttypid
        where a.attrelid = 'trunkline.{queue_}'::regclass and a.attnum > 0 and not a.attisdropped
          and a.attgenerated = '' and a.attidentity = '' and own ? a.attname::text
          and a.attname <> all (array['id', 'enqueued_at', 'due_at', 'attempt', 'released', 'size', 'error', 'payload', 'metadata']);
    end if;
    if named is null then
        insert into trunkline.{queue_} (id, enqueued_at, attempt, released, error, size, payload, metadata)
        values (id, enqueued_at, attempt, released, error, size, payload, metadata);
    else
        execute format(
            'insert into trunkline.%I (id, enqueued_at, attempt, released, error, size, payload, metadata, %s)
             values ($1, $2, $3, $4, $5, $6, $7, $8, %s)', 'queue_' || {literal}, named, restored)
            using id, enqueued_at, attempt, released, error, size, payload, metadata, own;
    end if;
    get diagnostics stored = row_count;
    if stored = 0 then
        perform trunkline.not_stored({literal}, size, 0);
    end if;
end $f$;
