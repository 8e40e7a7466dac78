/** Starting on a store with a million notifications, after a stop and after a kill. */
import { atMost, type Bench, type LargeStore, type Line, median } from "../line.ts"

const starts = 3

const startOnce = async (
  bench: Bench,
  { folder, shared, token }: LargeStore,
  ending: "SIGTERM" | "SIGKILL"
): Promise<number> => {
  const startedMs = performance.now()
  const node = await bench.serve(folder, { token })
  const page = await fetch(`${node.origin}${shared}`)
  const text = await page.text()
  const elapsedMs = performance.now() - startedMs
  if (page.status !== 200 || !text.includes("<notification ")) {
    throw new Error(`the first page was answered ${page.status}`)
  }
  await node.stop(ending)
  return elapsedMs
}

export const start: Line = {
  name: "start",
  run: async (bench) => {
    const store = await bench.large()
    const figure = async (ending: "SIGTERM" | "SIGKILL"): Promise<number> => {
      const times: Array<number> = []
      // The first start after the other kind of end is not counted.
      for (let at = 0; at <= starts; at++) {
        const elapsedMs = await startOnce(bench, store, ending)
        if (at > 0) times.push(elapsedMs)
      }
      return median(times) / 1000
    }
    const what =
      `start with ${store.notifications.toLocaleString("en")} stored notifications, to ` +
      "the first page"
    return [
      atMost(`${what}, after a stop`, await figure("SIGTERM"), 3, "s"),
      atMost(`${what}, after kill -9`, await figure("SIGKILL"), 3, "s")
    ]
  }
}
