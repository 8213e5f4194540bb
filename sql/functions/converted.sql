create or replace function trunkline.converted(queue text, parameter text, is_list bool) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Returns the expression that converts a parameter of a statement to an array of a queue's payloads. The expression is
-- usually a cast. If the cast may shorten the value, the expression calls a function instead, which refuses such a
-- value.
declare
    type regtype := trunkline.payload_type(queue);
    base regtype;
begin
    if not trunkline.shortens(type) then
        return format(case when is_list then '%s::%s[]' else 'array[%s::%s]' end, parameter, format_type(type, -1));
    end if;
    base := trunkline.base_type(type);
    if base <> type and not trunkline.is_array(base) then
        parameter := format(case when is_list then '%s::%s[]' else '%s::%s' end, parameter, format_type(base, -1));
    end if;
    return format(case when is_list then 'trunkline.payloads_as(%s, null::%s[])' else 'trunkline.payload_as(%s, null::%s[])' end,
                  parameter, format_type(type, -1));
end $$;
