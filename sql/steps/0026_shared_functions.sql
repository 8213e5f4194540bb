-- Functions that each queue had became functions that all queues share. A migration creates them and, in transactions of
-- their own because of the locks, drops the others (trunkline.describe_functions). This step changes the version, so that
-- programs that call the new functions refuse an older schema, and drops a shared function that is no longer called.
drop function if exists trunkline.dispatch(text, anyelement);
