-- Nobody claims the rows of a mapped table one by one.
SELECT 1;
