/** The process that owns Docker for a test, with a fake daemon that records requests. */
import { once } from "node:events"
import { readdirSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { cleanUp, Running, temporaryFolder } from "../e2e/process.ts"
import { keeper, startDocker, useDocker } from "./daemon.ts"

afterAll(cleanUp)

/** Answers like a daemon with two containers, a network and an image for every label. */
const startFake = async () => {
  const asked: Array<string> = []
  const things: Readonly<Record<string, ReadonlyArray<string>>> = {
    containers: ["c1", "c2"],
    networks: ["n1"],
    images: ["i1"]
  }
  const server = createServer(({ method, url = "" }, response) => {
    asked.push(`${method} ${decodeURIComponent(url)}`)
    const [, sort = ""] = url.split("/")
    response.end(JSON.stringify((things[sort] ?? []).map((Id) => ({ Id }))))
  })
  const path = join(temporaryFolder(), "socket")
  await once(server.listen(path), "listening")
  return { host: `unix://${path}`, asked, close: () => server.close() }
}

const removals = [
  "DELETE /containers/c1?force=1&v=1",
  "DELETE /containers/c2?force=1&v=1",
  "DELETE /networks/n1",
  "DELETE /images/i1?force=1"
]

it("removes only what has the label", async () => {
  const fake = await startFake()
  const { end, label } = await useDocker(fake.host)
  await end()
  fake.close()
  const filters = `filters={"label":["${label.name}=${label.value}"]}`
  expect(fake.asked.filter((one) => one.startsWith("GET"))).toEqual([
    "GET /_ping",
    `GET /containers/json?all=1&${filters}`,
    `GET /networks/?${filters}`,
    `GET /images/json?${filters}`
  ])
  expect(fake.asked.filter((one) => one.startsWith("DELETE"))).toEqual(removals)
})

it("removes it too when the test's process is killed", async () => {
  const fake = await startFake()
  const program = `
    import { spawn } from "node:child_process"
    const [, ...args] = process.argv
    const stdio = ["pipe", "ignore", "ignore"]
    spawn(process.execPath, args, { detached: true, stdio })
      .once("spawn", () => process.kill(process.pid, "SIGKILL"))
  `
  const args = ["--input-type=module", "-e", program, keeper, fake.host, "one=test"]
  const { signal } = await new Running(process.execPath, args, {}).end()
  expect(signal).toBe("SIGKILL")
  await expect.poll(() => fake.asked.filter((one) => one.startsWith("DELETE")), { timeout: 60_000 })
    .toEqual(removals)
  fake.close()
})

it("tells why a daemon does not start, and leaves no folder of it", async () => {
  const folders = () => readdirSync(tmpdir()).filter((name) => name.startsWith("restante-docker-"))
  const before = folders()
  await expect(startDocker(process.execPath)).rejects.toThrow(/dockerd ended: .*bad option/s)
  await expect(startDocker("/nowhere/dockerd")).rejects.toThrow(/dockerd ended: .*ENOENT/s)
  expect(folders().filter((name) => !before.includes(name))).toEqual([])
})
