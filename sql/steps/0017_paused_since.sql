-- The time at which a queue was paused.
alter table trunkline.queue add column paused_at timestamptz;
