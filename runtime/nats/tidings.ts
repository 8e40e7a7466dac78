/** What becomes of a connection, for the log of who runs the node. */
import type { NatsConnection, Status } from "@nats-io/transport-node"
import { Effect } from "effect"
import { sameFaultMs } from "./limits.ts"

class Tidings {
  private isLost = false
  private readonly toldMs = new Map<string, number>()

  /** What is to be logged of this, if anything; failed attempts to connect again are not. */
  of(status: Status): Effect.Effect<void> {
    switch (status.type) {
      case "disconnect":
        if (this.isLost) return Effect.void
        this.isLost = true
        return Effect.logWarning(`the connection to NATS at ${status.server} was lost`)
      case "reconnect":
        this.isLost = false
        return Effect.logInfo(`connected to NATS at ${status.server} again`)
      case "error":
        return this.isNews(status.error.name)
          ? Effect.logError(`NATS: ${status.error.message}`)
          : Effect.void
      default:
        return Effect.void
    }
  }

  /** A user without rights is told so upon every message. */
  private isNews(name: string): boolean {
    const nowMs = performance.now()
    const isOld = nowMs - (this.toldMs.get(name) ?? -Infinity) < sameFaultMs
    if (!isOld) this.toldMs.set(name, nowMs)
    return !isOld
  }
}

/** Logs what becomes of the connection, until it is closed. */
export const logConnectionEvents = (nc: NatsConnection): Effect.Effect<void> =>
  Effect.map(Effect.context<never>(), (context) => {
    const run = Effect.runForkWith(context)
    const tidings = new Tidings()
    void (async () => {
      for await (const status of nc.status()) run(tidings.of(status))
    })()
  })
