/**
 * What this node remembers of credentials, so that a right one costs no look at the throttle:
 * tokens that were right lately, and addresses that lately had a wrong one. In memory, bounded;
 * what is forgotten costs a look, or gives an address one more try.
 */
import { wrongAttemptsWindowMs } from "../../../actors/index.ts"
import { countedTokenMs, provenTokensMax, suspectsMax } from "../../limits.ts"
import { BoundedMap } from "./bounded-map.ts"

/** Whose a token is, and when that was seen last. */
interface Proof {
  readonly account: string
  readonly atMs: number
}

export class CredentialCache {
  readonly #nowMs: () => number
  readonly #proven = new BoundedMap<Proof>(provenTokensMax)
  /** By the address's name: until when it is suspect, ms since the epoch. */
  readonly #suspects = new BoundedMap<number>(suspectsMax)

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Whether any address may be suspect: quick, for every request. */
  get hasSuspects(): boolean {
    return this.#suspects.size > 0
  }

  /** The token of this hash was right, and is this account's. */
  remember(tokenHash: string, account: string): void {
    this.#proven.set(tokenHash, { account, atMs: this.#nowMs() })
  }

  /** The token of this hash is right no more, or never was. */
  forget(tokenHash: string): void {
    this.#proven.delete(tokenHash)
  }

  /** Whether it was right lately: who presents it again does not guess. */
  isRemembered(tokenHash: string): boolean {
    return this.#proven.get(tokenHash) !== undefined
  }

  /**
   * The account that a request with this token counts for, before anybody has looked whether it is
   * right still: so soon after it was, at the most, that who has a revoked one spends nobody's.
   */
  recentAccount(tokenHash: string): string | undefined {
    const proof = this.#proven.get(tokenHash)
    if (proof === undefined) return undefined
    const agoMs = this.#nowMs() - proof.atMs
    return agoMs >= 0 && agoMs < countedTokenMs ? proof.account : undefined
  }

  /** Something wrong came from this address. */
  markSuspect(client: string): void {
    this.#suspects.set(client, this.#nowMs() + wrongAttemptsWindowMs)
  }

  /** Whether something wrong came from it at this node, within the window. */
  isSuspect(client: string): boolean {
    const untilMs = this.#suspects.get(client)
    if (untilMs === undefined) return false
    const leftMs = untilMs - this.#nowMs()
    if (leftMs > 0 && leftMs <= wrongAttemptsWindowMs) return true
    this.#suspects.delete(client)
    return false
  }
}
