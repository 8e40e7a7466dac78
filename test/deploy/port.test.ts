/** The port of a node that listens on a free one. */
import { Effect } from "effect"
import { once } from "node:events"
import { createServer } from "node:net"
import { expect, it } from "vitest"
import { holdPort } from "../../deploy/node/port.ts"

const host = "127.0.0.1"

/** The code of the failure to listen on a port; undefined if it succeeds. */
const failureAt = async (port: number): Promise<string | undefined> => {
  const server = createServer()
  server.listen(port, host)
  try {
    await once(server, "listening")
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  } finally {
    server.close()
  }
}

it("is no other process's from when it is chosen until the node listens", async () => {
  const held = Effect.gen(function*() {
    const { port, release } = yield* holdPort(host, 0)
    const before = yield* Effect.promise(() => failureAt(port))
    yield* release
    return { port, before, after: yield* Effect.promise(() => failureAt(port)) }
  })
  const { after, before, port } = await Effect.runPromise(Effect.scoped(held))
  expect(port).toBeGreaterThan(0)
  expect([before, after]).toEqual(["EADDRINUSE", undefined])
})

it("is free again after a start that failed", async () => {
  const { port } = await Effect.runPromise(Effect.scoped(holdPort(host, 0)))
  expect(await failureAt(port)).toBeUndefined()
})

it("fails for a host of another machine", async () => {
  const failure = await Effect.runPromise(Effect.flip(Effect.scoped(holdPort("192.0.2.1", 0))))
  expect(failure).toMatchObject({ _tag: "ServerUnavailable", reason: "Address" })
})
