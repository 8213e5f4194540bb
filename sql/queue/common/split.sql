create or replace function trunkline.{do_split_}(row_id bigint, cuts int[], lined text[] default '{}')
    returns void language plpgsql set search_path = pg_catalog, pg_temp as $f$
-- Cuts a row, which the caller has locked, before the messages at the given offsets. One rewrite
-- cuts a row into at least 32 pieces. So a consumer that takes it message by message causes two
-- rewrites, not a thousand. lined: a piece that begins with a message of one of these keys goes to
-- the backlog (line) of that key.
#variable_conflict use_variable
declare
    r trunkline.{queue_}%rowtype;
    whole {type}[];
    whole_metadata jsonb[];
    whole_keys text[];
    whole_line text;
    whole_size int;
    ends int[];
    pieces trunkline.{queue_}[] := '{}';
    start int := 0;
    stop int;
    computed bool := exists (select from pg_attribute a where a.attrelid = 'trunkline.{queue_}'::regclass and a.attnum > 0
                             and not a.attisdropped and (a.attgenerated <> '' or a.attidentity <> ''));
    written text;
    stored bigint;
begin
    select * into r from trunkline.{queue_} q where q.id = row_id;
    whole := r.payload;
    whole_metadata := r.metadata;
    if {keyed} then
        whole_keys := r.keys;
        whole_line := r.line;
    end if;
    whole_size := r.size;
    if r.error is null and (array_ndims(whole) is distinct from 1 or array_lower(whole, 1) <> 1 or cardinality(whole) <> whole_size
                            or num_nulls(variadic whole) > 0) then
        -- The row is malformed and got past trunkline.refuse_row. That trigger accepts parts of
        -- such a row only if they have an error. A consumer that reads the parts counts an attempt.
        r.error := 'part of a row that is no batch';
    end if;
    select array_agg(distinct c order by c) into ends from (
        select unnest(cuts) union all
        select generate_series(1, 32) * ((whole_size + 31) / 32) union all
        select whole_size) x(c)
    where c > 0 and c <= whole_size;
    foreach stop in array ends loop
        r.size := stop - start;
        r.payload := whole[start + 1 : stop];
        r.metadata := whole_metadata[start + 1 : stop];
        if {keyed} then
            r.keys := whole_keys[start + 1 : stop];
            r.line := case when r.keys[1] = any (lined) then r.keys[1] else whole_line end;
        end if;
        if num_nonnulls(variadic r.metadata) = 0 then
            r.metadata := null;
        end if;
        if start = 0 then
            if {keyed} then
                update trunkline.{queue_} q
                set size = r.size, payload = r.payload, metadata = r.metadata, error = r.error, keys = r.keys, line = r.line where q.id = row_id;
            else
                update trunkline.{queue_} q set size = r.size, payload = r.payload, metadata = r.metadata, error = r.error where q.id = row_id;
            end if;
        else
            r.id := row_id + start;
            pieces := pieces || r;
        end if;
        -- A statement for each piece would cost more than the piece, but an array of all pieces
        -- would keep a large row in memory twice.
        if cardinality(pieces) = 64 or stop = whole_size and cardinality(pieces) > 0 then
            if computed then
                -- A generated column that a user added accepts no value, not even the one that it
                -- has.
                written := coalesce(written, (
                    select string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_attribute a
                    where a.attrelid = 'trunkline.{queue_}'::regclass and a.attnum > 0 and not a.attisdropped
                      and a.attgenerated = '' and a.attidentity = ''));
                execute format('insert into trunkline.%I (%s) select %s from unnest($1) p', 'queue_' || {literal}, written, written)
                    using pieces;
            else
                insert into trunkline.{queue_} select p.* from unnest(pieces) p;
            end if;
            get diagnostics stored = row_count;
            if stored <> cardinality(pieces) then
                perform trunkline.not_stored({literal}, whole_size, whole_size - (select sum(p.size) from unnest(pieces) p));
            end if;
            pieces := '{}';
        end if;
        start := stop;
    end loop;
end $f$;
