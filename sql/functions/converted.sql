create or replace function trunkline.converted(queue text, parameter text, is_list bool, texts text[] default null) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Returns the expression that converts a parameter of a statement to an array of a queue's payloads. The expression is
-- usually a cast. If the cast may shorten the value, the expression calls a function instead, which refuses such a
-- value.
--
-- texts: the payloads, if they are written as text. If the queue's payloads are bytes, a text that has a backslash must be
-- in hex notation: otherwise it may be bytes that a driver passed without their type. PostgreSQL would read it as escapes,
-- and so as other bytes.
declare
    type regtype := trunkline.payload_type(queue);
    base regtype := trunkline.base_type(type);
    mark text := chr(92);
begin
    if texts is not null and base = 'bytea'::regtype
       and exists (select from unnest(texts) t(payload) where strpos(t.payload, mark) > 0 and not starts_with(t.payload, mark || 'x')) then
        raise exception 'a payload of queue % is a text with a backslash, and not in hex notation', quote_literal(queue)
            using errcode = 'invalid_text_representation',
                  hint = format('Cast the parameter to bytea, as in $2::bytea (a list to bytea[]), or write the bytes as ''%sx0aff''.', mark);
    end if;
    if not trunkline.shortens(type) then
        return format(case when is_list then '%s::%s[]' else 'array[%s::%s]' end, parameter, format_type(type, -1));
    end if;
    if base <> type and not trunkline.is_array(base) then
        parameter := format(case when is_list then '%s::%s[]' else '%s::%s' end, parameter, format_type(base, -1));
    end if;
    return format(case when is_list then 'trunkline.payloads_as(%s, null::%s[])' else 'trunkline.payload_as(%s, null::%s[])' end,
                  parameter, format_type(type, -1));
end $$;
