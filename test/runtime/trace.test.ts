/** The trace of a request travels with its asks to other nodes. */
import { Effect } from "effect"
import { afterEach, expect, it } from "vitest"
import { traceparentOf, withTraceContext } from "../../http/trace-context.ts"
import { type HttpRequest, RequestHeaders } from "../../http/wire/request.ts"
import { ownsAll } from "../../runtime/cluster/placement.ts"
import { makeMemoryTransport } from "../../runtime/memory/transport.ts"
import { at } from "./probe.ts"
import { dropAll, scripted, start } from "./rig.ts"

afterEach(dropAll)

const add = { _tag: "Add", by: 1 } as const
const traceparent = `00-${"ab".repeat(16)}-${"cd".repeat(8)}-01`

const requestWith = (value: string | undefined): HttpRequest => ({
  method: "GET",
  path: "/",
  query: "",
  headers: new RequestHeaders(value === undefined ? [] : ["traceparent", value]),
  remoteAddress: "127.0.0.1"
})

/** A node without shards, one with all of them, and the traces that the latter received. */
const nodes = async () => {
  const storage = scripted()
  const memory = makeMemoryTransport()
  const traces: Array<string | undefined> = []
  const transport: typeof memory = {
    ...memory,
    serve: (shard, serve) =>
      memory.serve(shard, (to, envelope, trace) => {
        traces.push(trace)
        return serve(to, envelope, trace)
      })
  }
  await start({}, { storage, transport, placement: ownsAll })
  const nowhere = { ...ownsAll, owns: () => false, follow: () => () => {} }
  const asker = await start({}, { storage, transport, placement: nowhere })
  return { asker, traces }
}

it("travels with an ask to another node's actor", async () => {
  const { asker: { system }, traces } = await nodes()
  const ask = system.ask(at("one"), add)
  await Effect.runPromise(withTraceContext(requestWith(traceparent), ask))
  await Effect.runPromise(withTraceContext(requestWith(undefined), ask))
  await Effect.runPromise(Effect.withSpan(ask, "a caller's span"))
  expect(traces.slice(0, 2)).toEqual([traceparent, undefined])
  expect(traces[2]).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/)
})

it("travels with an ask by callback", async () => {
  const { asker: { system }, traces } = await nodes()
  const trace = traceparentOf(requestWith(traceparent))
  await new Promise<void>((resolve) => system.askByCallback(at("one"), add, () => resolve(), trace))
  expect(traces).toEqual([traceparent])
})

it.each([
  "",
  "garbage",
  `00-${"0".repeat(32)}-${"cd".repeat(8)}-01`,
  `00-${"ab".repeat(16)}-${"0".repeat(16)}-01`,
  `ff-${"ab".repeat(16)}-${"cd".repeat(8)}-01`,
  `${traceparent}\r\nRestante-Mark: moved`
])("is none where the header is %j", async (value) => {
  expect(traceparentOf(requestWith(value))).toBeUndefined()
  const { asker: { system }, traces } = await nodes()
  await Effect.runPromise(withTraceContext(requestWith(value), system.ask(at("one"), add)))
  expect(traces).toEqual([undefined])
})

it("reads the known fields of a later version", () => {
  expect(traceparentOf(requestWith(`01${traceparent.slice(2)}-more`))).toBe(
    `01${traceparent.slice(2)}`
  )
})
