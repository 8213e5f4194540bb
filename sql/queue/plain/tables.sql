-- The sum hides the id from conditions on it: plans that were made while the table was empty would keep using this index for them.
create index {due_} on trunkline.{queue_} (due_at, (id + 0));
