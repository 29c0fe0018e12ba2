-- SPDX-License-Identifier: Apache-2.0 OR MIT
-- Of lttng-ust-20k: text, unsigned numbers of 64 bits, the same name in two tables.
SELECT id, addr FROM "bench:begin" ORDER BY addr DESC, id LIMIT 9;
SELECT count(*), max(addr), min(addr), count(DISTINCT addr) FROM "bench:begin";
SELECT b.id, e.ret, b.addr FROM "bench:begin" b JOIN "bench:end" e ON b.id = e.id + 1 ORDER BY b.addr,
    b.id, e.ret LIMIT 30;
SELECT s, v FROM "bench:msg" WHERE s LIKE '%p%' ORDER BY s, v LIMIT 30;
SELECT "context.procname", "context.vtid", count(*) FROM "bench:msg" GROUP BY 1, 2;
SELECT addr > 9223372036854775807, count(*) FROM "bench:begin" GROUP BY 1;
