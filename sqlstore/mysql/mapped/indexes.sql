-- Returns the names of the indexes of the side tables that can be used.
SELECT DISTINCT index_name
FROM information_schema.statistics
WHERE table_schema = coalesce(nullif('{database}', ''), database()) AND table_name IN ('{side}_failures', '{side}_holds', '{side}_attempts', '{side}_jobs')
  /*!80019 AND is_visible = 'YES' */ /*M!100600 AND ignored = 'NO' */;
