/** What the twins must hold on a cluster with faults. */
import { Schema } from "@restante/runtime"
import { type ReceivedReply, request, type SimulateOptions } from "@restante/runtime/testing"
import { deviceTwin } from "./index.ts"

const twins = ["lamp", "lock"].map((id) => deviceTwin(id))

type Twin = typeof deviceTwin.behavior.initial
type Versions = Readonly<Record<"desired" | "reported" | "sequence", number>>

const versionsOf = ({ desired, reported, sequence }: Twin): Versions => ({
  desired: desired.version,
  reported: reported.version,
  sequence
})

const isView = Schema.is(Schema.Struct({
  desired: Schema.Struct({ version: Schema.Int }),
  reported: Schema.Struct({ version: Schema.Int }),
  isInSync: Schema.Boolean
}))

/** The desired version that a client has seen last. */
const desiredIn = (received: ReadonlyArray<ReceivedReply>, id: string): number => {
  const last = received.findLast(({ reply, to }) => to.id === id && isView(reply))?.reply
  return isView(last) ? last.desired.version : 0
}

/** Operators and devices on a network that delivers some reports late. */
export const twinSimulation = {
  behaviors: [deviceTwin],
  services: () => ({ before: new Map<string, Versions>() }),
  clients: (draw, { number }) => {
    const to = draw.pick(twins)
    const kind = draw.pick(["Desire", "Report", "Report", "Read"] as const)
    const settings = { number }
    const sequence = Math.max(1, number - draw.below(4))
    return request(to, (received) => {
      const version = desiredIn(received, to.id)
      if (kind === "Desire") return { _tag: kind, settings, ifVersion: version }
      return kind === "Report" ? { _tag: kind, settings, version, sequence } : { _tag: kind }
    }, { attempts: 3 })
  },
  // In the end each device reads what it should have, and reports that it has it.
  lastRequests: twins.flatMap((to) => [
    request(to, { _tag: "Read" }, { attempts: 3 }),
    request(to, (received) => ({
      _tag: "Report",
      settings: {},
      version: desiredIn(received, to.id),
      sequence: 1_000_000
    }), { attempts: 3 })
  ]),
  model: "table",
  invariants: [
    {
      name: "versions only grow",
      always: ({ services: { before }, stateOf }, twin) => {
        const now = versionsOf(stateOf<Twin>(twin))
        const last = before.get(twin.id) ?? { desired: 0, reported: 0, sequence: 0 }
        before.set(twin.id, now)
        const grow = now.desired >= last.desired && now.reported >= last.reported &&
          now.sequence >= last.sequence
        return grow ? undefined : `${twin.id} has ${JSON.stringify([last, now])}`
      }
    },
    {
      name: "nothing is reported that was not desired",
      always: ({ stateOf }, twin) => {
        const { desired, reported } = versionsOf(stateOf<Twin>(twin))
        return reported <= desired ? undefined : `${twin.id} reports ${reported} of ${desired}`
      }
    },
    {
      name: "no change of an operator is lost",
      atRest: ({ attempts }) => {
        const accepted = attempts.flatMap(({ message, reply, to }) =>
          message._tag === "Desire" && isView(reply) ? [`${to.id} ${reply.desired.version}`] : []
        )
        return accepted.find((version, at) => accepted.indexOf(version) < at)
      }
    },
    {
      name: "devices are in sync in the end",
      atRest: ({ stateOf }) =>
        twins.map((twin) => ({ id: twin.id, ...versionsOf(stateOf<Twin>(twin)) }))
          .find(({ desired, reported }) => desired !== reported)?.id
    }
  ]
} satisfies SimulateOptions<{ readonly before: Map<string, Versions> }>
