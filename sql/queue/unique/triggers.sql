-- Creates the triggers once, after the function that they call.
create trigger free_keys after delete on trunkline.{queue_} referencing old table as gone for each statement execute function trunkline.{do_free_}();
create trigger free_all_keys after truncate on trunkline.{queue_} for each statement execute function trunkline.{do_free_}();
