/** The commands of nats.md that inspect the streams, by the nats command line, on a real server. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { goBuildWithinMs, goProgram } from "../deploy/go-programs.ts"
import { must } from "../deploy/tools.ts"
import { adminToken, cleanUp, start } from "../e2e/process.ts"
import { freePorts, type ServerProcess, startServer } from "../runtime/nats/servers.ts"
import { blocksOf, shells } from "./pages.ts"

const module = "github.com/nats-io/natscli/nats"

const [block] = blocksOf("docs/nats.md").filter(({ language, mark }) =>
  shells.includes(language) && mark?.text === "test/docs/nats-inspection.long.ts"
)

const user = "restante"
const pass = "a-password-of-the-servers"

let folder = ""
let server: ServerProcess
let monitorPort = 0

beforeAll(async () => {
  const nats = await goProgram(module, "v0.5.1")
  folder = nats.slice(0, nats.lastIndexOf("/"))
  const [port = 0] = await freePorts(1)
  monitorPort = port
  server = await startServer({
    user,
    pass,
    extra: `http: "127.0.0.1:${monitorPort}"
authorization { user: "${user}", password: "${pass}" }`
  })
}, goBuildWithinMs)

afterAll(async () => {
  await server.close()
  cleanUp()
})

it("shows the streams, an actor and the health of a server", async () => {
  const env = { BASE_URL: "", NATS_URL: server.url, NATS_USER: user, NATS_PASSWORD: pass }
  const service = await start({ env })
  // Each bucket has actors of these.
  for (let at = 0; at < 16; at++) {
    const { status } = await fetch(`${service.url}/mailboxes`, {
      method: "POST",
      headers: { authorization: `Bearer ${adminToken}`, slug: `m${at}` }
    })
    expect(status).toBe(201)
  }
  const typed = (block?.text ?? "").trimEnd().split("\n").map((line) =>
    line.replace("…@localhost:4222", `${pass}@127.0.0.1:${server.port}`)
      .replace(":8222/", `:${monitorPort}/`)
  )
  const [first = "", ...commands] = typed
  expect(first).toMatch(/^export NATS_URL=/)
  const [report = "", keys = "", value = "", health = ""] = commands
  const run = (command: string): Promise<string> =>
    must("bash", ["-c", `${first}\n${command}`], {
      PATH: `${folder}:${process.env["PATH"] ?? ""}`,
      HOME: server.folder,
      NO_PROXY: "*"
    })
  const bucket = /(actors-\d)/.exec(keys)?.[1] ?? ""
  expect(await run(report)).toContain(`KV_${bucket}`)
  const listed = (await run(keys)).trim().split("\n")
  const [key = ""] = listed.filter((line) => /^\S+$/.test(line))
  expect(key, listed.join("\n")).not.toBe("")
  expect(value).toContain(" KEY ")
  expect((await run(value.replace("KEY", `'${key}'`))).trim()).not.toBe("")
  expect(JSON.parse(await run(health.replace("curl", "curl -s")))).toEqual({ status: "ok" })
  await service.stop()
})
