/** The connection: versions, authentication, requests. */
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { connection, isTooOld, Nats, type NatsOptions } from "../../runtime/nats/connection.ts"
import { type NatsCluster, type NatsServer, startCluster, startServer } from "./servers.ts"

const using = <A>(options: NatsOptions, use: (nats: Nats["Service"]) => Promise<A>): Promise<A> =>
  Effect.runPromise(
    Effect.flatMap(Nats, (nats) => Effect.promise(() => use(nats))).pipe(
      Effect.provide(connection(options))
    )
  )

describe("the connection", () => {
  let server: NatsServer
  beforeAll(async () => {
    server = await startServer({
      user: "ann",
      pass: "secret",
      extra: "authorization { user: ann, password: secret }"
    })
  })
  afterAll(() => server.close())
  const options = () => ({ servers: [server.url], name: "test", user: "ann", pass: "secret" })

  it.each([["2.11.9", true], ["2.12.0", false], ["2.15.1", false], ["3.0.0", false], ["?", true]])(
    "judges version %s",
    (version, tooOld) => expect(isTooOld(version)).toBe(tooOld)
  )
  it("fails where nobody listens, and upon a wrong password", async () => {
    for (const wrong of [{ servers: ["127.0.0.1:1"] }, { pass: "other" }]) {
      const failed = await Effect.runPromise(
        Effect.flip(Effect.provide(Nats, connection({ ...options(), ...wrong })))
      )
      expect(failed).toMatchObject({ _tag: "StorageUnavailable" })
    }
  })
  it("asks, and learns at once that nobody listens", async () => {
    await using(options(), async ({ nc, request }) => {
      nc.subscribe("echo", {
        callback: (_, message) => {
          message.respond(`${message.headers?.get("A")}${message.string()}`)
        }
      })
      const reply = await request("echo", "b", "NATS/1.0\r\nA: a\r\n\r\n", 1_000)
      expect(reply.string()).toBe("ab")
      await expect(request("nobody", "", undefined, 1_000)).rejects.toMatchObject({
        reason: "no responders"
      })
      nc.subscribe("mute")
      await expect(request("mute", "", undefined, 50)).rejects.toMatchObject({ reason: "timeout" })
    })
  })
  it("keeps one copy on a single server", () =>
    using(options(), async ({ replicas }) => expect(replicas).toBe(1)))
})

describe("three servers", () => {
  let cluster: NatsCluster
  beforeAll(async () => {
    cluster = await startCluster(3)
  })
  afterAll(() => cluster.close())
  it("keep three copies", () =>
    using({ servers: cluster.urls, name: "test" }, async ({ replicas }) => {
      expect(replicas).toBe(3)
    }))
})
