/**
 * The credentials that this node has seen recently, so that a valid token costs no message to the
 * throttle. It is in memory and bounded: evicting an entry costs one message, or gives an address
 * one more attempt.
 */
import { LRUCache } from "lru-cache"
import { wrongAttemptsWindowMs } from "../../../actors/index.ts"
import { countedTokenMs, suspectAddressesMax, tokenUseAttemptMs,
  validTokensMax } from "../../limits.ts"

/** The account of a valid token, and when it was last presented, by the monotonic clock. */
interface ValidToken {
  readonly account: string
  readonly atMs: number
  /** When this node last tried to record its use, by the monotonic clock. */
  readonly useRecordedAtMs: number
}

export class CredentialCache {
  private readonly monotonicMs: () => number
  /** Valid tokens by their hash. */
  private readonly validTokens = new LRUCache<string, ValidToken>({ max: validTokensMax })
  /** Right message passwords, each by the hash of its content and its own. */
  private readonly knownPasswords = new LRUCache<string, true>({ max: validTokensMax })
  /** Addresses, and networks, that presented wrong credentials within the window. */
  private readonly suspects: LRUCache<string, true>

  constructor(monotonicMs: () => number = () => performance.now()) {
    this.monotonicMs = monotonicMs
    this.suspects = new LRUCache({
      max: suspectAddressesMax,
      ttl: wrongAttemptsWindowMs,
      ttlResolution: 0,
      perf: { now: monotonicMs }
    })
  }

  /** Whether any address may be suspect: a quick check for every request. */
  get hasSuspects(): boolean {
    return this.suspects.size > 0
  }

  /** The token of this hash is valid and belongs to the account. */
  remember(tokenHash: string, account: string): void {
    const useRecordedAtMs = this.validTokens.peek(tokenHash)?.useRecordedAtMs ?? -Infinity
    this.validTokens.set(tokenHash, { account, atMs: this.monotonicMs(), useRecordedAtMs })
  }

  /**
   * Whether to record the use of this remembered token: not while an earlier record of this node is
   * under way, nor soon after one that failed.
   */
  mayRecordUse(tokenHash: string): boolean {
    const token = this.validTokens.peek(tokenHash)
    const nowMs = this.monotonicMs()
    if (token !== undefined && nowMs - token.useRecordedAtMs < tokenUseAttemptMs) return false
    if (token !== undefined) this.validTokens.set(tokenHash, { ...token, useRecordedAtMs: nowMs })
    return true
  }

  /** The token of this hash is not valid, or no longer. */
  forget(tokenHash: string): void {
    this.validTokens.delete(tokenHash)
  }

  /** Whether the token was valid recently: presenting it again is not guessing. */
  isRemembered(tokenHash: string): boolean {
    return this.validTokens.has(tokenHash)
  }

  /**
   * The account whose rate limit a request with this token counts for, before the token is checked
   * again. The time is short, so that a revoked token spends the account's limit only briefly.
   */
  recentAccount(tokenHash: string): string | undefined {
    const token = this.validTokens.get(tokenHash)
    if (token === undefined) return undefined
    return this.monotonicMs() - token.atMs < countedTokenMs ? token.account : undefined
  }

  /** Whether the message password was right recently: presenting it again is not guessing. */
  isKnownPassword(key: string): boolean {
    return this.knownPasswords.get(key) !== undefined
  }

  rememberPassword(key: string): void {
    this.knownPasswords.set(key, true)
  }

  /** The message password is not right any more. */
  forgetPassword(key: string): void {
    this.knownPasswords.delete(key)
  }

  /** The address presented wrong credentials. */
  markSuspect(client: string): void {
    this.suspects.set(client, true)
  }

  /** Whether the address presented wrong credentials to this node within the window. */
  isSuspect(client: string): boolean {
    return this.suspects.get(client) !== undefined
  }
}
