// SPDX-License-Identifier: Apache-2.0 OR MIT
// What a script finds when it begins: `filter` and `activity`. The value of this file is a
// function; the host calls it once and keeps what it returns.
(() => {
    "use strict";
    const registered = { filters: [], activities: [] };
    const textOf = Function.prototype.call.bind(Function.prototype.toString);
    const wrong = (what) => {
        throw new TypeError(what);
    };
    // The host answers these itself where it can: they stay what they are.
    for (const name of ["startsWith", "endsWith", "includes"]) {
        Object.defineProperty(String.prototype, name, { writable: false, configurable: false });
    }
    // The same script says the same of the same trace.
    delete Math.random;

    const named = (call, name) => {
        if (typeof name !== "string" || name === "") {
            wrong(`${call} needs a name, as in ${call}("Mutex")`);
        }
        return name;
    };

    const filter = (first, second) => {
        const test = typeof first === "function" ? first : second;
        if (typeof test !== "function") {
            wrong("filter needs a function, as in filter(event => event.cpu === 2)");
        }
        const number = registered.filters.length + 1;
        const name = test === first ? `filter ${number}` : named("filter", first);
        registered.filters[registered.filters.length] = { name, test, text: textOf(test) };
    };

    // Names of events and a function, in any number.
    const side = (call, what) => {
        const patterns = [];
        let test;
        for (const one of what.flat()) {
            if (typeof one === "string" && one !== "") {
                patterns[patterns.length] = one;
            } else if (typeof one === "function" && test === undefined) {
                test = one;
            } else {
                wrong(`${call} takes names of events and one function, as in ${call}("threads:MUTEX_LOCK")`);
            }
        }
        if (patterns.length === 0 && test === undefined) {
            wrong(`${call} needs the name of an event, as in ${call}("threads:MUTEX_LOCK")`);
        }
        return { patterns, test, text: test && textOf(test) };
    };

    const fields = (call, what) => {
        for (const one of what) {
            if (typeof one !== "string" || one === "") {
                wrong(`${call} takes names of fields, as in ${call}("mutex")`);
            }
        }
        return what;
    };

    const activity = (name, decode) => {
        const record = { name: named("activity", name), decode, keys: [], attributes: [] };
        if (decode !== undefined && typeof decode !== "function") {
            wrong("activity takes a function, as in activity(\"Mutex\", (event, activity) => { … })");
        }
        registered.activities[registered.activities.length] = record;
        if (decode !== undefined) {
            return undefined;
        }
        const builder = Object.freeze({
            begin(...what) {
                record.begin = side("begin", what);
                return builder;
            },
            end(...what) {
                record.end = side("end", what);
                return builder;
            },
            key(...what) {
                if (what.length === 1 && typeof what[0] === "function") {
                    record.keyOf = what[0];
                    record.keyText = textOf(what[0]);
                } else {
                    record.keys = fields("key", what.flat());
                }
                return builder;
            },
            attributes(...what) {
                record.attributes = fields("attributes", what.flat());
                return builder;
            },
        });
        return builder;
    };

    for (const [name, value] of Object.entries({ filter, activity })) {
        Object.defineProperty(globalThis, name, { value });
    }
    return registered;
})();
