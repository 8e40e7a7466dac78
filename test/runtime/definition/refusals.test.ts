/** Refusals with data: their types, and what callers receive on nodes, over HTTP and in tests. */
import { expect, expectTypeOf, it } from "vitest"
import { expose, httpFace } from "../../../runtime/http/index.ts"
import { type ActorNode, become, type DataRefusal, defineActor, isRefusal, memory,
  type PlainRefusal, type Refusal, refuse, Schema, startNode } from "../../../runtime/main.ts"
import { startTestNode, testTable } from "../../../runtime/testing/index.ts"

const bucket = defineActor("bucket", {
  state: { Bucket: { left: Schema.Int } },
  messages: { Take: {}, Fill: { by: Schema.Int }, Spill: {} },
  initial: { _tag: "Bucket", left: 0 },
  table: {
    Bucket: {
      Take: ({ left }) =>
        left === 0
          ? refuse("Empty", "fill it", { retryAfterMs: 5, names: ["ann"] })
          : become({ _tag: "Bucket", left: left - 1 }).reply(left - 1),
      Fill: ({ left }, { by }) => {
        if (by < 0) return refuse("Negative")
        if (by > 9) return refuse("TooMuch", undefined, { max: 9 })
        if (left > 9) return refuse("Full", "take some", "later")
        return become({ _tag: "Bucket", left: left + by }).reply(left + by)
      },
      // The types refuse a bigint; a program without types can give it.
      Spill: () => refuse("Odd", "never sent", 1n as never)
    }
  }
})

it("has the type of its data in the reply", () => {
  const check = async (node: ActorNode) => {
    const taken = await node.ask(bucket("a"), { _tag: "Take" })
    expectTypeOf(taken).toEqualTypeOf<
      | number
      | DataRefusal<"Empty", { readonly retryAfterMs: 5; readonly names: readonly ["ann"] }>
    >()
    const filled = await node.ask(bucket("a"), { _tag: "Fill", by: 1 })
    expectTypeOf(filled).toEqualTypeOf<
      | number
      | PlainRefusal
      | DataRefusal<"TooMuch", { readonly max: 9 }>
      | DataRefusal<"Full", "later">
    >()
    if (!isRefusal(filled)) return
    expectTypeOf(filled.data).toEqualTypeOf<undefined | { readonly max: 9 } | "later">()
    if (filled.reason === "TooMuch" && filled.data !== undefined) {
      expectTypeOf(filled.data).toEqualTypeOf<{ readonly max: 9 }>()
    }
    // As before, any of them is a refusal.
    const refusal: Refusal = filled
    return refusal
  }
  expect(check).toBeTypeOf("function")
  // @ts-expect-error a date is no JSON value
  expect(refuse("Odd", undefined, new Date(0))).toBeDefined()
})

it("reaches the caller, and the problem of HTTP", async () => {
  const node = await startNode({ actors: [bucket], store: memory() })
  const data = { retryAfterMs: 5, names: ["ann"] }
  expect(await node.ask(bucket("a"), { _tag: "Take" }))
    .toEqual({ _tag: "Refused", reason: "Empty", detail: "fill it", data })
  expect(await node.ask(bucket("a"), { _tag: "Fill", by: -1 }))
    .toEqual({ _tag: "Refused", reason: "Negative", detail: undefined })
  const face = httpFace(node, {
    actors: [expose(bucket, { commands: ["Take", "Fill"] })],
    authorize: () => true
  })
  const problemOf = async (message: object): Promise<unknown> => {
    const answer = await face(
      new Request("http://localhost/actors/bucket/a", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(message)
      })
    )
    return [answer.status, await answer.json()]
  }
  expect(await problemOf({ _tag: "Take" }))
    .toEqual([409, expect.objectContaining({ outcome: "refused", reason: "Empty", data })])
  const negative = await problemOf({ _tag: "Fill", by: -1 })
  expect(negative).toEqual([409, expect.objectContaining({ reason: "Negative" })])
  expect(JSON.stringify(negative)).not.toContain("\"data\"")
  await node.stop()
})

it("is a JSON value, or the cell has a defect", async () => {
  await using node = await startTestNode({ behaviors: [bucket] })
  await expect(node.ask(bucket("a"), { _tag: "Spill" })).rejects.toMatchObject({
    _tag: "ActorDefect"
  })
  expect(node.faults.join()).toContain("bucket replies with bigint 1 at reply.data")
})

it("is what `refuse` made: a value that looks like one is no reply", async () => {
  const texts = Schema.Record(Schema.String, Schema.String)
  const cupboard = defineActor("cupboard", {
    state: { Cupboard: { value: texts } },
    messages: { Swap: { value: texts } },
    initial: { _tag: "Cupboard", value: {} },
    table: {
      Cupboard: {
        Swap: ({ value: last }, { value }) => become({ _tag: "Cupboard", value }).reply(last)
      }
    }
  })
  await using node = await startTestNode({ behaviors: [cupboard] })
  const planted = { _tag: "Refused", reason: "Gone", detail: "of a user" }
  expect(await node.ask(cupboard("a"), { _tag: "Swap", value: planted })).toEqual({})
  await expect(node.ask(cupboard("a"), { _tag: "Swap", value: {} })).rejects.toMatchObject({
    _tag: "ActorDefect"
  })
  expect(node.faults.join()).toContain("cupboard replies with a value whose _tag is Refused")
})

it("is compared in tests of a table", () => {
  const { given } = testTable(bucket)
  const data = { retryAfterMs: 5, names: ["ann"] }
  given().when({ _tag: "Take" }).then({ refuse: "Empty", data })
  given().when({ _tag: "Fill", by: -1 }).then({ refuse: "Negative" })
  expect(() => given().when({ _tag: "Take" }).then({ refuse: "Empty" })).toThrow(
    "decides\n  refuse \"Empty\", data {\"retryAfterMs\":5,\"names\":[\"ann\"]}"
  )
})
