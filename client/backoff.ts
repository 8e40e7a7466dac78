/** Pauses between attempts: growing, jittered, and over when a signal says so. */
import { backoffMsFirst, backoffMsMax } from "./limits.ts"

/** Resolves after the time; rejects with the signal's reason when that is aborted first. */
export const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason)
    const aborted = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted)
      resolve()
    }, ms)
    signal?.addEventListener("abort", aborted, { once: true })
  })

/** Spreads clients that lost the same service: from half of the time to all of it. */
export const jittered = (ms: number): number => ms / 2 + Math.random() * (ms / 2)

/** The pause before attempt `n + 1`, where `n` counts from 1. */
export const backoffMs = (n: number, firstMs = backoffMsFirst): number =>
  jittered(Math.min(firstMs * 2 ** Math.min(n - 1, 20), Math.max(backoffMsMax, firstMs)))

/** The time that Retry-After asks for, in either of its forms (RFC 9110 §10.2.3). */
export const retryAfterMs = (field: string | null, nowMs: number): number | undefined => {
  if (field === null) return undefined
  if (/^\s*\d{1,9}\s*$/.test(field)) return Number(field) * 1000
  const atMs = Date.parse(field)
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs)
}

/** A signal that follows each of these that is there; undefined when none is. */
export const either = (
  ...signals: ReadonlyArray<AbortSignal | undefined>
): AbortSignal | undefined => {
  const there = signals.filter((signal) => signal !== undefined)
  return there.length > 1 ? AbortSignal.any(there) : there[0]
}
