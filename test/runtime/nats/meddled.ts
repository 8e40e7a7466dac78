/** A connection whose requests go through a test's hands. */
import { Effect, Layer } from "effect"
import { Nats, type NatsApi } from "../../../runtime/nats/connection/connection.ts"

type Reply = ReturnType<NatsApi["request"]>

/** On a connection, another whose requests to subjects that begin so are for `meddle` to ask. */
export const meddled = (
  begin: string,
  meddle: (ask: () => Reply, subject: string) => Reply
): Layer.Layer<Nats, never, Nats> =>
  Layer.effect(
    Nats,
    Effect.map(Nats, (nats) => ({
      ...nats,
      request: (...asked) => {
        const ask = () => nats.request(...asked)
        return asked[0].startsWith(begin) ? meddle(ask, asked[0]) : ask()
      }
    } satisfies Nats["Service"]))
  )
