/**
 * Reads resources of other services for a client that waits for them: the targets of `href`
 * answers (protocol §7). What an anonymous client causes stays at public addresses, also where
 * the operator has allowed others, and each client causes few requests.
 */
import { Effect } from "effect"
import { notAllowed } from "../../actors/index.ts"
import { referencesPerAccount, referencesPerNetwork } from "../limits.ts"
import type { HttpRequest } from "../wire/index.ts"
import type { Clients } from "./client-address.ts"
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
  /** For the clients of a network: reaches public addresses only. */
  readonly forAnyone: (network: string) => ReadResource
  /** For an account: reaches what the operator has allowed, too. */
  readonly forAccounts: (account: string) => ReadResource
}

interface Dependencies extends Readers {
  readonly clients: Clients
  /** A clock that never goes backwards; `performance.now` unless a test has another. */
  readonly nowMs?: () => number
}

export class RemoteReader {
  private readonly readers: Readers
  private readonly clients: Clients
  private readonly networks: Buckets
  private readonly accounts: Buckets

  constructor({ clients, forAccounts, forAnyone, nowMs }: Dependencies) {
    const clock = nowMs ?? (() => performance.now())
    this.readers = { forAnyone, forAccounts }
    this.clients = clients
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
        const excess = this.spend(request, account)
        if (excess !== undefined) return Effect.fail(excess)
        return account === undefined
          ? Effect.mapError(forAnyone(this.clients.clientOf(request).network)(...what), explained)
          : forAccounts(account)(...what)
      })
  }

  private spend(request: HttpRequest, account: string | undefined): Excess | undefined {
    const { isLocal, network } = this.clients.clientOf(request)
    if (isLocal) return undefined
    const buckets = account === undefined ? this.networks : this.accounts
    const { isOver, waitMs } = buckets.take(account ?? network)
    if (!isOver) return undefined
    const who = account === undefined
      ? `the clients of ${network} without an account`
      : `the account ${account}`
    const { quota, windowMs } = buckets.rate
    return {
      policy: "references",
      detail: `${who} may refer to other services ${quota} times in ${windowMs / 1000} s: ` +
        "repeat the request later, or send the text itself",
      waitMs
    }
  }
}
