-- Reads one row. Runs at the start, and every few seconds while messages are enqueued.
select number, drains from trunkline.stripe
