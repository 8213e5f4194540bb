-- Said before a look, for its transaction alone: one core at most, so that the time it took is what it cost.
select set_config('max_parallel_workers_per_gather', '0', true), set_config('jit', 'off', true)
