/** The floor of free disk space, on a real disk. */
import { afterAll, expect, it } from "vitest"
import { basic, send } from "../e2e/client.ts"
import { cleanUp, start } from "../e2e/process.ts"
import { run } from "./cli-harness.ts"

afterAll(cleanUp)

const token = "the-admins-token-of-this-test"

/** More than the test's disk has. */
const all = "8000TiB"

it("is that of the disk of the data folder", async () => {
  const env = { ADMIN_TOKEN: token, DISK_FREE_MIN: all }
  const service = await start({ env })
  const authorization = basic("admin", token)
  const publish = { method: "POST", body: "x" }
  const refused = await send(service.url, "/content", publish)
  expect([refused.status, refused.text.includes("/problems/disk-low")]).toEqual([507, true])
  const allowed = await send(service.url, "/content", { ...publish, headers: { authorization } })
  expect(allowed.status).toBe(202)
  const { text } = await send(service.url, "/metrics")
  expect(text).toMatch(/^restante_disk_free_bytes [1-9]\d+$/m)
  expect(text).toContain(`restante_disk_floor_bytes ${8000 * 1024 ** 4}\n`)
  expect((await service.stop()).code).toBe(0)
  const doctor = await run(["doctor"], { ...env, DATA_DIR: service.dataDir }).ended
  expect(doctor.stdout).toContain("below DISK_FREE_MIN the service stores nothing for clients")
})
