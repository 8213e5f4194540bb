-- Returns the part of the result of do_kept_ for a row that belongs to message k of the row,
-- counted from 0. It is the same for all messages of a row. The server inlines the expression, so
-- the search_path has no effect.
create or replace function trunkline.{do_keptof_}(own jsonb, k int) returns jsonb
    language sql immutable
    return own;
