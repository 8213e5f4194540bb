-- Returns what message k of a row, counted from 0, keeps of what do_kept_ returned for the row. All messages of a row keep the same. The server
-- inlines the expression. No search_path matters.
create or replace function trunkline.{do_keptof_}(own jsonb, k int) returns jsonb
    language sql immutable
    return own;
