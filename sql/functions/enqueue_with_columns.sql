create or replace function trunkline.enqueue_with_columns(queue text, payload text, columns jsonb, delay interval default '0',
        metadata jsonb default null, priority int default 0, key text default null) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Enqueues a message, whose payload is written as text, with values in columns that you added to the queue's table, and
-- returns its id. Its row has no other messages: for many messages with the same values, see
-- trunkline.enqueue_many_with_columns.
--
-- columns: an object of names and values. The text of each value is converted to the type of its
-- column; dates are in ISO format and times in UTC. Arrays and composite values are strings, in the
-- notation of Postgres. A column that is not named gets its default. delay, metadata, priority,
-- key: as in trunkline.enqueue.
--
-- Such a message has no unique key. A producer needs a right to the column: grant insert (tenant) on
-- trunkline.queue_emails to producer.
--
-- Example:
--     alter table trunkline.queue_emails add column tenant text;
--     select trunkline.enqueue_with_columns('emails', '{"to": "fay@example.org"}', '{"tenant": "acme"}');
begin
    return (select r.id from trunkline.enqueue_many_with_columns(
                queue, array[payload], columns, delay, case when metadata is not null then array[metadata] end, priority,
                case when key is not null then array[key] end) r(id));
end $$;
