-- Functions whose names or parameters change to established terms are dropped, and created again from their files.
drop function if exists trunkline.create_queue(text, regtype, int, interval, int, int, interval, bool, int, int);
drop function if exists trunkline.alter_queue(text, int, interval, int, interval, int, int);
drop function if exists trunkline.check_settings(text, int, interval, int, int, interval, int, int);
drop function if exists trunkline.lease_lane(text, int, interval);
drop function if exists trunkline.release_lane(text, bigint);
drop function if exists trunkline.hand_over(text, bytea, jsonb);
