-- Returns the part of the result of do_kept_ for a row that belongs to message k of the row,
-- counted from 0. Each message keeps its own key, as an array of one. The server inlines the
-- expression, so the search_path has no effect.
create or replace function trunkline.{do_keptof_}(own jsonb, k int) returns jsonb
    language sql immutable
    return own || jsonb_build_object('keys', array[own -> 'keys' ->> k]::text);
