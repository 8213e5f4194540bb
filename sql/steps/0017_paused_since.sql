-- Since when a queue is paused.
alter table trunkline.queue add column paused_at timestamptz;
