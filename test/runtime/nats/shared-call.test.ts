/**
 * The sequence that a read of the records must have reached; concurrent reads share one request.
 */
import { expect, it } from "vitest"
import type { NatsApi } from "../../../runtime/nats/connection/connection.ts"
import { type ReadBarrier, SharedCall } from "../../../runtime/nats/connection/read-barriers.ts"
import { streamEnd } from "../../../runtime/nats/stream/reader.ts"

const created = "2026-11-21T00:00:00Z"

/** The one who says that it leads has got to 5. */
const start = (mark: () => ReadBarrier | undefined) => {
  let asked = 0
  const state = { messages: 1, first_seq: 1, last_seq: 5 }
  const nats = {
    readBarrier: async () => {
      asked++
      return mark()
    },
    request: async () => ({ string: () => JSON.stringify({ created, ts: created, state }) })
  }
  // What is asked of a connection here is all there.
  const last = new SharedCall(() => streamEnd(nats as unknown as NatsApi, "KV_records"))
  return { last, asked: () => asked }
}

it("is the mark's, whatever a server says that may be cut off or behind", async () => {
  for (const seq of [4, 9]) {
    const { last } = start(() => ({ subject: "$KV.records._seen.a", seq }))
    expect(await last.call()).toEqual({ created, seq })
  }
})

it("is the last one of a server that is alone", async () => {
  expect(await start(() => undefined).last.call()).toEqual({ created, seq: 5 })
})

it("is asked for again by all who come while a question is under way, once", async () => {
  let seq = 10
  const { asked, last } = start(() => ({ subject: "$KV.records._seen.a", seq: seq++ }))
  const first = last.call()
  const others = await Promise.all([last.call(), last.call(), last.call()])
  expect([(await first).seq, ...others.map((other) => other.seq)]).toEqual([10, 11, 11, 11])
  expect(asked()).toBe(2)
})
