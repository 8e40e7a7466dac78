/** Tests that take minutes: a disk that stalls beyond every deadline, and repeated restarts. */
import { afterAll, describe, expect, it } from "vitest"
import { expectStatus, send } from "../e2e/client.ts"
import { cleanUp, eventually, launch, pause, start, temporaryFolder } from "../e2e/process.ts"
import { note } from "../results.ts"
import { Deposits } from "./deposits.ts"
import { FaultyDisk } from "./faults.ts"
import { randomOf } from "./seeds.ts"

const RESTARTS = 20
/** Longer than the deadlines of the store and of asks together. */
const STALL_MS = 25_000
const recoversWithinMs = 120_000
const depositsEach = 10
/** A start is killed within this time, sometimes while it recovers. */
const STARTING_MS = 1_000

afterAll(cleanUp)

describe.each(["rocksdb", "leveldb"] as const)("on %s, the service", (engine) => {
  it("refuses deposits while a flush stalls for long, and recovers", async () => {
    const dataDir = temporaryFolder()
    const faults = new FaultyDisk(dataDir)
    const service = await start({ dataDir, env: { STORAGE_ENGINE: engine, ...faults.env } })
    const deposits = await Deposits.open(service.url, "stalled")
    const quiet = await Deposits.open(service.url, "quiet")
    expect((await deposits.make(service.url))?.status).toBe(202)
    faults.disk("flush", "stalls")
    const waiting = Array.from({ length: depositsEach }, () => deposits.make(service.url))
    const startedMs = performance.now()
    while (performance.now() - startedMs < STALL_MS) {
      await quiet.verify(service.url)
      expectStatus(await send(service.url, "/livez"), 200)
      await pause(200)
    }
    expect(faults.stalled).toBeGreaterThan(0)
    for (const answer of await Promise.all(waiting)) {
      // The test's client may time out before the service does.
      if (answer !== undefined) expectStatus(answer, 503)
    }
    faults.disk("flush", "asEver")
    await eventually(
      recoversWithinMs,
      "it accepts deposits again",
      async () => (await deposits.make(service.url))?.status === 202 || undefined,
      200
    )
    await deposits.verify(service.url)
    await service.kill()
    const again = await start({ dataDir, env: { STORAGE_ENGINE: engine } })
    await deposits.verify(again.url)
    expect((await again.stop()).code).toBe(0)
    faults.close()
    note({
      name: `a flush that stalls beyond all deadlines, ${engine}`,
      runs: 1,
      faults: 1,
      operations: deposits.accepted.size
    })
  })

  it(`loses nothing in ${RESTARTS} restarts in a row`, { timeout: 300_000 }, async () => {
    const dataDir = temporaryFolder()
    const env = { STORAGE_ENGINE: engine }
    const random = randomOf(`restarts ${engine}`)
    const first = await start({ dataDir, env })
    const deposits = await Deposits.open(first.url, "restarted")
    await first.stop()
    for (let n = 0; n < RESTARTS; n++) {
      // Some processes are killed while they recover from the last kill.
      if (n % 3 === 2) {
        const doomed = launch({ dataDir, env })
        await pause(random() * STARTING_MS)
        await doomed.kill()
        continue
      }
      const service = await start({ dataDir, env })
      await deposits.verify(service.url)
      const under = Array.from({ length: depositsEach }, () => deposits.make(service.url))
      await Promise.race(under)
      if (n % 2 === 0) await service.kill()
      else expect((await service.stop()).code).toBe(0)
      await Promise.all(under)
    }
    const last = await start({ dataDir, env })
    await deposits.verify(last.url)
    expect(deposits.accepted.size).toBeGreaterThan(RESTARTS / 2)
    expect((await last.stop()).code).toBe(0)
    note({
      name: `restarts in a row, ${engine}`,
      runs: 1,
      faults: RESTARTS,
      operations: deposits.accepted.size
    })
  })
})
