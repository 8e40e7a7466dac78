/** The connection: versions, authentication, requests. */
import { Effect, Logger } from "effect"
import { createServer, type Server, type Socket } from "node:net"
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { reconnectWaitMs } from "../../../runtime/limits.ts"
import { connection, isTooOld, Nats, type NatsOptions,
  reconnectPolicy } from "../../../runtime/nats/connection/connection.ts"
import { freePorts, type NatsCluster, type NatsServer, startCluster,
  startServer } from "./servers.ts"

const using = <A>(options: NatsOptions, use: (nats: Nats["Service"]) => Promise<A>): Promise<A> =>
  Effect.runPromise(
    Effect.flatMap(Nats, (nats) => Effect.promise(() => use(nats))).pipe(
      Effect.provide(connection(options))
    )
  )

afterEach(() => void vi.restoreAllMocks())

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
  it("fails without a server, and on a wrong password", async () => {
    for (const wrong of [{ servers: ["127.0.0.1:1"] }, { pass: "other" }]) {
      const failed = await Effect.runPromise(
        Effect.flip(Effect.provide(Nats, connection({ ...options(), ...wrong })))
      )
      expect(failed).toMatchObject({ _tag: "StorageUnavailable" })
    }
  })
  it("sends requests, and fails at once without a subscriber", async () => {
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
  it("reconnects although the clock was set back by an hour", () =>
    using(options(), async ({ nc }) => {
      const now = Date.now
      vi.spyOn(Date, "now").mockImplementation(() => now() - 3_600_000)
      const back = (async () => {
        for await (const { type } of nc.status()) if (type === "reconnect") return type
        return "closed"
      })()
      await server.restart()
      expect(await back).toBe("reconnect")
    }))
  it("logs its loss and its return, and denied permissions", async () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => void lines.push([message].flat().join(" ")))
    const reported = (line: RegExp) =>
      vi.waitFor(() => expect(lines).toContainEqual(expect.stringMatching(line)), 20_000)
    const narrow = await startServer({
      user: "ann",
      pass: "secret",
      extra: "authorization { users: [" +
        "{ user: ann, password: secret, permissions: { publish: { deny: x } } }] }"
    })
    await Effect.runPromise(
      Effect.flatMap(Nats, ({ isConnected, nc }) =>
        Effect.promise(async () => {
          nc.publish("x")
          nc.publish("x")
          await reported(/^NATS: Permissions Violation .*"x"/)
          const observed: Array<readonly [string, boolean]> = [["before", isConnected()]]
          void (async () => {
            for await (const { type } of nc.status()) observed.push([type, isConnected()])
          })()
          await narrow.restart()
          await reported(/^the connection to NATS at 127\.0\.0\.1:\d+ was lost$/)
          await reported(/^connected to NATS at 127\.0\.0\.1:\d+ again$/)
          expect(observed).toEqual(
            expect.arrayContaining([["before", true], ["disconnect", false], ["reconnect", true]])
          )
        })).pipe(
          Effect.provide(connection({ ...options(), servers: [narrow.url] })),
          Effect.provide(Logger.layer([logger]))
        )
    )
    await narrow.close()
    expect(lines.filter((line) => line.includes("Permissions"))).toHaveLength(1)
  })
  it("stores one copy on a single server", () =>
    using(options(), async ({ replicas }) => expect(replicas).toBe(1)))
})

describe("servers that announce each other", () => {
  const refusing = new Map<number, Server>()
  beforeAll(async () => {
    for (const port of await freePorts(2)) refusing.set(port, createServer())
    const reported = { version: "2.15.1", proto: 1, headers: true, max_payload: 1_048_576 }
    const known = { connect_urls: [...refusing.keys()].map((port) => `127.0.0.1:${port}`) }
    for (const [port, server] of refusing) {
      server.on("connection", (socket) => {
        socket.on("error", () => socket.destroy())
        socket.on("data", () => socket.end("-ERR 'Authorization Violation'\r\n"))
        socket.write(`INFO ${JSON.stringify({ server_id: `N${port}`, ...reported, ...known })}\r\n`)
      })
      await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))
    }
  })
  afterAll(() => refusing.forEach((server) => server.close()))

  it("are not retried for ever when none admits the node", async () => {
    const [port = 0] = refusing.keys()
    const options = { servers: [`127.0.0.1:${port}`], name: "test", user: "ann", pass: "other" }
    const failed = await Effect.runPromise(Effect.flip(Effect.provide(Nats, connection(options))))
    expect(failed).toMatchObject({
      _tag: "StorageUnavailable",
      detail: expect.stringMatching(/Authorization/i)
    })
  })
})

describe("a server that announces another", () => {
  const ends: Array<() => void> = []
  afterEach(() => ends.splice(0).forEach((end) => end()))

  /** A server that admits everybody; counts connections, and can end them. */
  const admitting = async (port: number, announced: ReadonlyArray<string>) => {
    const sockets = new Set<Socket>()
    const counted = { connections: 0, drop: () => sockets.forEach((socket) => socket.destroy()) }
    const info = { server_id: `N${port}`, version: "2.15.1", proto: 1, headers: true }
    const server = createServer((socket) => {
      counted.connections++
      sockets.add(socket)
      socket.on("error", () => socket.destroy())
      socket.on("data", (bytes) => {
        if (bytes.includes("PING")) socket.write("PONG\r\n")
      })
      socket.write(`INFO ${JSON.stringify({ ...info, connect_urls: announced })}\r\n`)
    })
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))
    ends.push(() => {
      counted.drop()
      server.close()
    })
    return counted
  }

  it.each([[true, 0], [false, 1]])("with ignoreAnnounced %s", async (ignoreAnnounced, others) => {
    const [port = 0, otherPort = 0] = await freePorts(2)
    const server = await admitting(port, [`127.0.0.1:${otherPort}`])
    const other = await admitting(otherPort, [])
    await using({ servers: [`127.0.0.1:${port}`], name: "test", ignoreAnnounced }, async () => {
      const before = server.connections
      server.drop()
      const more = () => server.connections - before + other.connections
      await expect.poll(more, { timeout: 30_000 }).toBeGreaterThan(0)
    })
    expect(other.connections).toBe(others)
  })
})

describe("server selection", () => {
  const pool = ["a", "b"].map((hostname) => ({ hostname, port: 1, listen: hostname, src: "" }))

  it("tries the servers in turn, each after a pause", () => {
    let nowMs = 0
    const { reconnectToServer } = reconnectPolicy(() => nowMs)
    const dial = () => {
      // The part of a server that the code reads.
      const dialled = reconnectToServer(pool as never, null)
      return dialled !== null && "delay" in dialled
        ? [dialled.server.hostname, dialled.delay]
        : undefined
    }
    expect([dial(), dial(), dial(), dial()]).toEqual([
      ["a", 0],
      ["b", 0],
      ["a", reconnectWaitMs],
      ["b", reconnectWaitMs]
    ])
    nowMs = 10 * reconnectWaitMs
    expect([dial(), dial()]).toEqual([["a", 0], ["b", 0]])
  })

  it("tries no server when there is none", () => {
    expect(reconnectPolicy().reconnectToServer([], null)).toBeNull()
  })
})

describe("three servers", () => {
  let cluster: NatsCluster
  beforeAll(async () => {
    cluster = await startCluster(3)
  })
  afterAll(() => cluster.close())
  it("store three copies", () =>
    using({ servers: cluster.urls, name: "test" }, async ({ replicas }) => {
      expect(replicas).toBe(3)
    }))
})
