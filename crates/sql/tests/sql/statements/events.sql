-- SPDX-License-Identifier: Apache-2.0 OR MIT
-- Of every trace. Two engines read these alike; one statement a line.
SELECT count(*) FROM events;
SELECT class, count(*) FROM events GROUP BY class;
SELECT min(ts), max(ts), count(DISTINCT ts) FROM events;
SELECT ts, class FROM events ORDER BY ts, class LIMIT 20;
SELECT ts, class FROM events ORDER BY ts DESC, class DESC LIMIT 20 OFFSET 7;
SELECT cpu, class, count(*), min(ts) FROM events GROUP BY cpu, class HAVING count(*) > 3;
SELECT class, count(*) FROM events WHERE ts > (SELECT min(ts) + 1000000 FROM events) GROUP BY class;
SELECT count(*) FROM events WHERE ts BETWEEN (SELECT min(ts) FROM events) AND (SELECT min(ts) +
    5000000 FROM events);
SELECT DISTINCT process, pid, thread, tid FROM events;
SELECT count(process), count(tid), count(*) FROM events;
SELECT class, length(class), upper(class), substr(class, 2, 3) FROM classes;
SELECT class FROM classes WHERE class LIKE '%s%' OR class LIKE '_r%';
SELECT class, CASE WHEN count > 1000 THEN 'many' WHEN count > 0 THEN 'some' ELSE 'none' END FROM
    classes;
SELECT c.class, c.count, e.n FROM classes c JOIN (SELECT class, count(*) AS n FROM events GROUP BY
    class) e ON c.class = e.class;
SELECT c.class, e.n FROM classes c LEFT JOIN (SELECT class, count(*) AS n FROM events WHERE class
    LIKE '%e%' GROUP BY class) e ON c.class = e.class;
SELECT count(*) FROM events a JOIN packets p ON a.packet = p.packet AND a.stream = p.stream;
SELECT a.stream, count(*) FROM streams a FULL JOIN packets p ON a.stream = p.stream AND p.packet > 2
    GROUP BY a.stream;
SELECT class FROM classes WHERE class IN (SELECT class FROM events WHERE packet = 0);
SELECT class FROM classes c WHERE EXISTS (SELECT 1 FROM events e WHERE e.class = c.class);
SELECT class FROM classes WHERE class NOT IN (SELECT class FROM events);
SELECT class FROM classes UNION SELECT class FROM events;
SELECT class FROM classes EXCEPT SELECT class FROM events WHERE packet > 1;
SELECT class FROM events INTERSECT SELECT class FROM classes;
SELECT class, row_number() OVER (ORDER BY count DESC, class) FROM classes;
SELECT max(gap) FROM (SELECT ts - lag(ts) OVER (ORDER BY ts) AS gap FROM events) g;
SELECT class, max(gap), min(gap), count(gap) FROM (SELECT class, ts - lag(ts) OVER (PARTITION BY
    class ORDER BY ts) AS gap FROM events) g GROUP BY class;
SELECT class, n, sum(n) OVER (ORDER BY class ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM
    (SELECT class, count(*) AS n FROM events GROUP BY class) t;
SELECT class, rank() OVER (ORDER BY n), dense_rank() OVER (ORDER BY n), first_value(class) OVER
    (ORDER BY class) FROM (SELECT class, count(*) AS n FROM events GROUP BY class) t;
WITH e AS (SELECT class, ts FROM events), f AS (SELECT class, min(ts) AS first FROM e GROUP BY
    class) SELECT e.class, count(*) FROM e JOIN f ON e.class = f.class AND e.ts = f.first GROUP BY
    e.class;
SELECT class, avg(ts - (SELECT min(ts) FROM events)), sum(ts - (SELECT min(ts) FROM events)) FROM
    events GROUP BY class;
SELECT ts - ts % 1000000, count(*) FROM events GROUP BY ts - ts % 1000000;
SELECT ts - ts % 5000000, class, cpu, count(*) FROM events WHERE ts > 1000 AND class LIKE '%e%' GROUP
    BY ts - ts % 5000000, class, cpu;
SELECT class, count(*) FILTER (WHERE cpu > 0), max(cpu), count(cpu) FROM events GROUP BY class;
