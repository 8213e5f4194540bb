-- Returns what message k of a row, counted from 0, keeps of what do_kept_ returned for the row. Each message keeps its own key, as an array of one.
-- The server inlines the expression. No search_path matters.
create or replace function trunkline.{do_keptof_}(own jsonb, k int) returns jsonb
    language sql immutable
    return own || jsonb_build_object('keys', array[own -> 'keys' ->> k]::text);
