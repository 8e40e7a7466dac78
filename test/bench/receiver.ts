/** What a receiver of relays and pushes has got (peer.ts). */
import type { Running } from "./process.ts"

const withinMs = 120_000

/** Requests that it has received. */
export const countOf = async (receiver: Running): Promise<number> =>
  Number(await (await fetch(`${receiver.origin}/count`)).text())

/** Waits for this number at the receiver, which responds then, since polling would cost time. */
export const until = async (receiver: Running, count: number): Promise<void> => {
  const signal = AbortSignal.timeout(withinMs)
  await (await fetch(`${receiver.origin}/reached/${count}`, { signal })).text()
}
