create or replace function trunkline.not_stored(queue text, wanted bigint, stored bigint) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Fails because a trigger or a rule on a queue's table silently refused rows. The statement has no
-- effect, so messages that were to be split, replayed or put back are not lost.
begin
    raise exception 'queue % stored % of % messages, because a trigger or a rule on its table silently refused the others', quote_literal(queue), stored, wanted
        using errcode = 'triggered_action_exception', hint = 'Let the trigger raise an error for a message that it refuses.';
end $$;
