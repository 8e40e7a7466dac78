#!/usr/bin/env node
/**
 * `npm test`: tests everything, from a fresh clone. It installs packages, builds, checks format,
 * lint and dead code, and runs every suite. The last line is `N passed, M failed`, where each check
 * counts as one; the exit code is 1 after any failure. A missing tool is a failure, never a skip.
 * Options: `--long` runs the suites that the short form leaves out; vitest receives all other
 * arguments.
 */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inRoot, installIfStale } from "../deploy/prepare.mjs"
import { haveNatsServer } from "./nats-server.mjs"

const long = process.argv.includes("--long")
const filters = process.argv.slice(2).filter((argument) => argument !== "--long")
const results = inRoot("test-results/long-run.jsonl")
const count = { passed: 0, failed: 0 }

/** Counts and says whether a check passed; `attempt` returns that, or promises it. */
const check = async (name, attempt) => {
  const startedMs = performance.now()
  const passed = await attempt()
  const time = ((performance.now() - startedMs) / 1000).toFixed(0)
  process.stderr.write(`# ${name}: ${passed ? "passed" : "failed"}, ${time} s\n`)
  count[passed ? "passed" : "failed"] += 1
  return passed
}

/** Runs a command beside others; shows its output at its end, and resolves to true on success. */
const runBeside = async (command, ...args) => {
  const child = spawn(command, args, { cwd: inRoot("."), stdio: ["ignore", "pipe", "pipe"] })
  const output = []
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => output.push(data))
  const [status] = await once(child, "close")
  process.stderr.write(Buffer.concat(output))
  return status === 0
}

const moduleTool = (path, ...args) => () =>
  runBeside(process.execPath, inRoot(`node_modules/${path}`), ...args)

/** Debian's administrative programs are in /usr/sbin, which the path may lack. */
const onPath = (name) =>
  [...(process.env.PATH ?? "").split(":"), "/usr/sbin"].some((folder) =>
    existsSync(join(folder, name))
  )

const browsers = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]

const firefoxes = ["firefox-esr", "firefox"]

/** What the suites need beside Node, and Debian's packages of it. */
const tools = [
  {
    name: "a browser for test/e2e (chromium, or CHROMIUM_PATH)",
    isThere: () => existsSync(process.env.CHROMIUM_PATH ?? "") || browsers.some(onPath),
    packages: ["chromium", "fonts-dejavu-core"]
  },
  {
    name: "curl for the transcripts of the pages",
    isThere: () => onPath("curl"),
    packages: ["curl", "ca-certificates"]
  },
  {
    name: "a C compiler for the library of test/disk that injects faults",
    isThere: () => ["cc", "gcc", "clang", "tcc"].some(onPath),
    packages: ["tcc", "libc6-dev"]
  },
  {
    name: "nginx, HAProxy or openssl for test/wire",
    isThere: () => ["nginx", "haproxy", "openssl"].every(onPath),
    packages: ["nginx", "haproxy", "openssl"]
  }
]

/** What only the long form needs: a second browser, and Python for the suites of others. */
const longTools = [
  {
    name: "a second browser for test/security (firefox-esr, or FIREFOX_PATH)",
    isThere: () => existsSync(process.env.FIREFOX_PATH ?? "") || firefoxes.some(onPath),
    packages: ["firefox-esr"]
  },
  {
    name: "Python 3 with venv for the suites of others",
    isThere: () => spawnSync("python3", ["-c", "import ensurepip, venv"]).status === 0,
    packages: ["python3", "python3-venv"]
  }
]

const neededTools = long ? [...tools, ...longTools] : tools

/** Installs the packages of missing tools as root. */
const installMissing = async () => {
  const packages = neededTools.flatMap((tool) => tool.isThere() ? [] : tool.packages)
  if (packages.length === 0 || process.getuid?.() !== 0 || !onPath("apt-get")) return
  const install = "apt-get -qq update && apt-get -qq install -y --no-install-recommends"
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" }
  const options = { env, stdio: ["ignore", "ignore", 2] }
  await once(spawn("sh", ["-c", `${install} ${packages.join(" ")}`], options), "close")
}

const haveTool = ({ isThere, name, packages }) => () => {
  if (isThere()) return true
  process.stderr.write(`There is no ${name}: install Debian's ${packages.join(" ")}.\n`)
  return false
}

/**
 * Runs vitest and adds its counts; a suite that fails to load counts as one failure.
 * `which`: undefined, `1` for what only the long form runs, or `soak` for only the soak.
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

const installed = installMissing()
installIfStale()
/** These do not depend on each other, and the build uses one processor. */
const [built] = await Promise.all([
  check("build: tsc -b", () => runBeside(process.execPath, inRoot("deploy/build.mjs"), ".")),
  check("format: dprint check", moduleTool("dprint/bin.cjs", "check")),
  check("lint: oxlint", moduleTool("oxlint/bin/oxlint")),
  check("dead code: knip", moduleTool("knip/bin/knip.js", "--no-progress")),
  // apt-get runs once at a time.
  installed.then(() => runBeside(process.execPath, inRoot("test/nats-server.mjs")))
])
for (const needed of neededTools) await check(needed.name, haveTool(needed))
await check("a NATS server for test/nats", haveNatsServer)
if (built) {
  if (long) rmSync(results, { force: true })
  runSuites(long ? "1" : undefined)
  // The soak runs alone, since it measures.
  if (long && filters.length === 0) {
    runSuites("soak")
    const suites = inRoot("dist/test/foreign/main.js")
    await check("the suites of others", () => runBeside(process.execPath, suites))
  }
}
