SELECT count(*)
FROM testigo.job
WHERE state NOT IN ('succeeded', 'succeeded_degraded', 'permanent_failure', 'cancelled', 'superseded')
