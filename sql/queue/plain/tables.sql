-- Because of the sum, this index is not used for conditions on the id. Otherwise plans that were
-- made while the table was empty would continue to use it for such conditions.
create index {due_} on trunkline.{queue_} (due_at, (id + 0));
