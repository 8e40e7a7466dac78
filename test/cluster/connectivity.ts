/** Whether servers form one cluster or are partitioned, as their clients observe it. */
import { connect } from "@nats-io/transport-node"
import { expect } from "vitest"
import { type NatsServer, takesClients } from "../runtime/nats/servers.ts"
import type { Site } from "./site.ts"
import type { World } from "./world.ts"

const connectedWithinMs = 120_000
/** For a message that should arrive: a busy machine may take seconds. */
const arrivalMs = 60_000
/** A message that should not arrive, and has not by then, will not arrive. */
const absenceMs = 1_000
const repeatedMs = 50

/**
 * Whether a client of `other` receives, within this time, messages that a client of `one`
 * publishes.
 */
const reaches = async (one: NatsServer, other: NatsServer, withinMs: number): Promise<boolean> => {
  const options = { timeout: connectedWithinMs, reconnect: false }
  const [from, to] = await Promise.all(
    [one, other].map(({ port }) => connect({ ...options, servers: `127.0.0.1:${port}` }))
  )
  if (from === undefined || to === undefined) throw new Error("there is no connection")
  const subject = `received.${performance.now()}`
  const received = new Promise<boolean>((resolve) => {
    to.subscribe(subject, { callback: () => resolve(true) })
    setTimeout(resolve, withinMs, false)
  })
  // A server needs time to learn of the other server's subscriptions, so the client repeats.
  const publishing = setInterval(() => from.publish(subject), repeatedMs)
  try {
    return await received
  } finally {
    clearInterval(publishing)
    await Promise.all([from.close(), to.close()])
  }
}

/** Expects a server to accept clients, and to be connected to all others or to none. */
export const expectClustered = async (
  { cluster: { servers } }: World<Site>,
  server: NatsServer,
  areTogether: boolean
): Promise<void> => {
  const others = servers.filter((other) => other !== server)
  expect(await takesClients(server.port)).toBe(true)
  const withinMs = areTogether ? arrivalMs : absenceMs
  const received = await Promise.all(others.map((other) => reaches(server, other, withinMs)))
  expect(received).toEqual(others.map(() => areTogether))
}
