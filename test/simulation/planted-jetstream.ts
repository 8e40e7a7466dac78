/** Planted bugs in what the storage of NATS sends, and in what it concludes from answers. */
import type { Msg } from "@nats-io/transport-node"
import { type NatsApi, NoReply } from "../../runtime/nats/connection/index.ts"
import type { WorldSeams } from "./world.ts"

const isWrite = (subject: string): boolean => subject.startsWith("$KV.")

/** Header lines of expectations. */
const expectations = /Nats-Expected-Last-Subject-Sequence[^\r]*\r\n/g

const withoutExpectations = (nats: NatsApi): NatsApi => ({
  ...nats,
  request: (subject, data, headers, timeoutMs) =>
    nats.request(subject, data, headers?.replace(expectations, ""), timeoutMs),
  publish: (subject, data, headers) =>
    nats.publish(subject, data, headers?.replace(expectations, ""))
})

/** A write without an acknowledgement counts as certainly not stored. */
const lostIsRefused = (nats: NatsApi): NatsApi => ({
  ...nats,
  request: (subject, ...rest) =>
    nats.request(subject, ...rest).catch((error: unknown) => {
      if (!isWrite(subject) || !(error instanceof NoReply)) throw error
      const full = { code: 503, err_code: 10_023, description: "insufficient resources" }
      // Nothing else is read of it.
      return { string: () => JSON.stringify({ error: full }) } as Msg
    })
})

/** Any server's answer counts, however old it is. */
const withoutBarriers = (nats: NatsApi): NatsApi => ({
  ...nats,
  readBarrier: () => Promise.resolve(undefined)
})

/** The planted bugs by name. */
export const plantedJetStream: Readonly<Record<string, WorldSeams>> = {
  "jetstream-no-expectations": { store: "jetstream", nats: withoutExpectations },
  "jetstream-lost-is-refused": { store: "jetstream", nats: lostIsRefused },
  "jetstream-no-barrier": { store: "jetstream", nats: withoutBarriers }
}
