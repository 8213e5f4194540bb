create or replace function trunkline.payload_bytes(queue text, bytes int) returns bigint
    language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
-- Returns the size of a payload in bytes; fails if the payload is null or too large.
begin
    if bytes is null then
        raise exception 'a payload of queue % is null', quote_literal(queue) using errcode = 'null_value_not_allowed',
            hint = 'Every message needs a payload. For a queue of signals, enqueue an empty value.';
    elsif bytes > 67108864 + 4 then
        raise exception 'a payload of % bytes is too large for queue %', bytes - 4, quote_literal(queue)
            using errcode = 'program_limit_exceeded',
                  hint = 'A payload is at most 64 MiB. Store it elsewhere and enqueue its address.';
    end if;
    return bytes;
end $$;
