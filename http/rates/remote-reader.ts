/**
 * Reads resources of other services for a client that waits for them: the targets of `href`
 * answers (protocol §7). What an anonymous client causes stays at public addresses, also where
 * the operator has allowed others, and each client causes few requests.
 */
import { Effect } from "effect"
import { notAllowed } from "../../actors/index.ts"
import { referencesPerAccount, referencesPerNetwork } from "../limits.ts"
import type { HttpRequest } from "../wire/index.ts"
import { clientNetwork, isLocalClient } from "./client-address.ts"
import { Buckets, type Excess } from "./rate-limiter.ts"

interface Resource {
  readonly type: string
  readonly bytes: Uint8Array
}

/** A GET of at most `bytesMax` bytes by the outbound rules; fails with the reason as text. */
export type ReadResource = (
  uri: string,
  accept: string,
  bytesMax: number
) => Effect.Effect<Resource, string>

/** Tells an anonymous client that an account may reach what the operator has allowed. */
const explained = (reason: string): string =>
  reason === notAllowed ? `${reason} to clients without an account` : reason

interface Readers {
  /** Reaches public addresses only. */
  readonly forAnyone: ReadResource
  /** Reaches what the operator has allowed, too. */
  readonly forAccounts: ReadResource
}

interface Dependencies extends Readers {
  readonly trustedProxies: ReadonlyArray<string>
  /** A clock that never goes backwards; `performance.now` unless a test has another. */
  readonly nowMs?: () => number
}

export class RemoteReader {
  private readonly readers: Readers
  private readonly trustedProxies: ReadonlyArray<string>
  private readonly networks: Buckets
  private readonly accounts: Buckets

  constructor({ forAccounts, forAnyone, nowMs, trustedProxies }: Dependencies) {
    const clock = nowMs ?? (() => performance.now())
    this.readers = { forAnyone, forAccounts }
    this.trustedProxies = trustedProxies
    this.networks = new Buckets(referencesPerNetwork, clock)
    this.accounts = new Buckets(referencesPerAccount, clock)
  }

  /**
   * The reader for a request of `account`, undefined for an anonymous one. It fails with the
   * reason as text, or with the excess when the client has caused too many requests.
   */
  readerFor(
    request: HttpRequest,
    account: string | undefined
  ): (...what: Parameters<ReadResource>) => Effect.Effect<Resource, string | Excess> {
    const { forAccounts, forAnyone } = this.readers
    return (...what) =>
      Effect.suspend((): Effect.Effect<Resource, string | Excess> => {
        const excess = isLocalClient(request) ? undefined : this.spend(request, account)
        if (excess !== undefined) return Effect.fail(excess)
        return account === undefined
          ? Effect.mapError(forAnyone(...what), explained)
          : forAccounts(...what)
      })
  }

  private spend(request: HttpRequest, account: string | undefined): Excess | undefined {
    const buckets = account === undefined ? this.networks : this.accounts
    const { isOver, waitMs } = buckets.take(
      account ?? clientNetwork(request, this.trustedProxies)
    )
    if (!isOver) return undefined
    const who = account === undefined
      ? "clients of this network without an account"
      : "this account"
    const { quota, windowMs } = buckets.rate
    return {
      policy: "references",
      detail: `${who} may refer to other services ${quota} times in ${windowMs / 1000} s: ` +
        "repeat the request later, or send the text itself",
      waitMs
    }
  }
}
