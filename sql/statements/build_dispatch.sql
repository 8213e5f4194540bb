-- Runs after the functions of every queue were installed.
select trunkline.build_dispatch('10s')
