create or replace function trunkline.send_element(queue text, element bytea, metadata jsonb default null) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off set row_security = on as $$
-- Hands a message (in the binary format of the wire protocol) to one waiting consumer without storing it, for
-- trunkline.send_direct and for client libraries. Returns the message's id. Returns null if no consumer waits, if the
-- message does not fit into a notification, or if the queue is paused or has limits: then the caller has to enqueue the
-- message.
declare
    text_of text := translate(encode(element, 'base64'), chr(10), '')
        || coalesce(' ' || translate(encode(convert_to(metadata::text, 'UTF8'), 'base64'), chr(10), ''), '');
    waiting record;
    id bigint;
begin
    perform trunkline.check_queue(queue), trunkline.check_metadata(metadata);
    if length(text_of) > 7900 or exists (
            select from trunkline.queue q
            where q.name = queue and (q.paused or coalesce(q.max_leased, q.per_second) is not null)) then
        return null;
    end if;
    loop
        select w.consumer, w.alive into waiting from trunkline.waiting w where w.queue = send_element.queue limit 1 for update skip locked;
        if not found then
            return null;
        end if;
        perform trunkline.wait_no_more(waiting.consumer);
        -- The session that listens for the consumer holds this lock exclusively. Senders share it, so that none takes another
        -- sender for that session.
        continue when pg_try_advisory_xact_lock_shared(waiting.alive); -- the consumer died
        id := nextval(format('trunkline.%I', 'id_' || queue));
        perform pg_notify(waiting.consumer, format('%s %s %s', id, (extract(epoch from clock_timestamp()) * 1000000)::bigint, text_of));
        return id;
    end loop;
end $$;
