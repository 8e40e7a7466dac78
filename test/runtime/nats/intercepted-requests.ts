/** A connection whose requests a test intercepts. */
import { Effect, Layer } from "effect"
import { Nats, type NatsApi } from "../../../runtime/nats/connection/connection.ts"

type Reply = ReturnType<NatsApi["request"]>

/** Wraps a connection: `intercept` handles the requests to subjects with this prefix. */
export const interceptRequests = (
  begin: string,
  intercept: (ask: () => Reply, subject: string, data: unknown) => Reply
): Layer.Layer<Nats, never, Nats> =>
  Layer.effect(
    Nats,
    Effect.map(Nats, (nats) => ({
      ...nats,
      request: (...asked) => {
        const ask = () => nats.request(...asked)
        return asked[0].startsWith(begin) ? intercept(ask, asked[0], asked[1]) : ask()
      }
    } satisfies Nats["Service"]))
  )
