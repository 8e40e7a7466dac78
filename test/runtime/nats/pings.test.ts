/** The pings port on real servers: who listens answers, and nobody else. */
import { connect, NoRespondersError, RequestError } from "@nats-io/transport-node"
import { Effect, Exit, Layer, Logger, Scope } from "effect"
import { afterEach, beforeEach, expect, it } from "vitest"
import { connection } from "../../../runtime/nats/connection/connection.ts"
import { hmacAuthenticator } from "../../../runtime/nats/transport/envelope-authenticator.ts"
import { natsPings } from "../../../runtime/nats/transport/pings.ts"
import { Pings, type PingsApi } from "../../../runtime/ports/pings.ts"
import { fromLayer, type Harness } from "../../suites/harness.ts"
import { run } from "../../suites/storage-probe.ts"
import { testAuthenticator } from "./keys.ts"
import { startServer } from "./servers.ts"

let server: Awaited<ReturnType<typeof startServer>>
let all: Array<Harness<PingsApi>>
let scope: Scope.Closeable

const open = async (authenticator = testAuthenticator): Promise<PingsApi> => {
  const nats = connection({ servers: [server.url], name: "pings" })
  const layer = Layer.provide(natsPings(authenticator), [nats, Logger.layer([])])
  const harness = await fromLayer(Pings, layer, async () => {})
  all.push(harness)
  return harness.api
}

beforeEach(async () => {
  server = await startServer()
  scope = await run(Scope.make())
  all = []
})

afterEach(async () => {
  await run(Scope.close(scope, Exit.void))
  for (const { close } of all) await close()
  await server.close()
})

/** Listens, and waits until the server knows. */
const listen = async (pings: PingsApi, name: string, answer: (text: string) => string) => {
  await run(Scope.provide(pings.listen(name, answer), scope))
  const observer = await connect({ servers: [server.url] })
  const isKnown = () =>
    observer.request(`restante.pings.${name}`, "", { timeout: 100 }).then(
      () => true,
      (error: unknown) => !(error instanceof NoRespondersError || error instanceof RequestError)
    )
  await expect.poll(isKnown, { timeout: 60_000 }).toBe(true)
  await observer.close()
}

const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(() => undefined, (error: unknown) => error)

it("are answered by the process that listens, on the same connection and on others", async () => {
  const [one, other] = [await open(), await open()]
  await listen(one, "a", (text) => `a ${text} é`)
  await listen(other, "b", (text) => `b ${text}`)
  const answers = await Promise.all([
    run(one.send("a", "1")),
    run(other.send("a", "2")),
    run(one.send("b", "3"))
  ])
  expect(answers).toEqual(["a 1 é", "a 2 é", "b 3"])
})

it("fail at once while nobody listens", async () => {
  const pings = await open()
  expect(await failure(run(pings.send("a", "?")))).toMatchObject({
    _tag: "PingUnanswered",
    name: "a"
  })
  await listen(pings, "a", () => "here")
  expect(await run(pings.send("a", "?"))).toBe("here")
  await run(Scope.close(scope, Exit.void))
  const ended = () => failure(run(pings.send("a", "?")))
  await expect.poll(ended, { timeout: 60_000 }).toMatchObject({ _tag: "PingUnanswered" })
})

it("of somebody without the key are not answered, nor are answers without it", async () => {
  const [node, stranger] = [await open(), await open(hmacAuthenticator([Buffer.alloc(32, 1)]))]
  await listen(node, "a", () => "here")
  const unanswered = Effect.timeoutOption(stranger.send("a", "?"), 300)
  expect((await run(unanswered))._tag).toBe("None")

  const nc = await connect({ servers: [server.url] })
  nc.subscribe("restante.pings.b", { callback: (_, ping) => void ping.respond("forged") })
  await nc.flush()
  expect((await run(Effect.timeoutOption(node.send("b", "?"), 300)))._tag).toBe("None")
  await nc.close()
})
