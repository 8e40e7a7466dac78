/** Watches a mailbox while its service is killed, stopped and restarted. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { cleanUp, type Service } from "../e2e/process.ts"
import { startCutting } from "./cutting.ts"
import { atProcess, startProcess, take } from "./services.ts"

let service: Service
beforeAll(async () => {
  service = await startProcess()
})
afterAll(cleanUp)

it.each(["kill -9", "SIGTERM"])("outlives %s and a restart", async (end) => {
  const { href } = await atProcess(service.url).openMailbox()
  const deposit = async (...numbers: ReadonlyArray<number>): Promise<void> => {
    const mailbox = atProcess(service.url).mailbox(href)
    for (const n of numbers) await mailbox.deposit({ description: `${n}`, url: "http://x.test/" })
  }
  // The address stays the same while the port of the service changes.
  const proxy = await startCutting(() => service.port, () => Infinity)
  const reasons: Array<unknown> = []
  const watch = atProcess(proxy.url).mailbox(href).watch({
    onConnection: (connection) => {
      if (connection.state === "waiting") reasons.push(connection.reason)
    }
  })
  await deposit(0, 1, 2)
  const before = await take(2, watch)
  const watching = take(4, watch)
  await deposit(3)
  const { dataDir } = service
  await (end === "SIGTERM" ? service.stop() : service.kill())
  service = await startProcess(dataDir)
  await deposit(4, 5)
  const received = [...before, ...await watching]
  expect(received.map(({ description }) => description)).toEqual(["0", "1", "2", "3", "4", "5"])
  expect(reasons.length).toBeGreaterThan(0)
  // Another program continues from the cursor of this one.
  const after = received[3]?.cursor
  const later = await take(2, atProcess(service.url).mailbox(href).watch({ after }))
  expect(later.map(({ description }) => description)).toEqual(["4", "5"])
  proxy.close()
})
