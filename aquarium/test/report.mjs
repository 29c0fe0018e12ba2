// SPDX-License-Identifier: Apache-2.0 OR MIT
// Prints a line for each test in the format of the project's other suites, followed by the sums,
// which `cargo xtask` adds up.
export default class Lines {
  onTestRunEnd(modules, errors) {
    const sums = { passed: 0, failed: 0, skipped: 0 };
    const say = (text) => process.stdout.write(`${text}\n`);
    for (const module of modules) {
      for (const error of module.errors()) {
        sums.failed++;
        say(`FAIL ${module.relativeModuleId} ${oneLine(error.message)}`);
      }
      // After an error before the first test of a suite, none of its tests run.
      for (const suite of module.children.allSuites()) {
        for (const error of suite.errors()) {
          sums.failed++;
          say(`FAIL ${suite.fullName} ${oneLine(error.message)}`);
        }
      }
      for (const test of module.children.allTests()) {
        const { state, errors: found, note } = test.result();
        if (state === "passed") {
          sums.passed++;
          say(`ok ${test.fullName}`);
        } else if (state === "failed") {
          sums.failed++;
          say(`FAIL ${test.fullName} ${oneLine((found ?? []).map((error) => error.message).join("; "))}`);
        } else {
          sums.skipped++;
          say(`SKIPPED: aquarium: ${test.fullName}: ${note ?? "not run"}`);
        }
      }
    }
    for (const error of errors) {
      sums.failed++;
      say(`FAIL aquarium ${oneLine(error.message)}`);
    }
    say(`${sums.passed} passed, ${sums.failed} failed, ${sums.skipped} skipped`);
  }
}

function oneLine(text) {
  return String(text ?? "")
    .replace(/\u001b\[[0-9;]*m/g, "")
    .replace(/\s+/g, " ")
    .slice(0, 400);
}
