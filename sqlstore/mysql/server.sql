-- Returns the server, whether its version is supported, and the user. Versions compare as numbers.
SELECT concat(IF(version() LIKE '%MariaDB%', 'MariaDB ', 'MySQL '), version()),
       substring_index(version(), '.', 1) * 1000000 + substring_index(substring_index(version(), '.', 2), '.', -1) * 1000
         + CAST(substring_index(version(), '.', -1) AS UNSIGNED) >= IF(version() LIKE '%MariaDB%', 10006000, 8000019),
       current_user();
