/** Durable deposits (A2), compared with the peer, which reads the same bodies only. */
import { atLeast, atMost, type Line, type Row, thousands } from "../line.ts"
import { openMailbox, openMailboxes } from "../mailboxes.ts"
import { compare, type Compared } from "../rounds.ts"

const mailboxes = 100
const connections = 128

const rows = (where: string, least: number, figures: Compared): ReadonlyArray<Row> => {
  const { cpuUs, p99Ms, peerCpuUs, peerPerSecond, perSecond, ratio, worstP99Ms } = figures
  const detail = `${thousands(perSecond)} of ${thousands(peerPerSecond)} a second; ` +
    `${cpuUs.toFixed(1)} µs of processor time each, the peer's ${peerCpuUs.toFixed(1)} µs`
  const latency = `p99 of these at ${connections} connections`
  return [
    atLeast(`durable deposits ${where}, of bare uWebSockets.js`, ratio, least, detail),
    atMost(latency, p99Ms, 15, "ms", `worst round ${worstP99Ms.toFixed(1)} ms`)
  ]
}

export const deposits: Line = {
  name: "deposits",
  run: async (bench) => {
    const peer = await bench.peer()
    const node = await bench.serve(bench.folder("deposits"))
    await openMailboxes(node, mailboxes)
    await openMailbox(node, "hot")
    const spread = await compare(node, peer, connections, (round) => ({
      script: "deposit",
      args: [`spread${round}`, "/mailboxes/m", String(mailboxes)]
    }))
    const hot = await compare(node, peer, connections, (round) => ({
      script: "deposit",
      args: [`hot${round}`, "/mailboxes/hot", "0"]
    }))
    await Promise.all([node.stop(), peer.stop()])
    return [...rows(`over ${mailboxes} mailboxes`, 0.3, spread), ...rows("to one", 0.25, hot)]
  }
}
