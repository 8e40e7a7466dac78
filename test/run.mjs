#!/usr/bin/env node
/**
 * `npm test`: tests everything, from a fresh clone. It installs packages, builds, checks format,
 * lint and dead code, and runs every suite. The last line is `N passed, M failed`, where each check
 * counts as one; the exit code is 1 after any failure. A missing tool is a failure, never a skip.
 * Options: `--long` adds the suites that take minutes; vitest receives all other arguments.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { build, inRoot, installIfStale, run } from "../deploy/prepare.mjs"
import { haveNatsServer } from "./nats-server.mjs"

const long = process.argv.includes("--long")
const filters = process.argv.slice(2).filter((argument) => argument !== "--long")
const results = inRoot("test-results/long-run.jsonl")
const count = { passed: 0, failed: 0 }

const check = (name, attempt) => {
  const startedMs = performance.now()
  const passed = attempt()
  const time = ((performance.now() - startedMs) / 1000).toFixed(0)
  process.stderr.write(`# ${name}: ${passed ? "passed" : "failed"}, ${time} s\n`)
  count[passed ? "passed" : "failed"] += 1
  return passed
}

const tool = (path, ...args) => () =>
  run(process.execPath, [inRoot(`node_modules/${path}`), ...args])

const browserNames = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
const onPath = (name) =>
  (process.env.PATH ?? "").split(":").some((folder) => existsSync(join(folder, name)))

/** Installs Debian's packages as root; elsewhere it prints which packages to install. */
const install = (what, packages) => {
  if (process.getuid?.() !== 0 || !onPath("apt-get")) {
    process.stderr.write(`No ${what}: install it, as Debian's ${packages.join(" ")}.\n`)
    return false
  }
  process.env.DEBIAN_FRONTEND = "noninteractive"
  return run("apt-get", ["-qq", "update"]) &&
    run("apt-get", ["-qq", "install", "-y", "--no-install-recommends", ...packages])
}

/** Finds a browser for test/e2e by CHROMIUM_PATH or on the path, or installs Debian's. */
const haveBrowser = () =>
  existsSync(process.env.CHROMIUM_PATH ?? "") || browserNames.some(onPath) ||
  install("chromium, nor CHROMIUM_PATH", ["chromium", "fonts-dejavu-core"])

/** curl runs the transcripts of the pages. */
const haveCurl = () => onPath("curl") || install("curl", ["curl", "ca-certificates"])

/** A C compiler builds the library of test/disk that injects disk faults. */
const haveCompiler = () =>
  ["cc", "gcc", "clang", "tcc"].some(onPath) || install("a C compiler", ["tcc", "libc6-dev"])

/**
 * Runs vitest and adds its counts; a suite that fails to load counts as one failure.
 * `which`: undefined, `1` to add the long suites, or `soak` for only the soak.
 */
const runSuites = (which) => {
  const folder = mkdtempSync(join(tmpdir(), "restante-test-"))
  const report = join(folder, "report.json")
  const progress = `--reporter=${inRoot("test/reporter.mjs")}`
  const reporters = [
    progress,
    "--reporter=json",
    `--outputFile.json=${report}`,
    "--silent=passed-only"
  ]
  const args = [inRoot("node_modules/vitest/vitest.mjs"), "run", ...reporters, ...filters]
  const env = { ...process.env, ...(which ? { TEST_LONG: which, RESULTS: results } : {}) }
  const { status } = spawnSync(process.execPath, args, { cwd: inRoot("."), env, stdio: "inherit" })
  const failedBefore = count.failed
  if (existsSync(report)) {
    const { numPassedTests, numFailedTests, numPendingTests, testResults } = JSON.parse(
      readFileSync(report, "utf8")
    )
    const unloaded = testResults.filter((suite) =>
      suite.status === "failed" && !suite.assertionResults.some((test) => test.status === "failed")
    )
    count.passed += numPassedTests
    count.failed += numFailedTests + unloaded.length
    if (filters.length === 0) count.failed += numPendingTests // a skipped test proves nothing
  }
  if (status !== 0 && count.failed === failedBefore) count.failed += 1
  rmSync(folder, { recursive: true, force: true })
}

process.on("exit", (code) => {
  if (code !== 0 && count.failed === 0) count.failed = 1
  process.exitCode = count.failed === 0 ? 0 : 1
  process.stdout.write(`${count.passed} passed, ${count.failed} failed\n`)
})

installIfStale()
check("a browser for test/e2e", haveBrowser)
check("curl for the transcripts", haveCurl)
check("a C compiler for test/disk", haveCompiler)
check("a NATS server for test/nats", haveNatsServer)
const built = check("build: tsc -b", () => build("."))
check("format: dprint check", tool("dprint/bin.cjs", "check"))
check("lint: oxlint", tool("oxlint/bin/oxlint"))
check("dead code: knip", tool("knip/bin/knip.js", "--no-progress"))
if (built) {
  if (long) rmSync(results, { force: true })
  runSuites(long ? "1" : undefined)
  // The soak runs alone, since it measures.
  if (long && filters.length === 0) runSuites("soak")
}
