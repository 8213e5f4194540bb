-- Returns the columns that message k (from 0) of a row keeps when it is buried or archived. own is
-- what do_kept_ returned for the row. Without keys, all messages of a row keep the same values. The
-- server inlines the expression, so the search_path has no effect.
create or replace function trunkline.{do_keptof_}(own jsonb, k int) returns jsonb
    language sql immutable
    return own;
