-- Deletes the rows of relays that ended.
select trunkline.forget_relays()
