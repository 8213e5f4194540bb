create or replace function trunkline.tokens(tokens float8, filled_at timestamptz, burst float8, per_second float8, clock timestamptz) returns float8
    language sql immutable
    return least(burst, greatest(tokens, 0) + per_second * extract(epoch from clock - greatest(least(filled_at, clock), 'epoch'))::float8);
comment on function trunkline.tokens(float8, timestamptz, float8, float8, timestamptz) is 'Returns the present contents of a bucket.
A time in the future was written while a clock was ahead. A bucket with impossible values, from a manual change, counts as empty or full.
Written as an expression, so that it is inlined and no search_path matters.';
