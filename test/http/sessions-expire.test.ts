/** Sessions expire after their last change (protocol §7), on the store of each backend. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { sessionListing } from "../../actors/session/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { type Harness, startService } from "./harness.ts"

const sessionRetentionMs = 1_500

let service: Harness

beforeAll(async () => {
  service = await startService(resourceTable, { sessionRetentionMs })
})
afterAll(() => service.close())

const until = async (holds: () => Promise<boolean>) => {
  while (!await holds()) await new Promise((resolve) => setTimeout(resolve, 50))
}

/** A session that is answered half a retention after its beginning. */
const beginAndAnswer = async (): Promise<{ answeredMs: number; path: string }> => {
  const begunMs = Date.now()
  const begun = await service.send("POST", "/sessions", {
    body: "<answer continue=\"true\">yes</answer>"
  })
  const path = begun.header("location").slice(service.base.length)
  await new Promise((resolve) => setTimeout(resolve, sessionRetentionMs / 2))
  const answeredMs = Date.now()
  const answered = await service.send("PUT", `${path}/name`, { body: "<answer>Arthur</answer>" })
  // On a slow machine the session may expire before its answer arrives.
  const isSlow = Date.now() - begunMs >= sessionRetentionMs
  if (isSlow && answered.status === 410) return beginAndAnswer()
  expect(answered.status).toBe(201)
  return { answeredMs, path }
}

it("answers 410 and leaves the listing, a retention after its last change", async () => {
  const { answeredMs, path } = await beginAndAnswer()
  await until(async () => (await service.send("GET", path)).status !== 200)
  expect(Date.now() - answeredMs).toBeGreaterThanOrEqual(sessionRetentionMs)
  expect((await service.send("GET", path)).status).toBe(410)
  expect((await service.send("GET", `${path}/name`)).status).toBe(410)
  expect((await service.send("DELETE", path)).status).toBe(410)
  // The session itself removes its entry: no listing is read here.
  const { records } = service.service
  const { keysTable, table } = sessionListing
  await until(async () =>
    (await service.run(records.range(table, { limit: 10 }))).length === 0 &&
    (await service.run(records.range(keysTable, { limit: 10 }))).length === 0
  )
  expect((await service.send("GET", "/sessions")).text).not.toContain(path)
}, 60_000)
