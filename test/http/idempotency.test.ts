/** Requests with an Idempotency-Key whose key fails, on the table of the key without a runtime. */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { idempotency } from "../../actors/idempotency/actor.ts"
import type { IdempotencyMessage } from "../../actors/idempotency/index.ts"
import { emptyAnswer } from "../../http/pipeline/call.ts"
import { HttpError } from "../../http/pipeline/http-error.ts"
import { readKeyedRequest, runOnce } from "../../http/pipeline/idempotency.ts"
import type { Service } from "../../http/pipeline/service.ts"
import { RequestHeaders } from "../../http/wire/request.ts"
import { type AskFailure, AskTimeout, MessageTooLarge, Overloaded, StorageFull, StorageUnavailable,
  ValueTooLarge } from "../../runtime/index.ts"
import { nowMs } from "../actors/cells.ts"
import { Model } from "../actors/model.ts"

const owner = { scope: "account alice", credentials: "token", hasAccount: true }

const request = {
  method: "POST",
  path: "/things",
  query: "",
  remoteAddress: "192.0.2.1",
  headers: new RequestHeaders(["idempotency-key", "k"])
}

/** How an ask fails; `isKept`: after the actor has processed the message. */
interface Fault {
  readonly failure: AskFailure
  readonly isKept: boolean
}

class Key {
  readonly model = new Model(idempotency)
  readonly asked: Array<string> = []
  runs = 0
  private readonly fault: (message: IdempotencyMessage) => Fault | undefined

  constructor(fault: (message: IdempotencyMessage) => Fault | undefined) {
    this.fault = fault
  }

  /** The status of a request with this body, which may fail so, or the tag of its failure. */
  async send(fingerprint: string, failure?: AskFailure): Promise<number | string> {
    const ask = (_to: unknown, message: IdempotencyMessage) =>
      Effect.suspend(() => {
        this.asked.push(message._tag)
        const fault = this.fault(message)
        const reply = fault?.isKept === false ? undefined : this.model.send(message, nowMs)
        return fault === undefined ? Effect.succeed(reply) : Effect.fail(fault.failure)
      })
    // No other part of a service has to do with a key.
    const service = { serviceKey: "s", startId: "n.1", system: { ask } } as unknown as Service
    const sending = Effect.gen({ self: this }, function*() {
      const keyed = yield* readKeyedRequest(service, request, owner, undefined)
      const { status } = yield* runOnce(service, keyed, {
        knownFingerprint: fingerprint,
        fingerprint: () => fingerprint,
        drain: Effect.void,
        run: () =>
          Effect.suspend(() => {
            this.runs++
            return failure === undefined ? Effect.succeed(emptyAnswer(201)) : Effect.fail(failure)
          })
      })
      return status
    })
    return await Effect.runPromise(
      Effect.catch(
        sending,
        (failure) =>
          Effect.succeed(failure instanceof HttpError ? failure.problem.status : failure._tag)
      )
    )
  }
}

const unavailable = new StorageUnavailable({ detail: "" })
const timeout = new AskTimeout({ key: "", deadlineMs: 1 })

/** The first message of this tag fails so. */
const failing = (tag: IdempotencyMessage["_tag"], fault: Fault): Key => {
  let isOver = false
  return new Key((message) => {
    if (isOver || message._tag !== tag) return
    isOver = true
    return fault
  })
}

describe("a request that was carried out", () => {
  it.each(
    [
      new ValueTooLarge({ detail: "" }),
      new StorageFull({ detail: "" }),
      unavailable
    ].map((failure) => ({ failure, name: failure._tag }))
  )("has its answer, though its key cannot store it: $name", async ({ failure }) => {
    const key = failing("Complete", { failure, isKept: false })
    expect(await key.send("f")).toBe(201)
    expect(key.asked).toEqual(["Begin", "Complete", "Interrupt"])
    // The key belongs to this request, whose repetition runs at once.
    expect(await key.send("other")).toBe(422)
    expect(await key.send("f")).toBe(201)
    expect(key.runs).toBe(2)
  })

  it("has its answer where the outcome of storing it is unknown", async () => {
    const key = failing("Complete", { failure: timeout, isKept: true })
    expect(await key.send("f")).toBe(201)
    expect(await key.send("f")).toBe(201)
    expect(key.runs).toBe(1)
  })
})

describe("a request that failed", () => {
  it("frees its key where the store has certainly refused its commit", async () => {
    const key = new Key(() => undefined)
    expect(await key.send("f", new ValueTooLarge({ detail: "" }))).toBe("ValueTooLarge")
    expect(key.asked).toEqual(["Begin", "Abandon"])
    expect(key.model.state).toEqual({ _tag: "Absent" })
    expect(await key.send("smaller")).toBe(201)
  })

  it("keeps its key where a message was too large, as it may be the reply", async () => {
    const key = new Key(() => undefined)
    const failure = new MessageTooLarge({ key: "", bytesMax: 1 })
    expect(await key.send("f", failure)).toBe("MessageTooLarge")
    expect(key.asked).toEqual(["Begin", "Interrupt"])
    expect(await key.send("smaller")).toBe(422)
  })
})

describe("a request whose attempt did not begin", () => {
  it.each([{ isKept: true }, { isKept: false }])(
    "leaves the key free where that is unknown, kept: $isKept",
    async ({ isKept }) => {
      for (const failure of [unavailable, timeout]) {
        const key = failing("Begin", { failure, isKept })
        expect(await key.send("f")).toBe(failure._tag)
        await expect.poll(() => key.asked).toEqual(["Begin", "Abandon"])
        expect(key.model.state).toEqual({ _tag: "Absent" })
        expect(await key.send("f")).toBe(201)
        expect(key.runs).toBe(1)
      }
    }
  )

  it("does not end the attempt of another request", async () => {
    const key = failing("Begin", { failure: timeout, isKept: false })
    const begin = { _tag: "Begin", attempt: "n.1.other", fingerprint: "f" } as const
    key.model.send(begin, nowMs)
    expect(await key.send("f")).toBe("AskTimeout")
    await expect.poll(() => key.asked).toEqual(["Begin", "Abandon"])
    expect(await key.send("f")).toBe(409)
  })

  it("sends no more where it certainly did not begin", async () => {
    const overloaded = new Overloaded({ key: "", retryAfterMs: 1 })
    const key = failing("Begin", { failure: overloaded, isKept: false })
    expect(await key.send("f")).toBe("Overloaded")
    expect(await key.send("f")).toBe(201)
    expect(key.asked).toEqual(["Begin", "Begin", "Complete"])
  })
})
