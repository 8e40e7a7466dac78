/**
 * kill -9 of a node on NATS during the load of a file: its view of the records continues from its
 * last position, or is filled again, and every answer agrees with the servers.
 */
import { existsSync, readdirSync, rmSync, truncateSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { adminToken, cleanUp, pause, type Service, start, temporaryFolder } from "../e2e/process.ts"
import { type NatsServer, startServer } from "../runtime/nats/servers.ts"

const rows = 1_200
const pageRows = 1_000
const authorization = `Basic ${Buffer.from(`admin:${adminToken}`).toString("base64")}`
const csv = { authorization, "content-type": "text/csv" }

let server: NatsServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(async () => {
  cleanUp()
  await server.close()
})

const idsOf = (age: number): ReadonlyArray<string> =>
  Array.from({ length: rows }, (_, at) => `f${age}-${String(at).padStart(4, "0")}`)

const load = async (base: string, age: number): Promise<string> => {
  const body = `id,name,age\n${idsOf(age).map((id) => `${id},Somebody,${age}\n`).join("")}`
  const headers = { ...csv, prefer: "respond-async" }
  const answer = await fetch(`${base}/customers`, { method: "PUT", headers, body })
  expect(answer.status).toBe(202)
  return new URL(answer.headers.get("location") ?? "").pathname
}

/** The ids of all customers of this age or older, page by page. */
const found = async (base: string, agemin: number): Promise<ReadonlyArray<string>> => {
  const ids: Array<string> = []
  let path: string | undefined = `/customers?agemin=${agemin}&return=id&limit=${pageRows}`
  while (path !== undefined) {
    const answer: Response = await fetch(base + path, { headers: { accept: "application/xml" } })
    expect(answer.status).toBe(200)
    const text = await answer.text()
    for (const [, id = ""] of text.matchAll(/\/customers\/([^"]+)"/g)) ids.push(id)
    const next = /<([^>]+)>; rel="next"/.exec(answer.headers.get("link") ?? "")?.[1]
    path = next?.replace(/^https?:\/\/[^/]+/, "")
  }
  return ids
}

const done = async ({ url }: Service, path: string): Promise<void> => {
  for (;;) {
    const answer = await fetch(url + path, { headers: { accept: "application/xml" } })
    if ((await answer.text()).includes("status=\"done\"")) return
    await pause(100)
  }
}

it(
  "answers as the servers have it after each kill, and with a view that is lost or cut",
  async () => {
    const dataDir = temporaryFolder()
    const view = join(dataDir, "view", "one")
    const options = { dataDir, env: { NATS_URL: server.url, NODE_ID: "one" } }
    let service = await start(options)
    const first = await load(service.url, 1)
    await done(service, first)
    expect(await found(service.url, 1)).toEqual(idsOf(1))
    expect(existsSync(join(view, "CURRENT"))).toBe(true)
    const corruptions = [
      () => undefined,
      () => rmSync(view, { recursive: true }),
      () => {
        const names = readdirSync(view).filter((name) => name.endsWith(".log"))
        for (const name of names) truncateSync(join(view, name), 1_000)
      }
    ]
    const loads: Array<string> = []
    for (const [at, corruption] of corruptions.entries()) {
      loads.push(await load(service.url, at + 2))
      await pause(50 + 40 * at)
      await service.kill()
      corruption()
      service = await start(options)
      // Simulates a write of another node while this one was down.
      const put = await fetch(`${service.url}/customers/z${at}`, {
        method: "PUT",
        headers: { authorization, "content-type": "application/xml" },
        body: "<customer><name>Late</name><age>100</age></customer>"
      })
      expect(put.status).toBe(201)
      // Read-your-writes, even if the view is not complete.
      expect(await found(service.url, 100)).toEqual(
        [...corruptions.keys()].slice(0, at + 1).map((n) => `z${n}`)
      )
    }
    // Accepted loads go on in the background, and would change what is read twice.
    for (const path of loads) await done(service, path)
    const ages = [1, ...corruptions.map((_, at) => at + 2)]
    const late = corruptions.map((_, at) => `z${at}`)
    const remaining = await found(service.url, 1)
    expect(remaining).toEqual([...ages.flatMap(idsOf), ...late])
    expect((await service.stop()).code).toBe(0)
    service = await start(options)
    expect(await found(service.url, 1)).toEqual(remaining)
    expect((await service.stop()).code).toBe(0)
  },
  300_000
)
