-- Returns the last hour as the consoles saw it, and how many seconds ago each minute began, the oldest first.
select h.queue, greatest(0, extract(epoch from pg_catalog.now() - h.minute))::float8, h.depth, h.oldest, h.came, h.went, h.died
from trunkline.history h where h.minute > pg_catalog.now() - interval '1 hour' order by h.minute
