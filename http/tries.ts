/**
 * What this node remembers of credentials, so that a right one costs no look at the throttle:
 * tokens that were right lately, and addresses that lately had a wrong one. In memory, bounded, in
 * two generations; what is forgotten costs a look, or gives an address one more try.
 */
import { wrongTriesWindowMs } from "../actors/limits.ts"
import { provenTokensMax, suspectsMax } from "./limits.ts"

export class Tries {
  readonly #nowMs: () => number
  #proven = new Set<string>()
  #provenBefore = new Set<string>()
  /** By the address's name: until when it is suspect, ms since the epoch. */
  #suspects = new Map<string, number>()
  #suspectsBefore = new Map<string, number>()

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Whether any address may be suspect: quick, for every request. */
  get hasSuspects(): boolean {
    return this.#suspects.size > 0 || this.#suspectsBefore.size > 0
  }

  /** The token of this hash was right. */
  proven(tokenHash: string): void {
    if (this.#proven.has(tokenHash)) return
    if (this.#proven.size >= provenTokensMax / 2) {
      this.#provenBefore = this.#proven
      this.#proven = new Set()
    }
    this.#proven.add(tokenHash)
  }

  /** The token of this hash is right no more, or never was. */
  disproven(tokenHash: string): void {
    this.#proven.delete(tokenHash)
    this.#provenBefore.delete(tokenHash)
  }

  /** Whether it was right lately: who presents it again does not guess. */
  isProven(tokenHash: string): boolean {
    return this.#proven.has(tokenHash) || this.#provenBefore.has(tokenHash)
  }

  /** Something wrong came from this address. */
  suspect(client: string): void {
    if (this.#suspects.size >= suspectsMax / 2) {
      this.#suspectsBefore = this.#suspects
      this.#suspects = new Map()
    }
    this.#suspects.set(client, this.#nowMs() + wrongTriesWindowMs)
  }

  /** Whether something wrong came from it at this node, within the window. */
  isSuspect(client: string): boolean {
    const untilMs = this.#suspects.get(client) ?? this.#suspectsBefore.get(client)
    if (untilMs === undefined) return false
    const leftMs = untilMs - this.#nowMs()
    if (leftMs > 0 && leftMs <= wrongTriesWindowMs) return true
    this.#suspects.delete(client)
    this.#suspectsBefore.delete(client)
    return false
  }
}
