/**
 * A start with an interrupted load. After kill -9 all rows of the file exist, or none. A file that
 * is corrupted does not prevent the start.
 */
import { Effect } from "effect"
import { statSync, truncateSync } from "node:fs"
import { afterAll, expect, it } from "vitest"
import { loadChanges } from "../../http/resources/customers/load.ts"
import { embedded } from "../../runtime/embedded/index.ts"
import { Blobs } from "../../runtime/ports/blobs.ts"
import { Records } from "../../runtime/ports/records.ts"
import { adminToken, blobFiles, cleanUp, pause, start, temporaryFolder } from "../e2e/process.ts"

const rows = 5_000
const pageRows = 1_000
const authorization = `Basic ${Buffer.from(`admin:${adminToken}`).toString("base64")}`

afterAll(cleanUp)

/** All rows of a file have one age, so that the rows of each file can be counted. */
const file = (age: number): string =>
  "id,name,age\n" +
  Array.from({ length: rows }, (_, at) => `f${age}-${at},Somebody of file ${age},${age}\n`).join("")

const counted = async (base: string, age: number): Promise<number> => {
  const created = await fetch(`${base}/queries`, {
    method: "POST",
    headers: { "content-type": "application/xml" },
    body: `<query on="customers"><where field="age" value="${age}"/></query>`
  })
  const query = encodeURIComponent(created.headers.get("location") ?? "")
  let found = 0
  let path: string | undefined = `/customers?query=${query}&return=age&limit=${pageRows}`
  while (path !== undefined) {
    const answer: Response = await fetch(base + path)
    found += (await answer.text()).split(`<age>${age}</age>`).length - 1
    const next = /<([^>]+)>; rel="next"/.exec(answer.headers.get("link") ?? "")?.[1]
    path = next?.replace(/^https?:\/\/[^/]+/, "")
  }
  return found
}

const load = async (base: string, age: number, prefer?: string): Promise<number | undefined> => {
  try {
    const answer = await fetch(`${base}/customers`, {
      method: "PUT",
      headers: {
        authorization,
        "content-type": "text/csv",
        ...prefer === undefined ? {} : { prefer }
      },
      body: file(age)
    })
    await answer.text()
    return answer.status
  } catch {
    return undefined
  }
}

it("leaves all of a file or nothing, and all of an acknowledged file", async () => {
  const dataDir = temporaryFolder()
  let service = await start({ dataDir })
  const startedMs = performance.now()
  expect(await load(service.url, 1)).toBe(200)
  const wholeMs = performance.now() - startedMs
  expect(await counted(service.url, 1)).toBe(rows)
  const expected = new Map<number, number>([[1, rows]])
  for (const [at, part] of [0.05, 0.3, 0.5, 0.6, 0.75, 0.9].entries()) {
    const age = at + 2
    const answered = load(service.url, age, at % 2 === 0 ? "respond-async" : undefined)
    await pause(part * wholeMs)
    await service.kill()
    const status = await answered
    service = await start({ dataDir })
    const found = await counted(service.url, age)
    expect([0, rows]).toContain(found)
    // Also after a 202.
    if (status !== undefined) expect([status, found]).toEqual([status, rows])
    expected.set(age, found)
  }
  for (const [age, found] of expected) expect(await counted(service.url, age)).toBe(found)
  expect((await service.stop()).code).toBe(0)
})

const loadId = "AAAAAAAAAAAAAAAAAAAAAA"

/** Stores a file as a load that is pending. */
const storePending = Effect.gen(function*() {
  const [blobs, records] = [yield* Blobs, yield* Records]
  async function* bytes() {
    yield Buffer.from(file(9))
  }
  const blob = `load=${loadId}=x`
  yield* blobs.put(blob, bytes(), 10_000_000)
  yield* records.write(loadChanges(loadId, {
    state: "pending",
    format: "csv",
    blob,
    rows,
    skipped: 0,
    problems: [],
    at: 0,
    created: 0,
    replaced: 0,
    startedMs: 0,
    touchedMs: 0
  }))
})

it("serves with a load whose file is truncated, and reports the load", async () => {
  const dataDir = temporaryFolder()
  expect((await (await start({ dataDir })).stop()).code).toBe(0)
  await Effect.runPromise(Effect.provide(storePending, embedded(dataDir)))
  const [path = ""] = blobFiles(dataDir)
  truncateSync(path, statSync(path).size >> 1)
  const service = await start({ dataDir })
  const answer = await fetch(`${service.url}/loads/${loadId}`, { headers: { authorization } })
  expect([answer.status, await answer.text()]).toEqual([
    200,
    expect.stringContaining("the file is corrupted; this row and those after it were not loaded")
  ])
  expect((await service.stop()).code).toBe(0)
})
