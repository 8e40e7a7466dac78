/** Lists 50 notifications (A11), compared with the peer, which sends the same bytes. */
import { atLeast, type Line, thousands } from "../line.ts"
import { openMailbox } from "../mailboxes.ts"
import type { Running } from "../process.ts"
import { compare, type Compared } from "../rounds.ts"

/** So many are listed. */
export const notifications = 50
const connections = 64

const deposit = async (uri: string, n: number): Promise<void> => {
  const answer = await fetch(uri, {
    method: "POST",
    headers: { "Content-Type": "text/xml+rss" },
    body:
      `<notification><item><description>The minutes of the meeting are here: ${n}</description>` +
      "<url>http://content.example/content/WkVhZ2xlczEyMzQ1Njc4OTA</url>" +
      "<password>correct-horse-battery-staple</password>" +
      "<subject>Minutes of Tuesday</subject></item></notification>"
  })
  await answer.body?.cancel()
  if (answer.status !== 202) throw new Error(`a deposit was answered ${answer.status}`)
}

/** Deposits the notifications that are listed, in the mailbox `read`. */
export const fill = async (node: Running): Promise<void> => {
  for (let n = 1; n <= notifications; n++) await deposit(`${node.origin}/mailboxes/read`, n)
}

const detailOf = ({ cpuUs, peerCpuUs, peerPerSecond, perSecond }: Compared): string =>
  `${thousands(perSecond)} of ${thousands(peerPerSecond)} a second; ` +
  `${cpuUs.toFixed(1)} µs of processor time each, the peer's ${peerCpuUs.toFixed(1)} µs`

export const listing: Line = {
  name: "listing",
  run: async (bench) => {
    const peer = await bench.peer()
    const node = await bench.serve(bench.folder("listing"))
    const shared = await openMailbox(node, "read")
    await fill(node)
    const bytes = Buffer.from(await (await fetch(`${node.origin}${shared}`)).arrayBuffer())
    const listed = bytes.toString("utf8").split("<notification ").length - 1
    if (listed !== notifications) throw new Error(`the listing shows ${listed} notifications`)
    await fetch(`${peer.origin}/`, { method: "PUT", body: bytes })
    const size = `${(bytes.length / 1000).toFixed(1)} kB`
    const what = `listing of ${notifications} (${size}) by its shared URI`
    const cached = await compare(node, peer, connections, () => ({ script: "get", args: [shared] }))
    // Each limit is another listing, and they are too many for the cache.
    const second = await compare(node, peer, connections, () => ({
      script: "get",
      args: [shared, "?limit=", String(notifications), "1000"]
    }))
    await Promise.all([node.stop(), peer.stop()])
    const made = atLeast(`${what}, each made from the log again`, second.ratio, 0, detailOf(second))
    return [
      atLeast(
        `${what}, of bare uWebSockets.js answering the same bytes`,
        cached.ratio,
        0.25,
        detailOf(cached)
      ),
      { ...made, target: "none", met: undefined }
    ]
  }
}
