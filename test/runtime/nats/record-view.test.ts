/** A view does not trust a consumer at a server that is behind. */
import { afterEach, expect, it } from "vitest"
import type { NatsApi } from "../../../runtime/nats/connection/connection.ts"
import type { ReadBarrier } from "../../../runtime/nats/connection/read-barriers.ts"
import { RecordView } from "../../../runtime/nats/records/record-view.ts"
import { makeMemoryView } from "../../../runtime/ports/view.ts"

const now = "2026-11-21T00:00:00Z"

const NO_MESSAGE = { err_code: 10_037, code: 404, description: "no message found" }

/** A leader that has got to 5, `next` being what is left to come; a consumer that has nothing. */
const stub = (
  next: () => number | undefined,
  mark?: ReadBarrier,
  beforeConsuming = async (): Promise<void> => {}
): NatsApi => {
  let stop = () => {}
  const closed = new Promise<void>((resolve) => stop = () => resolve())
  const answer = (subject: string): object => {
    if (subject.startsWith("$JS.API.STREAM.INFO.")) {
      return { created: now, ts: now, state: { messages: 1, first_seq: 1, last_seq: 5 } }
    }
    const seq = next()
    return seq === undefined ? { error: NO_MESSAGE } : { message: { subject: "", seq, time: now } }
  }
  const consumer = {
    info: async () => ({ num_pending: 0 }),
    consume: async () => {
      await beforeConsuming()
      return { closed: () => closed, stop }
    }
  }
  const nats = {
    nc: { isClosed: () => false },
    readBarrier: async () => mark,
    request: async (subject: string) => ({ string: () => JSON.stringify(answer(subject)) }),
    js: { consumers: { get: async () => consumer } }
  }
  // It has every part of a connection that the view uses.
  return nats as unknown as NatsApi
}

const views: Array<RecordView> = []

const begin = (next: () => number | undefined, mark?: ReadBarrier): RecordView => {
  const view = new RecordView(stub(next, mark), makeMemoryView())
  views.push(view)
  view.start()
  return view
}

afterEach(async () => {
  for (const view of views.splice(0)) await view.end()
})

it("is not complete while the leader has more messages than the consumer", async () => {
  let asked = () => {}
  const isAsked = new Promise<void>((resolve) => asked = resolve)
  const view = begin(() => {
    asked()
    return 3
  })
  await isAsked
  expect(await view.reach(5, 50)).toBe(false)
  expect([view.isFilled, await view.reach(0, 0)]).toEqual([false, true])
})

it.each([["nothing", undefined], ["only what came later", 6]])(
  "is complete when the leader has %s",
  async (_, next) => {
    const view = begin(() => next)
    expect(await view.reach(5, 20_000)).toBe(true)
    expect(view.isFilled).toBe(true)
  }
)

it("waits in a cluster for the read barrier, at a server that may be cut off", async () => {
  const view = begin(() => undefined, { subject: "$KV.records._seen.test", seq: 9 })
  await expect.poll(() => view.reach(0, 0)).toBe(true)
  expect(await view.reach(5, 50)).toBe(false)
  expect(view.isFilled).toBe(false)
})

it("ends while its consumer begins", async () => {
  let begun = () => {}
  const consuming = new Promise<void>((resolve) => begun = resolve)
  let proceed = () => {}
  const ended = new Promise<void>((resolve) => proceed = resolve)
  const nats = stub(() => undefined, undefined, () => {
    begun()
    return ended
  })
  const view = new RecordView(nats, makeMemoryView())
  view.start()
  await consuming
  const ending = view.end()
  proceed()
  await ending
})
