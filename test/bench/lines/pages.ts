/** Reads a mailbox of a million notifications page by page. */
import type { Line } from "../line.ts"

const pageLimit = 1000
/** Largest growth of the peak memory between the first and the second half. */
const growthMaxMb = 30

export const pages: Line = {
  name: "pages",
  run: async (bench) => {
    const { folder, notifications, shared, token } = await bench.large()
    const node = await bench.serve(folder, { token })
    const fresh = node.memory()
    const startedMs = performance.now()
    let next: string | undefined = `${shared}?limit=${pageLimit}`
    let read = 0
    let firstPeak: number | undefined
    while (next !== undefined) {
      const answer: Response = await fetch(`${node.origin}${next}`)
      const text = await answer.text()
      if (answer.status !== 200) throw new Error(`a page was answered ${answer.status}: ${text}`)
      read += text.split("<notification ").length - 1
      const link = /<([^>]+)>\s*;\s*rel="?next"?/.exec(answer.headers.get("link") ?? "")?.[1]
      next = link?.replace(/^https?:\/\/[^/]+/, "")
      if (firstPeak === undefined && read >= notifications / 2) {
        firstPeak = node.memory().peak
        node.resetPeak()
      }
    }
    const elapsedMs = performance.now() - startedMs
    if (read < notifications) throw new Error(`${read} of ${notifications} notifications were read`)
    const secondPeak = node.memory().peak
    const growth = secondPeak - (firstPeak ?? 0)
    const rate = Math.round(read / elapsedMs * 1000)
    await node.stop()
    return [{
      what: `${read.toLocaleString("en")} stored notifications of one mailbox read by pages of ` +
        `${pageLimit}: growth of the peak memory from the first half to the second`,
      measured: `${growth.toFixed(1)} MB (${fresh.resident.toFixed(0)} MB at the start, ` +
        `peaks ${(firstPeak ?? 0).toFixed(0)} and ${secondPeak.toFixed(0)} MB; ${
          rate.toLocaleString("en")
        } a second)`,
      target: `≤ ${growthMaxMb} MB`,
      met: growth <= growthMaxMb
    }]
  }
}
