-- Returns the name of this database among several that hold the queue, and whether enqueues go elsewhere because it is being drained.
select lpad(to_hex(s.number), 8, '0'), s.drains from trunkline.stripe s
