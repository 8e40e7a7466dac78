/** Whether servers are one cluster or apart, as their clients find it. */
import { connect } from "@nats-io/transport-node"
import { expect } from "vitest"
import { type NatsServer, takesClients } from "../runtime/nats/servers.ts"
import type { Site } from "./site.ts"
import type { World } from "./world.ts"

const connectedWithinMs = 5_000
/** By then a message has come that comes at all. */
const heardWithinMs = 1_000
const repeatedMs = 50

/** Whether what a client of one server publishes comes to a client of another one. */
const hears = async (one: NatsServer, other: NatsServer): Promise<boolean> => {
  const options = { timeout: connectedWithinMs, reconnect: false }
  const [from, to] = await Promise.all(
    [one, other].map(({ port }) => connect({ ...options, servers: `127.0.0.1:${port}` }))
  )
  if (from === undefined || to === undefined) throw new Error("there is no connection")
  const subject = `heard.${performance.now()}`
  const heard = new Promise<boolean>((resolve) => {
    to.subscribe(subject, { callback: () => resolve(true) })
    setTimeout(resolve, heardWithinMs, false)
  })
  // One server learns only a little later what clients of another one want.
  const again = setInterval(() => from.publish(subject), repeatedMs)
  try {
    return await heard
  } finally {
    clearInterval(again)
    await Promise.all([from.close(), to.close()])
  }
}

/** Expects a server, which takes clients, to be one with the others, or apart from all of them. */
export const expectTogether = async (
  { cluster: { servers } }: World<Site>,
  server: NatsServer,
  areTogether: boolean
): Promise<void> => {
  const others = servers.filter((other) => other !== server)
  expect(await takesClients(server.port)).toBe(true)
  const heard = await Promise.all(others.map((other) => hears(server, other)))
  expect(heard).toEqual(others.map(() => areTogether))
}
