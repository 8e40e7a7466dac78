/** The transport over NATS: the port's contract, and network behavior. */
import { connect, headers } from "@nats-io/transport-node"
import { Effect, Exit, Layer, Scope } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { address, shardOf, subjectOf } from "../../../runtime/actor/address.ts"
import { connection } from "../../../runtime/nats/connection/connection.ts"
import { natsTransport } from "../../../runtime/nats/transport/transport.ts"
import { type Serve, Transport, type TransportApi } from "../../../runtime/ports/transport.ts"
import { eventually } from "../../e2e/process.ts"
import { fromLayer } from "../../suites/harness.ts"
import { run } from "../../suites/storage-probe.ts"
import { transportSuite } from "../../suites/transport.ts"
import { type NatsServer, startServer } from "./servers.ts"
import { signed, testAuthenticator } from "./keys.ts"
import { requestOf } from "../../suites/request.ts"

const PAYLOAD_BYTES = 64 * 1_024

let server: NatsServer

beforeAll(async () => {
  server = await startServer({ extra: `max_payload: ${PAYLOAD_BYTES}` })
})

afterAll(() => server.close())

/** A node's transport, over a connection of its own. */
const fresh = () => {
  const nats = connection({ servers: [server.url], name: "test" })
  return fromLayer(Transport, Layer.provide(natsTransport(testAuthenticator), nats), async () => {})
}

transportSuite("NATS", fresh)

describe("the transport over NATS", () => {
  const alice = address("mailbox", "alice")
  const shard = shardOf(alice)
  let nodes: Array<Awaited<ReturnType<typeof fresh>>>
  beforeAll(async () => {
    nodes = [await fresh(), await fresh(), await fresh()]
  })
  afterAll(() => Promise.all(nodes.map(({ close }) => close())))
  const at = (n: number): TransportApi => {
    const node = nodes[n]
    if (node === undefined) throw new Error("no such node")
    return node.api
  }

  const serving = async (n: number, serve: Serve) => {
    const scope = await run(Scope.make())
    await run(Scope.provide(at(n).serve(shard, serve), scope))
    // Known to the server once a request of the same connection has come back.
    await run(Effect.ignore(requestOf(at(n), address("other", "x"), "?", 1_000)))
    return () => run(Scope.close(scope, Exit.void))
  }
  const ask = (n: number, text: string, deadlineMs = 5_000) =>
    run(requestOf(at(n), alice, text, deadlineMs))

  it("delivers messages from node to node", async () => {
    const stop = await serving(0, async (_, text) => `0 ${text}`)
    expect(await ask(1, "a")).toBe("0 a")
    await stop()
  })

  it("neither loses nor duplicates messages while a shard moves under load", async () => {
    const decided = new Map<string, number>()
    let underWay = 0
    const decide = (n: number): Serve => async (_, text) => {
      // A node that releases its shard accepts no message, and finishes the accepted ones.
      if (n !== owner) return undefined
      underWay++
      decided.set(text, (decided.get(text) ?? 0) + 1)
      await new Promise((resolve) => setTimeout(resolve, decided.size % 30))
      underWay--
      return `${n} ${text}`
    }
    const drained = async (): Promise<void> => {
      if (underWay === 0) return
      await new Promise((resolve) => setTimeout(resolve, 1))
      return drained()
    }
    let owner = 0
    let stop = await serving(0, decide(0))
    const asks: Array<Promise<string>> = []
    for (let turn = 1; turn <= 6; turn++) {
      for (let n = 0; n < 60; n++) {
        asks.push(ask(n % 3, `${turn}.${n}`))
        if (n % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 3))
        if (n !== 30) continue
        owner = -1
        await stop()
        await drained()
        owner = turn % 3
        stop = await serving(owner, decide(owner))
      }
    }
    const replies = await Promise.all(asks)
    expect(replies).toHaveLength(360)
    expect([...decided.values()].filter((count) => count !== 1)).toEqual([])
    expect(decided.size).toBe(360)
    await stop()
  })

  it("waits for the next owner when the last one answers that it is not the owner", async () => {
    const stopFirst = await serving(0, async () => undefined)
    const asked = ask(2, "x")
    await new Promise((resolve) => setTimeout(resolve, 100))
    await stopFirst()
    const stop = await serving(1, async () => "taken over")
    expect(await asked).toBe("taken over")
    await stop()
  })

  it("decides once on a message that reaches two nodes, for any number of copies", async () => {
    let decided = 0
    const stopFirst = await serving(0, async () => undefined)
    await stopFirst()
    const stop = await serving(1, async () => {
      decided++
      await new Promise((resolve) => setTimeout(resolve, 400))
      return "slow"
    })
    expect(await Promise.all([ask(2, "x"), ask(0, "x"), ask(1, "x")])).toEqual(
      ["slow", "slow", "slow"]
    )
    expect(decided).toBe(3)
    await stop()
  })

  it("distinguishes accepted messages from others at the deadline", async () => {
    const stopFirst = await serving(0, async () => undefined)
    expect(await run(Effect.flip(requestOf(at(2), alice, "x", 2_000)))).toMatchObject({
      _tag: "NoOwner"
    })
    await stopFirst()
    const stop = await serving(1, () => new Promise(() => {}))
    expect(await run(Effect.flip(requestOf(at(2), alice, "x", 2_000)))).toMatchObject({
      _tag: "AskTimeout"
    })
    await stop()
  })

  it("names a message or reply that is too large, and carries on", async () => {
    const stop = await serving(0, async (_, text) => text === "?" ? "!".repeat(70_000) : text)
    const large = { _tag: "MessageTooLarge", key: "mailbox/alice" }
    const request = requestOf(at(1), alice, "x".repeat(PAYLOAD_BYTES), 1_000)
    expect(await run(Effect.flip(request))).toMatchObject(large)
    expect(JSON.parse(await ask(1, "?"))).toMatchObject({ _tag: "Failure", failure: large })
    expect(await ask(1, "small")).toBe("small")
    await stop()
  })

  it("passes the trace context on", async () => {
    const traces: Array<string | undefined> = []
    const stop = await serving(0, async (_, __, trace) => {
      traces.push(trace)
      return "traced"
    })
    const trace = `00-${"ab".repeat(16)}-${"cd".repeat(8)}-01`
    await run(requestOf(at(1), alice, "x", 1_000, trace))
    await ask(1, "y")
    expect(traces.map((one) => one ?? "")).toEqual([trace, ""])
    await stop()
  })

  it("answers any client, and one that asks for no actor", async () => {
    const stop = await serving(0, async (to, text) => `${to.id} ${text}`)
    const nc = await connect({ servers: [server.url] })
    const request = async (subject: string, text: string, sign = true) => {
      const own = headers()
      for (const [name, value] of Object.entries(sign ? signed(subject, text) : {})) {
        own.set(name, value)
      }
      return (await nc.request(subject, text, { timeout: 30_000, headers: own })).string()
    }
    // Until the node has held the shard for long enough.
    const first = async () => {
      const answer = await request(subjectOf(alice), "hello")
      return answer.includes("NoOwner") ? undefined : answer
    }
    expect(await eventually(30_000, "the node decides", first)).toBe("alice hello")
    const wrong = await request(`restante.mailbox.${shard}.not.one`, "hello")
    expect(JSON.parse(wrong)).toMatchObject({ failure: { _tag: "UnknownMessage" } })
    const unsigned = await request(subjectOf(alice), "again", false)
    expect(JSON.parse(unsigned)).toMatchObject({ failure: { _tag: "EnvelopeRefused" } })
    await nc.close()
    await stop()
  })

  it("notifies watchers on every node once", async () => {
    const heard: Array<string> = []
    const stops = [0, 1, 2].map((n) => at(n).watch(alice, (hint) => heard.push(`${n} ${hint}`)))
    await new Promise((resolve) => setTimeout(resolve, 100))
    at(0).announce(alice, "1")
    at(0).announce(alice, "2")
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(heard.sort()).toEqual(["0 2", "1 2", "2 2"])
    for (const stop of stops) stop()
  })
})
