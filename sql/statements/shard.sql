-- One row, and seldom asked for: at the beginning, and every few seconds while something is enqueued.
select number, drains from trunkline.stripe
