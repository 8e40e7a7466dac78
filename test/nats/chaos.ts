/** A connection whose writes are lost, arrive late, or are kept without a word of it. */
import { Effect, Layer } from "effect"
import { Nats } from "../../runtime/nats/connection.ts"
import { NoReply } from "../../runtime/nats/requests.ts"

export interface Odds {
  readonly lost: number
  readonly unheard: number
  readonly late: number
  readonly lateMsMax: number
}

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Upon a connection, another that behaves so. */
export const chaotic = (odds: () => Odds): Layer.Layer<Nats, never, Nats> =>
  Layer.effect(
    Nats,
    Effect.map(Nats, (nats) => ({
      ...nats,
      request: async (subject, ...rest) => {
        if (!subject.startsWith("$KV.")) return nats.request(subject, ...rest)
        const { lateMsMax, late, lost, unheard } = odds()
        const roll = Math.random()
        if (roll < lost) throw new NoReply(subject, "timeout")
        if (roll < lost + unheard) await nats.request(subject, ...rest)
        else if (roll < lost + unheard + late) {
          void wait(Math.random() * lateMsMax)
            .then(() => nats.request(subject, ...rest))
            .catch(() => undefined)
        } else return nats.request(subject, ...rest)
        throw new NoReply(subject, "timeout")
      }
    } satisfies Nats["Service"]))
  )
