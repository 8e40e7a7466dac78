/** The head by which an upload ends, while its stream has no leader. */
import { Layer } from "effect"
import { randomBytes } from "node:crypto"
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest"
import { giveUpMs } from "../../../runtime/limits.ts"
import { natsBlobs } from "../../../runtime/nats/blobs/blobs.ts"
import { NoReply } from "../../../runtime/nats/connection/requests.ts"
import { Blobs } from "../../../runtime/ports/blobs.ts"
import { run } from "../../suites/storage-probe.ts"
import { onNats } from "./backend.ts"
import { interceptRequests } from "./intercepted-requests.ts"
import { type NatsServer, startServer } from "./servers.ts"

const LENGTH = 200_000

let server: NatsServer

beforeAll(async () => {
  server = await startServer()
})

afterAll(() => server.close())

async function* bytes(): AsyncIterable<Uint8Array> {
  yield randomBytes(LENGTH)
}

it("is written when a leader is elected late", async () => {
  let isLed = false
  const late = interceptRequests("$KV.blobs.head.", (ask, subject) => {
    if (isLed) return ask()
    isLed = true
    vi.advanceTimersByTime(2 * giveUpMs)
    return Promise.reject(new NoReply(subject, "no responders"))
  })
  const { api, close } = await onNats(
    Blobs,
    Layer.provide(natsBlobs(), late),
    () => [server.url]
  )()
  vi.useFakeTimers({ toFake: ["performance"] })
  onTestFinished(() => void vi.useRealTimers())
  expect(await run(api.put("one", bytes(), 2 * LENGTH))).toMatchObject({ lengthBytes: LENGTH })
  expect(isLed).toBe(true)
  expect(await run(api.info("one"))).toMatchObject({ lengthBytes: LENGTH })
  vi.useRealTimers()
  await close()
})
