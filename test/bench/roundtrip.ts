/**
 * An ask of an actor on another node, compared with a request to a third process over the same
 * server. Both run in turns, on the same machine state. Prints the medians in ms.
 */
import type { NatsConnection } from "@nats-io/transport-node"
import { Effect, type Scope } from "effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { address } from "../../runtime/actor/address.ts"
import { connection, Nats } from "../../runtime/nats/connection/connection.ts"
import { makeTransport } from "../../runtime/nats/transport/transport.ts"
import { testAuthenticator } from "../runtime/nats/keys.ts"
import { median } from "./line.ts"
import { requestOf } from "../suites/request.ts"

const [servers = "", role = "ask"] = process.argv.slice(2)
const subject = "bench.echo"
const options = { servers: servers.split(","), name: `bench ${role}` }
const turns = 60
const each = 50
const deadlineMs = 5_000
const pollMs = 20
const message = JSON.stringify({ _tag: "Describe", reader: {} })

const echo = Effect.gen(function*() {
  const { nc } = yield* Nats
  nc.subscribe(subject, { callback: (_, request) => void request.respond(request.data) })
  return yield* Effect.never
})

const timed = async (once: () => Promise<unknown>): Promise<number> => {
  const startedMs = performance.now()
  for (let n = 0; n < each; n++) await once()
  return (performance.now() - startedMs) / each
}

/** Waits until the third process responds. */
const echoes = async (nc: NatsConnection): Promise<void> => {
  for (;;) {
    try {
      return void await nc.request(subject, message, { timeout: deadlineMs })
    } catch {
      await new Promise((resolve) => setTimeout(resolve, pollMs))
    }
  }
}

const ask = Effect.gen(function*() {
  const { nc } = yield* Nats
  const transport = yield* makeTransport(testAuthenticator)
  yield* Effect.promise(() => echoes(nc))
  const to = address("mailbox", "roundtrip")
  const asks: Array<number> = []
  const echoed: Array<number> = []
  for (let turn = 0; turn < turns; turn++) {
    const byActor = yield* Effect.promise(() =>
      timed(() => Effect.runPromise(requestOf(transport, to, message, deadlineMs)))
    )
    const byEcho = yield* Effect.promise(() =>
      timed(() => nc.request(subject, message, { timeout: deadlineMs }))
    )
    if (turn < turns / 4) continue
    asks.push(byActor)
    echoed.push(byEcho)
  }
  process.stdout.write(JSON.stringify({ askMs: median(asks), echoMs: median(echoed) }))
})

const run = <A, E>(effect: Effect.Effect<A, E, Nats | Scope.Scope>) =>
  Effect.runPromise(Effect.scoped(Effect.provide(effect, connection(options))))

if (role === "echo") await run(echo)
else {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), servers, "echo"], {
    stdio: "inherit"
  })
  try {
    await run(ask)
  } finally {
    child.kill("SIGKILL")
  }
  process.exit(0)
}
