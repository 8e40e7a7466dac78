/** Validates the unit of deploy/manifests/systemd by systemd itself. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { asAdmin, notification, send } from "../e2e/client.ts"
import { adminToken, binary, cleanUp, eventually, publicUrl, Running,
  temporaryFolder } from "../e2e/process.ts"
import { textOf } from "./sources.ts"
import { run, toolOf } from "./tools.ts"

const analyze = toolOf("systemd-analyze", "systemd")
const folder = mkdtempSync(join(tmpdir(), "restante-unit-"))
afterAll(() => {
  cleanUp()
  rmSync(folder, { recursive: true, force: true })
})

/** What systemd calls the exposure: 1.3 now. 10 is a unit that restricts nothing. */
const exposureMax = 2

const unit = textOf("deploy/manifests/systemd/restante.service")
const dropIn = textOf("deploy/manifests/systemd/secret-key.conf")

/** Writes the unit, possibly modified, with an existing program. */
const written = (text: string): string => {
  const program = join(folder, "node")
  writeFileSync(program, "#!/bin/sh\n")
  chmodSync(program, 0o755)
  const file = join(folder, "restante.service")
  writeFileSync(file, text.replace("/usr/bin/node", program))
  return file
}

it("is understood by systemd, every line of it", () => {
  expect(run(analyze, ["verify", written(unit)])).toEqual({ code: 0, output: "" })
  const misspelled = unit.replace("ProtectHome=yes", "ProtectHomes=yes")
  expect(run(analyze, ["verify", written(misspelled)]).output).toContain("ProtectHomes")
})

it("is understood with the file that moves the key, too", () => {
  const added = join(folder, "restante.service.d")
  mkdirSync(added)
  const verified = (text: string) => {
    writeFileSync(join(added, "secret-key.conf"), text)
    return run(analyze, ["verify", written(unit)])
  }
  expect(verified(dropIn)).toEqual({ code: 0, output: "" })
  expect(verified(dropIn.replace("LoadCredential", "LoadCredentials")).output)
    .toContain("LoadCredentials")
  rmSync(added, { recursive: true })
})

it("lets the service do little: systemd calls its exposure OK", () => {
  const { code, output } = run(analyze, ["security", "--offline=yes", written(unit)])
  const [, level] = /exposure level for .*: ([\d.]+) OK/.exec(output) ?? []
  expect([code, output]).toEqual([0, expect.stringContaining(" OK ")])
  expect(Number(level)).toBeLessThanOrEqual(exposureMax)
})

/** What libuv does in another way where it is not allowed. */
const replaceable = ["io_uring_setup"]

const serviceWithinMs = 240_000

/** The names of the system calls of a service that starts, stores something and stops. */
const callsOfService = async (): Promise<ReadonlyArray<string>> => {
  const trace = join(folder, "calls")
  // With -D the child of the test is the service itself, which gets the signal.
  const options = ["-D", "-f", "-qq", "-c", "-U", "name,calls", "-o", trace]
  const service = new Running(toolOf("strace"), [...options, process.execPath, binary, "serve"], {
    ...{ PORT: "0", HOST: "127.0.0.1", DATA_DIR: temporaryFolder(), DISK_FREE_MIN: "0" },
    ...{ ADMIN_TOKEN: adminToken, BASE_URL: publicUrl }
  })
  const url = await eventually(serviceWithinMs, "the traced service is ready", async () => {
    if (service.isOver) throw new Error(service.output)
    const [, port] = / on 127\.0\.0\.1:(\d+)/.exec(service.output) ?? []
    if (port === undefined) return undefined
    return (await fetch(`http://127.0.0.1:${port}/readyz`)).ok
      ? `http://127.0.0.1:${port}`
      : undefined
  })
  const made = { method: "POST", headers: { ...asAdmin, slug: "calls" } }
  expect((await send(url, "/mailboxes", made)).status).toBe(201)
  const headers = { "content-type": "application/xml" }
  const deposit = { method: "POST", body: notification("call"), headers }
  expect((await send(url, "/mailboxes/calls", deposit)).status).toBe(202)
  expect(await service.stop()).toEqual({ code: 0, signal: null })
  const table = await eventually(serviceWithinMs, "strace has written its table", () => {
    const text = readFileSync(trace, "utf8")
    return text.includes("total") ? text : undefined
  })
  const names = [...table.matchAll(/^(\w+) +\d+$/gm)].map(([, name = ""]) => name)
  expect(names).toEqual(expect.arrayContaining(["epoll_pwait", "fsync", "listen", "openat"]))
  return names.filter((name) => name !== "total")
}

/** The system calls of these words of SystemCallFilter, which are sets, calls or both. */
const callsOf = (words: ReadonlyArray<string>): ReadonlySet<string> =>
  new Set(words.flatMap((word) => {
    if (!word.startsWith("@")) return [word]
    const { output } = run(analyze, ["syscall-filter", word])
    const inside = output.split("\n").slice(1).map((line) => line.trim())
    return [...callsOf(inside.filter((line) => line !== "" && !line.startsWith("#")))]
  }))

it("lets the service make the system calls that it needs, from its start to its end", async () => {
  const filters = [...unit.matchAll(/^SystemCallFilter=(~?)(.*)$/gm)]
  const named = (sign: string) =>
    callsOf(filters.flatMap(([, one, words = ""]) => one === sign ? words.split(" ") : []))
  const [allowed, denied] = [named(""), named("~")]
  expect(allowed.size).toBeGreaterThan(200)
  expect(denied.size).toBeGreaterThan(50)

  const calls = (await callsOfService()).filter((name) => !allowed.has(name) || denied.has(name))
  expect(calls.filter((name) => !replaceable.includes(name))).toEqual([])
})
