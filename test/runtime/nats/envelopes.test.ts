/**
 * What somebody can do who may publish and subscribe on NATS, but has no key of the cluster: on a
 * network in memory, with virtual time.
 */
import type { Msg, NatsConnection } from "@nats-io/transport-node"
import { Effect, Exit, Layer, Logger, ManagedRuntime, Scope } from "effect"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { address, shardOf, subjectOf } from "../../../runtime/actor/address.ts"
import { answeredKeepMs, envelopeAgeMaxMs, envelopeSkewMs, foreignEnvelopesMax, receivedHintsMax,
  tenureSettledMs } from "../../../runtime/limits.ts"
import { Nats, type NatsApi } from "../../../runtime/nats/connection/connection.ts"
import { rawHeaders, TurnWrites } from "../../../runtime/nats/connection/turn-writes.ts"
import { type EnvelopeAuthenticator,
  hmacAuthenticator } from "../../../runtime/nats/transport/envelope-authenticator.ts"
import { ForeignEnvelopes } from "../../../runtime/nats/transport/foreign-envelopes.ts"
import { ReceivedHints } from "../../../runtime/nats/transport/hints.ts"
import { natsTransport } from "../../../runtime/nats/transport/transport.ts"
import { Transport, type TransportApi } from "../../../runtime/ports/transport.ts"
import { signed as signedFor, testAuthenticator, testKey } from "./keys.ts"
import { Network } from "./network.ts"
import { requestOf } from "../../suites/request.ts"

const knownMs = 0
const alice = address("mailbox", "alice")
const subject = subjectOf(alice)
const names = ["Restante-Mark", "Restante-Node", "Restante-Tenure", "traceparent", "Restante-Auth"]

beforeEach(() =>
  void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] })
)

afterEach(() => void vi.useRealTimers())

interface Node {
  readonly nc: NatsConnection
  readonly transport: TransportApi
  readonly decided: Array<string>
  /** How long it works on a message. */
  delayMs: number
  /** Takes the shard; the result gives it up. */
  readonly take: (claim?: number) => () => Promise<void>
}

interface SignOptions {
  readonly atMs?: number
  readonly by?: EnvelopeAuthenticator
  readonly to?: string
}

let network: Network

const nodeWith = async (authenticator: EnvelopeAuthenticator): Promise<Node> => {
  const nc = network.connect()
  // The transport uses nothing else of the connection.
  const nats = Layer.succeed(Nats, { nc, writes: new TurnWrites(nc) } as NatsApi)
  const layer = Layer.provide(natsTransport(authenticator), [nats, Logger.layer([])])
  const transport = await ManagedRuntime.make(layer).runPromise(Transport)
  const serve = async (_: unknown, text: string) => {
    node.decided.push(text)
    if (node.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, node.delayMs))
    return `done ${text}`
  }
  const take = (claim = 1) => {
    const scope = Effect.runSync(Scope.make())
    const held = { claim, after: claim - 1 || undefined, orphaned: false, isHeld: () => true }
    Effect.runSync(Scope.provide(transport.serve(shardOf(alice), serve, held), scope))
    return () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
  const node: Node = { nc, transport, decided: [], delayMs: 0, take }
  return node
}

/** Somebody with a connection, who sees every message. */
class Stranger {
  readonly seen: Array<Msg> = []
  private readonly nc: NatsConnection
  private asks = 0

  constructor() {
    this.nc = network.connect()
    this.nc.subscribe(">", { callback: (_, message) => void this.seen.push(message) })
  }

  /** Publishes the message of these headers. */
  send(to: string, text: string, reply?: string, headers: Readonly<Record<string, string>> = {}) {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    const raw = rawHeaders(`NATS/1.0\r\n${lines.join("")}\r\n`)
    this.nc.publish(to, text, reply === undefined ? { headers: raw } : { reply, headers: raw })
  }

  /** Sends a message that was seen once more, with some of it replaced. */
  repeat(
    { headers, reply, string, subject: to }: Msg,
    changed: Readonly<Record<string, string>> = {}
  ) {
    const fields = names.map((name) => [name, headers?.get(name) ?? ""] as const)
    const all = { ...Object.fromEntries(fields.filter(([, value]) => value !== "")), ...changed }
    this.send(to, string(), reply, all)
  }

  /** Asks at an inbox of its own; the answers so far are in the result. */
  ask(text: string, headers: Readonly<Record<string, string>> = {}, to = subject) {
    const inbox = `_INBOX.stranger.${this.asks++}`
    const answers: Array<string> = []
    this.nc.subscribe(inbox, { callback: (_, { string }) => void answers.push(string()) })
    this.send(to, text, inbox, headers)
    return answers
  }
}

const pass = (ms = 100) => vi.advanceTimersByTimeAsync(ms)

/** Until a node decides first copies without a grant. */
const settle = () => pass(tenureSettledMs + envelopeSkewMs + 10)

const signed = (text: string, { to = subject, ...options }: SignOptions = {}) =>
  signedFor(to, text, options)

const failureOf = (answer: string | undefined): unknown => JSON.parse(answer ?? "{}").failure

let owner: Node
let asker: Node
let stranger: Stranger
let release: () => Promise<void>

beforeEach(async () => {
  network = new Network(() => 0.5, 1, knownMs)
  owner = await nodeWith(testAuthenticator)
  asker = await nodeWith(testAuthenticator)
  stranger = new Stranger()
  release = owner.take()
  await settle()
})

const asked = async (node: Node, text: string) => {
  const progress = { over: false }
  const running = Effect.runPromise(Effect.result(requestOf(node.transport, alice, text, 9_000)))
  void running.then(() => progress.over = true)
  while (!progress.over) await pass()
  return running
}

const succeeds = (text: string) => expect.objectContaining({ _tag: "Success", success: text })

describe("a message without the signature of a key", () => {
  it("is refused, and decided by no node", async () => {
    const other = hmacAuthenticator([Buffer.alloc(32, "another key")])
    const good = signed("deposit")["Restante-Auth"]
    const [time = "", code = ""] = good.split(" ")
    const asks = [
      stranger.ask("deposit"),
      stranger.ask("deposit", { "Restante-Auth": "" }),
      stranger.ask("deposit", { "Restante-Auth": `${time} ` }),
      stranger.ask("deposit", signed("deposit", { by: other })),
      stranger.ask("another text", { "Restante-Auth": good }),
      stranger.ask("deposit", { "Restante-Auth": `${Number(time) + 1} ${code}` }),
      stranger.ask("deposit", { "Restante-Auth": `${time} ${code}=` }),
      stranger.ask("deposit", { "Restante-Auth": good, "Restante-Mark": "resent" }),
      stranger.ask("deposit", { "Restante-Auth": good, traceparent: "00-1-2-01" }),
      stranger.ask("deposit", { "Restante-Auth": good }, subjectOf(address("account", "alice")))
    ]
    await pass()
    expect(owner.decided).toEqual([])
    for (const answers of asks) {
      expect(answers.map(failureOf)).toEqual([
        expect.objectContaining({
          _tag: "EnvelopeRefused",
          detail: expect.stringContaining("sign it")
        })
      ])
    }
    expect(stranger.ask("deposit", { "Restante-Auth": good })).toEqual([])
    await pass()
    expect(owner.decided).toEqual(["deposit"])
  })

  it("counts nothing for what a node sends in another role, or to another subject", async () => {
    expect(await asked(asker, "one")).toEqual(succeeds("done one"))
    const answer = stranger.seen.find(({ string }) => string() === "done one")
    const ask = stranger.seen.find(({ string }) => string() === "one")
    if (answer === undefined || ask === undefined) throw new Error("not seen")
    const code = answer.headers?.get("Restante-Auth") ?? ""
    stranger.send(subject, "done one", undefined, { "Restante-Auth": code })
    stranger.send(subject, "one", undefined, {
      "Restante-Auth": ask.headers?.get("Restante-Auth") ?? ""
    })
    stranger.send(subject, "one", "_INBOX.restante.x.1", {
      "Restante-Auth": ask.headers?.get("Restante-Auth") ?? ""
    })
    await pass()
    expect(owner.decided).toEqual(["one"])
  })
})

describe("an answer without the signature of a key", () => {
  it("is no answer, nor a grant, nor a report of a node", async () => {
    await release()
    const next = await nodeWith(testAuthenticator)
    await pass(2_000)
    const running = asked(asker, "one")
    await pass()
    const { reply = "" } = stranger.seen.find(({ string }) => string() === "one") ?? {}
    expect(reply).toMatch(/^_INBOX\.restante\./)
    const marks = ["moved", "answered", "deciding", "undecided", "grant-request"]
    stranger.send(reply, "{\"_tag\":\"Reply\",\"reply\":\"forged\"}")
    for (const mark of marks) {
      const headers = { "Restante-Mark": mark, "Restante-Node": "x", "Restante-Tenure": "9 9 0 0" }
      stranger.send(reply, "", "_INBOX.stranger", headers)
    }
    const before = stranger.seen.length
    next.take(2)
    expect(await running).toEqual(succeeds("done one"))
    expect(next.decided).toEqual(["one"])
    const grants = stranger.seen.slice(before).filter(({ headers }) =>
      headers?.get("Restante-Mark") === "granted"
    )
    expect(grants.every(({ subject: to }) => to !== "_INBOX.stranger")).toBe(true)
  })

  it("wakes no watcher of an actor", async () => {
    const hints: Array<string> = []
    asker.transport.watch(alice, (hint) => hints.push(hint))
    await pass()
    stranger.send("restante.changes", "mailbox/alice 7")
    await pass()
    expect(hints).toEqual([])
    owner.transport.announce(alice, "8")
    // Hints leave at the end of a turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve))
    await pass()
    expect(hints).toEqual(["8"])
  })
})

describe("a repeated message", () => {
  const askOf = (text: string): Msg => {
    const found = stranger.seen.find((one) => one.subject === subject && one.string() === text)
    if (found === undefined) throw new Error(`${text} was not seen`)
    return found
  }

  it("of a change is a hint once, and none when it is old", async () => {
    const hints: Array<string> = []
    asker.transport.watch(alice, (hint) => hints.push(hint))
    await pass()
    const announce = async (hint: string): Promise<Msg> => {
      owner.transport.announce(alice, hint)
      await new Promise((resolve) => setImmediate(resolve))
      await pass()
      const [found] = stranger.seen.filter((one) => one.subject === "restante.changes").slice(-1)
      if (found === undefined) throw new Error("no change was seen")
      return found
    }
    const change = await announce("8")
    expect(hints).toEqual(["8"])
    stranger.repeat(change)
    await pass()
    // Also when the watcher does not remember it any more.
    await pass(envelopeAgeMaxMs)
    for (let n = 0; n < 4; n++) {
      stranger.repeat(change)
      await pass(answeredKeepMs)
    }
    expect(hints).toEqual(["8"])
    await announce("9")
    expect(hints).toEqual(["8", "9"])
  })

  it("of a node is decided once, by this owner and by later ones", async () => {
    expect(await asked(asker, "one")).toEqual(succeeds("done one"))
    const ask = askOf("one")
    stranger.repeat(ask)
    await pass()
    await pass(answeredKeepMs / 2)
    stranger.repeat(ask)
    await pass(2 * answeredKeepMs + envelopeAgeMaxMs)
    // The owner no longer remembers it.
    for (let n = 0; n < 3; n++) {
      expect(await asked(asker, `more ${n}`)).toEqual(succeeds(`done more ${n}`))
      await pass(answeredKeepMs)
    }
    stranger.repeat(ask)
    await pass(3_000)
    expect(owner.decided.filter((text) => text === "one")).toEqual(["one"])
    await release()
    const next = await nodeWith(testAuthenticator)
    next.take(2)
    stranger.repeat(ask)
    await settle()
    stranger.repeat(ask)
    await pass(3_000)
    expect(next.decided).toEqual([])
  })

  it("of a node that was resent, or is older than the tenure, needs a grant", async () => {
    expect(await asked(asker, "one")).toEqual(succeeds("done one"))
    await release()
    const next = await nodeWith(testAuthenticator)
    next.take(2)
    await pass(tenureSettledMs + 10)
    // The next owner has settled, and the message is not old.
    expect(Date.now() - Number(askOf("one").headers?.get("Restante-Auth").split(" ")[0]))
      .toBeLessThan(envelopeAgeMaxMs)
    stranger.repeat(askOf("one"))
    await pass(3_000)
    expect(next.decided).toEqual([])
    expect(await asked(asker, "two")).toEqual(succeeds("done two"))
  })

  it("of a node that reports that it did not decide counts once", async () => {
    owner.delayMs = 3_000
    await release()
    const running = Effect.runPromise(
      Effect.result(requestOf(asker.transport, alice, "one", 9_000))
    )
    await pass()
    const isReport = ({ headers }: Msg) => headers?.get("Restante-Mark") === "moved"
    const report = stranger.seen.find(isReport)
    if (report === undefined) throw new Error("the owner did not report")
    owner.take(2)
    await pass(1_000)
    expect(owner.decided).toEqual(["one"])
    const next = await nodeWith(testAuthenticator)
    next.take(3)
    // Copies reach the next node first.
    network.stand(owner.nc, 1_500)
    stranger.repeat(report)
    await pass(6_000)
    expect(await running).toEqual(succeeds("done one"))
    expect(next.decided).toEqual([])
  })

  it("of another client is decided once, and only while it is new", async () => {
    const headers = signed("deposit")
    const first = stranger.ask("deposit", headers)
    await pass()
    const second = stranger.ask("deposit", headers)
    await pass()
    expect(first).toEqual(["done deposit"])
    expect(failureOf(second[0])).toMatchObject({ detail: expect.stringContaining("before") })
    await pass(envelopeAgeMaxMs)
    const third = stranger.ask("deposit", headers)
    const ahead = stranger.ask(
      "early",
      signed("early", { atMs: Date.now() + envelopeSkewMs + 100 })
    )
    await pass()
    for (const [answer] of [third, ahead]) {
      expect(failureOf(answer)).toMatchObject({ detail: expect.stringContaining("set the clock") })
    }
    expect(owner.decided).toEqual(["deposit"])
  })

  it("of another client is not decided by the next owner", async () => {
    const headers = signed("deposit")
    stranger.ask("deposit", headers)
    await pass()
    await release()
    const next = await nodeWith(testAuthenticator)
    next.take(2)
    await pass(1_500)
    const answers = stranger.ask("deposit", headers)
    await pass()
    expect(answers.map(failureOf)).toContainEqual(expect.objectContaining({ _tag: "NoOwner" }))
    expect(next.decided).toEqual([])
  })
})

describe("signed messages of other clients", () => {
  it("are bounded, and each is known for as long as it counts", () => {
    const envelopes = new ForeignEnvelopes()
    const refusal = (code: string) =>
      envelopes.refusalOf(subject, { code, sentAtMs: Date.now() }, true)?._tag
    for (let n = 0; n < foreignEnvelopesMax; n++) refusal(`code ${n}`)
    expect(refusal("one more")).toBe("Overloaded")
    vi.advanceTimersByTime(answeredKeepMs + 1)
    expect(refusal("one more")).toBeUndefined()
    expect(refusal("code 5")).toBe("EnvelopeRefused")
    vi.advanceTimersByTime(answeredKeepMs + 1)
    expect(refusal("one more")).toBe("EnvelopeRefused")
    expect(refusal("code 5")).toBeUndefined()
  })
})

describe("hints of changes", () => {
  it("are remembered up to a number, and none of those forgotten counts again", () => {
    const hints = new ReceivedHints()
    const accept = (code: string, sentAtMs: number) => hints.accept({ code, sentAtMs })
    const firstMs = Date.now()
    const generation = (name: string): void => {
      for (let n = 0; n < receivedHintsMax; n++) accept(`${name} ${n}`, Date.now())
    }
    generation("first")
    vi.advanceTimersByTime(1)
    generation("second")
    expect(hints.size).toBe(2 * receivedHintsMax)
    expect([accept("first 5", firstMs), accept("second 5", firstMs + 1)]).toEqual([false, false])
    // The first ones are forgotten, and are still fresh.
    expect(hints.size).toBe(receivedHintsMax)
    expect([accept("late", firstMs), accept("new", firstMs + 1)]).toEqual([false, true])
    expect([accept("first 5", firstMs), accept("new", firstMs + 1)]).toEqual([false, false])
    // Without so many hints each is known for as long as it counts.
    vi.advanceTimersByTime(answeredKeepMs + 1)
    expect([accept("late", firstMs), accept("newer", Date.now())]).toEqual([false, true])
  })
})

describe("the answer of a node", () => {
  it("goes to inboxes alone: a node may publish where others may not", async () => {
    const places = ["$KV.records.x", "$JS.API.STREAM.DELETE.KV_records", subject, "_INBOXES.x", "x"]
    for (const place of places) {
      stranger.send(subject, "deposit", place)
      stranger.send(subject, `to ${place}`, place, signed(`to ${place}`))
    }
    await pass()
    expect(owner.decided).toEqual(places.map((place) => `to ${place}`))
    const answers = stranger.seen.filter(({ string }) => /Refused|^done/.test(string()))
    expect(answers).toEqual([])
  })
})

describe("nodes that change their keys one after the other", () => {
  const newKey = Buffer.alloc(32, "a new key")

  it("understand each other in each step", async () => {
    const steps = [[testKey], [testKey, newKey], [newKey, testKey]].map(hmacAuthenticator)
    for (const [at, step] of steps.entries()) {
      const node = await nodeWith(step)
      await pass()
      // The owner has the keys of the step before, or of this one.
      await release()
      owner = await nodeWith(steps[Math.max(0, at - 1)] ?? step)
      release = owner.take(at + 2)
      await settle()
      if (at < 2) expect(await asked(node, `by ${at}`)).toEqual(succeeds(`done by ${at}`))
      await release()
      owner = await nodeWith(step)
      release = owner.take(at + 12)
      await settle()
      expect(await asked(node, `in ${at}`)).toEqual(succeeds(`done in ${at}`))
    }
  })

  it("need a key", () => expect(() => hmacAuthenticator([])).toThrow(RangeError))
})
