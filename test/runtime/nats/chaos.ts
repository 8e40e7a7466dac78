/** A connection whose writes are lost, arrive late, or are stored without an answer. */
import type { Layer } from "effect"
import type { Nats } from "../../../runtime/nats/connection/connection.ts"
import { NoReply } from "../../../runtime/nats/connection/requests.ts"
import { interceptRequests } from "./intercepted-requests.ts"

export interface Odds {
  readonly lost: number
  readonly unheard: number
  readonly late: number
  readonly lateMsMax: number
}

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Wraps a connection with this behavior. */
export const chaotic = (odds: () => Odds): Layer.Layer<Nats, never, Nats> =>
  interceptRequests("$KV.", async (ask, subject) => {
    const { lateMsMax, late, lost, unheard } = odds()
    const roll = Math.random()
    if (roll < lost) throw new NoReply(subject, "timeout")
    if (roll < lost + unheard) await ask()
    else if (roll < lost + unheard + late) {
      void wait(Math.random() * lateMsMax).then(ask).catch(() => undefined)
    } else return ask()
    throw new NoReply(subject, "timeout")
  })
