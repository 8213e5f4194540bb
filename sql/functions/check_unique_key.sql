create or replace function trunkline.check_unique_key(unique_key text) returns void
    language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
-- Fails if the unique key of a single message is null. Without a key, the call would enqueue the message again each time.
begin
    if unique_key is null then
        raise exception 'the unique key must not be null' using errcode = 'null_value_not_allowed',
            hint = 'Pass a key of 1 to 1,024 bytes; or enqueue a message without a unique key with trunkline.enqueue.';
    end if;
end $$;
