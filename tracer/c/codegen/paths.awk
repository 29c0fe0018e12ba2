# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# Reads `objdump -d` and prints, for each function, how many instructions it takes to leave it
# without recording and with a record, on the shortest way that calls nothing:
#
#   FUNCTION/disabled COUNT
#   FUNCTION/recorded COUNT
#
# A way records if it reads the clock. The site of a patched event leads to its jump as well.

function target(text,    at) { # address of a jump: the number in front of `<`
    at = match(text, /[0-9a-f]+ </)
    return at ? substr(text, at, RLENGTH - 2) : ""
}
function number(hex,    i, value) {
    value = 0
    for (i = 1; i <= length(hex); i++)
        value = value * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
    return value
}
function visit(at, clock, steps) {
    if (at == "" || !(at in instruction) || ((at, clock) in seen)) return
    seen[at, clock] = 1
    queue_at[tail] = at; queue_clock[tail] = clock; queue_steps[tail] = steps; tail++
}
function shortest(    head, at, clock, steps, op, text, best) {
    split("", seen); head = 1; tail = 1
    best[0] = best[1] = ""
    visit(entry, 0, 0)
    while (head < tail) {
        at = queue_at[head]; clock = queue_clock[head]; steps = queue_steps[head] + 1; head++
        text = instruction[at]; op = text; sub(/[ \t].*/, "", op)
        if (op == "rdtsc" || text ~ /cntvct_el0/) clock = 1
        if (op ~ /^ret/) { if (best[clock] == "") best[clock] = steps; continue }
        if (op ~ /^(call|bl|blr)/) continue
        if (op == "jmp" || op == "jmpq" || op == "b") { visit(target(text), clock, steps); continue }
        if (op ~ /^j/ || op ~ /^b\./ || op ~ /^[ct]bn?z$/) visit(target(text), clock, steps)
        if (op == "test" && text ~ /\$0x[0-9a-f]+,%eax$/) {
            sub(/.*\$0x/, "", text); sub(/,.*/, "", text)
            visit(sprintf("%x", number(at) + 5 + number(text)), clock, steps)
        }
        visit(following[at], clock, steps)
    }
    if (name !~ /^probe_/) return
    if (best[0] != "") print name "/disabled\t" best[0]
    if (best[1] != "") print name "/recorded\t" best[1]
}
/^[0-9a-f]+ <.*>:$/ {
    if (name != "") shortest()
    split("", instruction); split("", following)
    name = $2; gsub(/[<>:]/, "", name); last = ""; entry = ""
    next
}
/^ *[0-9a-f]+:\t/ {
    if ($2 ~ /^R_/) next # a relocation
    at = $1; sub(/:/, "", at)
    text = $0; sub(/^[^\t]*\t/, "", text)
    instruction[at] = text
    if (last != "") following[last] = at
    if (entry == "") entry = at
    last = at
}
END { if (name != "") shortest() }
