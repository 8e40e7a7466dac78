/**
 * The whole of docs/runtime/tutorial.md, with `npm install` from the registry, a NATS server, and a
 * kill -9 of one of three nodes. The package is made before, from what has been built: the command
 * of the page builds again, under the suites that run beside this one.
 */
import { copyFileSync, readFileSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { installedWithinMs, packed } from "../../deploy/package-projects.ts"
import { cleanUp, temporaryFolder } from "../../e2e/process.ts"
import { freePorts, serverBinary } from "../../runtime/nats/servers.ts"
import { follow, ReaderShell } from "./tutorial.ts"

/** The page that this test follows to its end. */
const page = "docs/runtime/tutorial.md"

const { HOME: realHome = "", PATH = "" } = process.env
const home = temporaryFolder()
const folder = temporaryFolder()
const binaries = temporaryFolder()

const shell = new ReaderShell(folder, {
  HOME: home,
  PATH: `${binaries}:${PATH}`,
  npm_config_cache: process.env["npm_config_cache"] ?? join(realHome, ".npm"),
  npm_config_prefer_offline: "true"
})

afterAll(() => {
  shell.end()
  cleanUp()
})

/** Some seconds, and far more on a machine that does other work. */
const movedWithinMs = 240_000

/** The least visits of a page in the last line of a member. */
const leastOf = (member: string): number => {
  const counts = readFileSync(join(folder, `${member}.txt`), "utf8").match(/\d+(?= or more)/g)
  return Number(counts?.at(-1))
}

/** The visits of a member in a line that it has printed. */
const visitsIn = (line: string): number => Number(/: (\d+) visits/.exec(line)?.[1])

it(`does what ${page} says, and no ask fails after the kill -9 of a node`, async () => {
  copyFileSync(packed("runtime").path, join(home, "restante-runtime-0.1.0.tgz"))
  symlinkSync(serverBinary(), join(binaries, "nats-server"))
  const [port] = await freePorts(1)
  const here = (text: string): string =>
    text.replaceAll("4222", String(port)).replace(/^npm pack .*/m, "ls ~/*.tgz")
  const outputs = await follow({
    folder,
    shell,
    here,
    isLong: true,
    after: async (command) => {
      if (!command.startsWith("kill -9 $(cat two.pid)")) return
      const before = ["one", "three"].map(leastOf)
      // Every page is visited again, also those that the killed node has served.
      await expect.poll(
        () => ["one", "three"].every((name, at) => leastOf(name) >= (before[at] ?? 0) + 2),
        {
          timeout: movedWithinMs
        }
      ).toBe(true)
    }
  })
  const last = outputs.get("tail -q -n 1 one.txt two.txt three.txt")?.split("\n") ?? []
  expect(last).toHaveLength(3)
  const answered = last.map(visitsIn).reduce((sum, visits) => sum + visits, 0)
  expect(answered).toBeGreaterThan(0)
  expect(Number.parseInt(outputs.get("node build/total.js") ?? ""))
    .toBeGreaterThanOrEqual(answered)
}, installedWithinMs)
