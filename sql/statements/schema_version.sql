-- Returns the last step, and the oldest version whose programs work with it. Returns no row before
-- the first step.
select v.version, v.oldest from trunkline.version v order by v.version desc limit 1
