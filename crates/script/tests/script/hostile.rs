// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whatever a script does, it ends, within its memory, with an error in its place.

use crate::traces::{activities, every_kind, kept, load, locks};
use lateralis_script::{Limits, Script, ScriptError};

/// Less than usual, so that the tests are quick.
fn small() -> Limits {
    Limits { memory_bytes: 16 << 20, stack_bytes: 256 << 10, steps: 500_000, steps_per_event: 100 }
}

/// Runs on load, or in a filter.
fn both(body: &str) -> [Result<Vec<bool>, ScriptError>; 2] {
    let run = |source: String| {
        let mut script = Script::load("test.js", &source, small())?;
        kept(&mut script, &every_kind(&[1, 2, 3]))
    };
    [
        run(format!("filter(e => true);\n{body}")),
        run(format!("filter(e => {{\n{body}\nreturn true; }})")),
    ]
}

#[test]
fn endless_work_is_stopped() {
    for body in [
        "for (;;);",
        "while (true) { try { null.x } catch {} }",
        "try { for (;;); } catch { for (;;); } finally { for (;;); }",
        "let n = 0; do n++; while (n >= 0);",
        "(function f() { try { f() } finally { f() } })()",
        "[...(function* () { for (;;) yield; })()].x",
        "/(a+)+$/.test('a'.repeat(40) + 'b');",
        "/(?:a|aa)+$/.test('a'.repeat(60) + 'b');",
        "Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1);",
        "Array.prototype.includes.call({length: 2 ** 53 - 1}, 1);",
        "Array.prototype.forEach.call({length: 2 ** 53 - 1}, () => 0);",
        "[1, 2, 3].sort(() => { for (;;); });",
        "JSON.stringify({toJSON() { for (;;); }});",
        "`${{toString() { for (;;); }}}`;",
        "new Proxy({}, {get() { for (;;); }}).x;",
        "eval('for (;;);');",
    ] {
        for result in both(body) {
            let error = result.expect_err(body);
            assert!(error.message.contains("stopped after 500000 steps"), "{body}: {error}");
        }
    }
}

#[test]
fn memory_is_bounded() {
    for body in [
        "const all = []; for (;;) all.push(new Array(1000).fill(1));",
        "let s = 'x'; for (;;) s += s;",
        "'x'.repeat(2 ** 29);",
        "new Array(2 ** 27).fill(0);",
        "'x'.padEnd(2 ** 28);",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, {i});",
        "let o = {}; for (;;) o = {o};",
        "let n = 2n; for (;;) n = n * n;",
        "JSON.stringify(new Array(2 ** 24).fill('xxxxxxxx'));",
    ] {
        for result in both(body) {
            let error = result.expect_err(body);
            let of_memory = [
                "out of memory",
                "of memory were used up",
                "invalid string length",
                "stopped after",
            ];
            let range = ["RangeError", "InternalError"];
            let is_it = of_memory.iter().chain(&range).any(|part| error.message.contains(part));
            assert!(is_it, "{body}: {error}");
        }
    }
    // Catching it does not help: the memory stays what it is.
    let body =
        "const all = []; for (;;) { try { all.push('x'.repeat(1e6) + all.length) } catch {} }";
    for result in both(body) {
        let error = result.expect_err(body);
        let message = &error.message;
        let ends = message.contains("stopped") || message.contains("memory");
        assert!(ends, "{error}");
    }
}

#[test]
fn recursion_is_bounded() {
    for body in [
        "(function f() { return f() + 1; })();",
        "const o = {}; o.toString = () => `${o}`; `${o}`;",
        "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; JSON.stringify(a);",
        "new Function('return ' + '('.repeat(1e5) + ')'.repeat(1e5))();",
        "/(((((((((((a)))))))))))/.test('a'); new RegExp('('.repeat(1e5) + ')'.repeat(1e5));",
        "class A extends (class {}) { constructor() { new A(); super(); } } new A();",
    ] {
        for result in both(body) {
            let error = result.expect_err(body);
            assert!(!error.message.is_empty() && error.message.len() < 500, "{body}: {error}");
        }
    }
}

#[test]
fn anything_can_be_thrown() {
    for (body, message) in [
        ("throw undefined", "threw undefined"),
        ("throw null", "threw null, or its 16 MiB of memory were used up"),
        ("throw 'x'.repeat(1e5)", "threw xxx"),
        ("throw Symbol('s')", "threw symbol"),
        ("throw {get message() { for (;;); }}", "threw [object Object]"),
        ("throw {toString() { throw 1 }}", "threw object"),
        (
            "const x = new Error(); Object.defineProperty(x, 'message', {get() { throw x }}); throw x",
            "an error without a message",
        ),
        ("const x = new Error('a\\nb\\x1b[31m'); throw x", "a b [31m"),
        ("const x = new Error('a'); x.stack = 'test.js:99999999999:1'; throw x", "a"),
        ("const x = new Error('a'); x.stack = {}; throw x", "a"),
        ("throw new Proxy(new Error('a'), {get() { throw 1 }})", "threw proxy"),
    ] {
        for result in both(body) {
            let error = result.expect_err(body);
            assert!(error.message.contains(message), "{body}: {error:?}");
            assert!(!error.to_string().contains('\x1b'), "{error:?}");
        }
    }
    let mut script = load(
        "filter(e => { const x = new Error('a'); Object.defineProperty(x, \
        'message', {get() { for (;;); }}); throw x })",
    );
    assert!(kept(&mut script, &every_kind(&[1])).is_err());
}

#[test]
fn nothing_outside_can_be_reached() {
    for name in [
        "require",
        "process",
        "std",
        "os",
        "Deno",
        "fetch",
        "console",
        "print",
        "setTimeout",
        "Date",
        "performance",
        "WebAssembly",
        "Atomics",
        "SharedArrayBuffer",
        "Worker",
        "gc",
        "load",
        "scriptArgs",
        "WeakRef",
        "FinalizationRegistry",
    ] {
        let mut script = load(&format!("filter(e => typeof {name} === 'undefined')"));
        assert_eq!(kept(&mut script, &every_kind(&[1])).unwrap(), [true], "{name}");
    }
    let error = Script::load("test.js", "import * as x from 'std'; filter(e => true)", small());
    assert!(error.is_err());
    let mut script = load("filter(e => { import('std'); return Math.random === undefined })");
    // No loader: the promise is never kept.
    let result = kept(&mut script, &every_kind(&[1]));
    assert!(result.is_err() || result == Ok(vec![true]), "{result:?}");
}

#[test]
fn prototype_games_change_nothing_that_is_compiled() {
    let trace = every_kind(&[3]);
    let games = "
        Object.prototype.none = 5;
        Object.defineProperty(Object.prototype, 'cpu', {get() { return 99 }, set(x) {}});
        Object.prototype.fields = null;
        Number.prototype.valueOf = () => 7;
        Number.prototype[Symbol.toPrimitive] = () => 7;
        try { String.prototype.startsWith = () => false } catch {}
        try { Object.defineProperty(String.prototype, 'includes', {value: () => false}) } catch {}
        Function.prototype.toString = () => 'e => false';
        Array.prototype[Symbol.iterator] = () => { throw 1 };
        Array.prototype.flat = () => { throw 2 };
        globalThis.undefined2 = 3;
    ";
    for expression in [
        "e.fields.none === undefined && e.cpu === 3 && e.fields.u === 4096",
        "e.name.startsWith('io:') && e.name.includes('READ')",
        "e.none === undefined",
    ] {
        let compiled = format!("{games}; filter(e => {expression})");
        let interpreted = format!("{games}; filter(e => {{ const x = {expression}; return x }})");
        for source in [compiled, interpreted] {
            assert_eq!(kept(&mut load(&source), &trace).unwrap(), [true], "{source}");
        }
    }
    // A function that says it is another.
    let mut script = load("const f = e => e.cpu === 3; f.toString = () => 'e => false'; filter(f)");
    assert_eq!(kept(&mut script, &trace).unwrap(), [true]);
    // An event is the call's own.
    let mut script = load(
        "let last; filter(e => { const had = e.mark; e.mark = 1; last = e; \
        delete e.cpu; return had === undefined }); filter(e => e.cpu === 3 && e.mark === undefined)",
    );
    assert_eq!(kept(&mut script, &every_kind(&[1, 2])).unwrap(), [true, true]);
}

#[test]
fn odd_functions_are_refused_or_harmless() {
    let trace = every_kind(&[1]);
    let mut script = load("filter(async e => false)");
    assert!(kept(&mut script, &trace).unwrap_err().message.contains("async"));
    let mut script = load("filter(function* () { yield 1 })");
    assert_eq!(kept(&mut script, &trace).unwrap(), [true]);
    let mut script = load("filter(class { })");
    assert!(kept(&mut script, &trace).is_err());
    let mut script = load("filter(Boolean)");
    assert_eq!(kept(&mut script, &trace).unwrap(), [true]);
    // Declared later than the script is loaded: not seen, and no harm.
    let mut script =
        load("filter(e => { filter(() => false); activity('A', () => 0); return true })");
    assert_eq!(kept(&mut script, &trace).unwrap(), [true]);
    let mut script =
        load("let h; activity('A', (e, a) => { h = a; }); activity('B', e => h.begin())");
    let (found, left) = activities(&mut script, &locks(&[(1, 1, 0, "X", 0)])).unwrap();
    assert_eq!((found.len(), left), (0, vec![(1, 0), (0, 0)]));
    for source in ["a\0b", "", "\u{feff}", "filter(e => true)\0"] {
        assert!(Script::load("x\0.js", source, small()).is_err(), "{source:?}");
    }
    assert!(Script::load("x.js", &" ".repeat(2 << 20), small()).is_err());
    let many = "filter(e => true);".repeat(2000);
    assert!(Script::load("x.js", &many, small()).is_err());
}

#[test]
fn a_script_that_was_stopped_stays_stopped() {
    let mut script = Script::load("x.js", "filter(e => { for (;;); })", small()).unwrap();
    for _ in 0..3 {
        assert!(kept(&mut script, &every_kind(&[1, 2, 3])).is_err());
    }
}

#[test]
fn a_script_dies_before_or_after_its_activities() {
    let script = load("activity('A', (e, a) => a.begin())");
    let activities = lateralis_script::Activities::new(&script);
    drop(script);
    drop(activities);
}
