-- Reads one row. Runs on each new connection, and every few seconds while messages are
-- enqueued.
select number, drains from trunkline.stripe
