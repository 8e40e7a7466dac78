/** The trace of a request travels with its asks to other nodes. */
import { Effect } from "effect"
import { afterEach, expect, it } from "vitest"
import { traceparentOf, withTraceContext } from "../../http/trace-context.ts"
import { type HttpRequest, RequestHeaders } from "../../http/wire/request.ts"
import { ownsAll } from "../../runtime/cluster/placement.ts"
import type { Traces } from "../../runtime/index.ts"
import { makeMemoryTransport } from "../../runtime/memory/transport.ts"
import { at } from "./probe.ts"
import { dropAll, fails, scripted, start } from "./rig.ts"
import { type RecordedSpan, spanRecorder } from "./span-recorder.ts"

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
const nodes = async (ofOwner?: Traces, ofAsker?: Traces) => {
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
  await start({ traces: ofOwner }, { storage, transport, placement: ownsAll })
  const nowhere = { ...ownsAll, owns: () => false, follow: () => () => {} }
  const asker = await start({ traces: ofAsker }, { storage, transport, placement: nowhere })
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

const shown = ({ error, name, parent }: RecordedSpan) => ({ name, parent, error })

it("has a span for the ask of another node, and for the commit there", async () => {
  const [owner, asker] = [spanRecorder(), spanRecorder()]
  const two = await nodes(owner, asker)
  const ask = two.asker.system.ask(at("one"), add)
  await Effect.runPromise(withTraceContext(requestWith(traceparent), ask))
  const [asked] = asker.spans
  expect(asker.spans.map(shown))
    .toEqual([{ name: "ask probe", parent: traceparent, error: undefined }])
  expect(asked).toMatchObject({
    kind: "client",
    attributes: { "restante.actor.kind": "probe", "restante.message": "Add" }
  })
  // The message carries the span of the ask, whose child the commit is.
  expect(two.traces).toEqual([asked?.traceparent])
  expect(owner.spans.map(shown))
    .toEqual([{ name: "commit probe", parent: asked?.traceparent, error: undefined }])
})

it("has a span for each commit of a message, also for one that fails", async () => {
  const recorder = spanRecorder()
  const storage = scripted()
  const { system } = await start({ traces: recorder }, { storage })
  storage.acts.push(fails)
  const ask = (message: typeof add | { readonly _tag: "Read" }, trace?: string) =>
    new Promise<void>((resolve) => {
      system.askByCallback(at("one"), message, () => resolve(), trace)
    })
  // The message is decided again after the first commit.
  await ask(add, traceparent)
  expect(recorder.spans.map(shown)).toEqual([
    { name: "commit probe", parent: traceparent, error: "StorageUnavailable" },
    { name: "commit probe", parent: traceparent, error: undefined }
  ])
  // Neither a read nor a message without a trace, nor one whose trace is not sampled.
  await ask({ _tag: "Read" }, traceparent)
  await ask(add)
  await ask(add, traceparent.replace(/01$/, "00"))
  expect(recorder.spans).toHaveLength(2)
})
