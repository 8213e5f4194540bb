create or replace function trunkline.listen(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Makes this session listen for the queue's messages: from the commit on, producers notify it on
-- the channel that is named after the schema and the queue. A plain LISTEN is not enough: producers
-- in SQL notify only if a session has announced itself here. A transaction that began before this
-- call may still commit messages without a notification. So dequeue once after the commit, and from
-- time to time afterwards. The session listens until it calls trunkline.unlisten or ends. After a
-- rollback, the session does not listen, but producers notify until it calls trunkline.unlisten or
-- ends.
--
-- Call the function on a direct connection. Behind a pooler in transaction mode, such as PgBouncer, it succeeds, but no
-- notification reaches the client, and producers notify as long as the pooler keeps the server's session.
--
-- Example:
--     select trunkline.listen('emails');
declare
    channel text := 'trunkline.' || queue;
begin
    perform trunkline.check_queue(queue);
    perform pg_advisory_lock_shared(1953656427, hashtext(channel));
    perform set_config('trunkline.listens', concat_ws(',', nullif(current_setting('trunkline.listens', true), ''), queue), false);
    execute format('listen %I', channel);
end $$;
