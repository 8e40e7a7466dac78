/**
 * Which server is dialled next, and when. The client's own pace goes by the wall clock: after that
 * was set back by an hour it would dial no server for an hour.
 */
import type { ConnectionOptions } from "@nats-io/transport-node"
import { reconnectWaitMs } from "./limits.ts"

type Dialling = Required<
  Pick<ConnectionOptions, "reconnectDelayHandler" | "reconnectToServer">
>

/**
 * Dials the servers in turn, each after RECONNECT_WAIT_MS at the soonest, by the monotonic clock
 * `nowMs`. For one connection.
 */
export const dialling = (nowMs = () => performance.now()): Dialling => {
  const dialledMs = new Map<string, number>()
  const lastOf = ({ hostname, port }: { readonly hostname: string; readonly port: number }) =>
    dialledMs.get(`${hostname}:${port}`) ?? -Infinity
  return {
    // What the client itself waits is over, whatever its clock says.
    reconnectDelayHandler: () => -Infinity,
    reconnectToServer: (servers) => {
      // In the client's order where neither was dialled.
      const [server] = servers.toSorted((one, other) => {
        const [before, after] = [lastOf(one), lastOf(other)]
        return before === after ? 0 : before - after
      })
      if (server === undefined) return null
      const delay = Math.max(0, lastOf(server) + reconnectWaitMs - nowMs())
      dialledMs.set(`${server.hostname}:${server.port}`, nowMs() + delay)
      return { server, delay }
    }
  }
}
