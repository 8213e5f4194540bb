-- Returns what a dead letter or an archived message keeps of its row, by column: the columns that
-- users added, the partition and the keys. The server inlines the expression, and do_own_ is a
-- constant in it. So a queue without such columns pays nothing for them, and the search_path has no
-- effect.
create or replace function trunkline.{do_kept_}(r trunkline.{queue_}) returns jsonb
    language sql stable
    return coalesce(case when trunkline.{do_own_}() is not null then trunkline.own(trunkline.{do_own_}(), r) end, '{}')
           || jsonb_build_object('lane', r.lane::text, 'keys', r.keys);
