-- SPDX-License-Identifier: Apache-2.0 OR MIT
-- Of a recording with spans, messages and states, with much that is NULL.
SELECT span, status, quality, count(*), sum(duration), min(duration), max(duration) FROM spans GROUP
    BY span, status, quality;
SELECT span, key, count(*) FROM spans GROUP BY span, key HAVING count(*) > 1;
SELECT count(*) FROM spans WHERE end_ts IS NULL;
SELECT count(*), count(end_ts), count(duration), count(key) FROM spans;
SELECT span, coalesce(key, 'none'), nullif(status, 'complete') FROM spans WHERE duration > 100000 OR
    duration IS NULL;
SELECT span, sum(duration) FILTER (WHERE tid = end_tid), count(*) FILTER (WHERE tid <> end_tid) FROM
    spans GROUP BY span;
SELECT s.span, t.thread, count(*) FROM spans s JOIN threads t ON s.tid = t.tid GROUP BY s.span,
    t.thread;
SELECT t.tid, t.thread, s.n FROM threads t LEFT JOIN (SELECT tid, count(*) AS n FROM spans GROUP BY
    tid) s ON t.tid = s.tid;
SELECT a.span, count(*) FROM spans a JOIN spans b ON a.tid = b.tid AND a.ts < b.ts AND b.end_ts <
    a.end_ts GROUP BY a.span;
SELECT channel, status, count(*), max(latency), count(to_tid) FROM messages GROUP BY channel, status;
SELECT channel, cpu, to_cpu, count(*) FROM messages WHERE latency IS NOT NULL GROUP BY channel, cpu,
    to_cpu ORDER BY 4 DESC, 1, 2, 3 LIMIT 5;
SELECT machine, state, status, count(*), sum(duration) FROM states GROUP BY machine, state, status;
SELECT counter, count(*), min(value), max(value) FROM counters GROUP BY counter;
SELECT tid, ts, sum(duration) OVER (PARTITION BY tid ORDER BY ts, duration, span ROWS 3 PRECEDING)
    FROM spans WHERE duration IS NOT NULL ORDER BY ts, tid, duration, span LIMIT 50;
SELECT span, key, duration FROM spans ORDER BY duration DESC NULLS LAST, ts, span LIMIT 25;
SELECT span, duration FROM spans ORDER BY duration ASC NULLS FIRST, ts, span LIMIT 25;
