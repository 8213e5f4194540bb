-- The last step, and the oldest version whose programs work with it; nothing before the first.
select v.version, v.oldest from trunkline.version v order by v.version desc limit 1
