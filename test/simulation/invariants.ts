/** Checks invariants during a run, and records a violation at once. */
import { Effect } from "effect"
import { type Computer, incarnationPrefix, type StoredChange } from "../../runtime/testing/index.ts"
import { hasEnded } from "../../actors/notification/attempts.ts"
import type { NotificationState } from "../../actors/notification/protocol.ts"
import { jitterFraction } from "../../actors/outbound/schedule.ts"
import { type Address, keyOf, shardOf } from "../../runtime/actor/address.ts"
import { decodeStoredState } from "../../runtime/actor/format.ts"
import { claimKey } from "../../runtime/cluster/claims.ts"
import { schedule } from "./nodes.ts"
import { decodeState, markIn, notificationAt, notificationIdOf,
  storedNotification } from "./notifications.ts"
import type { Records } from "./records.ts"
import type { World } from "./world.ts"

/** How long after the store's answer its actor knows of it at the latest, ms. */
const TOLD_MS = 1_000

type Queued = Extract<NotificationState, { readonly _tag: "Queued" }>

/** How long after its decision an attempt may begin, while it waits for its content, ms. */
const LETTER_MS = 20_000

const queuedOf = (text: string): Queued | undefined => {
  const state = decodeState(JSON.parse(decodeStoredState(text).text))
  return state._tag === "Queued" ? state : undefined
}

/** How many attempts at a recipient are stored. */
interface StoredResult {
  readonly attempts: number
  /** Whether the process that stored the last one had the claim of the shard. */
  readonly isOwners: boolean
}

/** One log item of a mailbox. */
export interface Appended {
  readonly n: number
  readonly value: string
  /** Its moment, in the numbering of the records. */
  readonly at: number
}

export class Invariants {
  /** By actor: all items that were appended to its log, in order. */
  readonly appended = new Map<string, Array<Appended>>()
  /** By actor: numbers of removed items, and when they were removed. */
  readonly removed = new Map<string, Map<number, number>>()
  /** By computer: actors whose last commit was stored while another node had the claim. */
  private readonly strange = new Set<string>()
  /** By computer: actors that must be told of a stored commit, since when. */
  private readonly untold = new Map<
    string,
    { readonly computer: Computer; readonly sinceMs: number }
  >()
  /** By recipient of a notification: its last result as it is stored. */
  private readonly results = new Map<string, StoredResult>()
  /** By process and recipient: its stored attempts when the last request of the process began. */
  private readonly requested = new Map<string, number>()
  /** The same of requests whose outcome the process knows. */
  private readonly known = new Map<string, number>()
  private readonly world: World
  private readonly records: Records

  constructor(world: World, records: Records) {
    this.world = world
    this.records = records
    world.storeEvents = {
      onApplied: (computer, change) => this.applied(computer, change),
      onAnswered: (computer, actor) => this.told(computer, actor)
    }
    world.onCommitted = (computer, address) => this.committed(computer, address)
    world.externalServices.onAttempt = (uri, { body }, computer) =>
      this.attempt(uri, body, computer)
    world.externalServices.onOutcome = (uri, { body }, computer) =>
      this.outcome(uri, body, computer)
  }

  /** The incarnation that has the claim of the shard. */
  private claimant(address: Address): string | undefined {
    const { value } = Effect.runSync(this.world.registry.inner.get(claimKey(shardOf(address))))
    if (value === undefined) return undefined
    // The nodes' `Claims` wrote this text.
    return (JSON.parse(value) as { readonly incarnation?: string }).incarnation
  }

  /** Whether the node of the commit has the claim of the shard. */
  private isOwners(computer: Computer, address: Address): boolean {
    const node = this.world.nodes.find((one) => one.computer === computer)
    return node !== undefined && this.claimant(address) === node.incarnation
  }

  private applied(computer: Computer, commit: StoredChange): void {
    const key = keyOf(commit.address)
    const mark = `${computer.name} ${key}`
    this.isOwners(computer, commit.address) ? this.strange.delete(mark) : this.strange.add(mark)
    if (commit.append.length > 0) {
      const all = this.appended.get(key) ?? []
      this.appended.set(key, all)
      for (const { n, value } of commit.append) all.push({ n, value, at: this.records.moment() })
    }
    for (const n of commit.remove) {
      const gone = this.removed.get(key) ?? new Map<number, number>()
      this.removed.set(key, gone.set(n, this.world.time.nowMs))
    }
    if (commit.address.kind !== "notification") return
    if (typeof commit.state === "string") this.scheduled(key, commit.state)
    this.stored(commit.address, computer)
  }

  /** Notes the results that a commit of this process has stored. */
  private stored(of: Address, computer: Computer): void {
    const state = storedNotification(this.world.store.inner, of)
    if (state?._tag !== "Queued") return
    const isOwners = this.claimant(of)?.startsWith(incarnationPrefix(computer)) === true
    for (const { attempts, to } of state.recipients) {
      const recipient = `${keyOf(of)} ${to}`
      if (this.results.get(recipient)?.attempts === attempts) continue
      this.results.set(recipient, { attempts, isOwners })
    }
  }

  /** An actor uses a stored commit: no other node may have owned its shard then. */
  private committed(computer: Computer, address: Address): void {
    const mark = `${computer.name} ${keyOf(address)}`
    this.untold.delete(mark)
    if (this.strange.has(mark)) {
      this.world.violate(`${computer.name} has committed ${keyOf(address)}, which is another's`)
    }
  }

  /** The store has told a node that a commit is stored: its actor hears that, whatever stalls. */
  private told(computer: Computer, address: Address): void {
    const { nodes, time } = this.world
    const node = nodes.find((one) => one.computer === computer)
    // Otherwise the outcome counts as indeterminate.
    if (node?.placement?.heldClaim(shardOf(address)) === undefined) return
    const mark = `${computer.name} ${keyOf(address)}`
    this.heard()
    this.untold.delete(mark)
    this.untold.set(mark, { computer, sinceMs: time.nowMs })
  }

  /** No actor waits longer for what the store has told its node. */
  private heard(): void {
    const { nowMs } = this.world.time
    for (const [mark, { computer, sinceMs }] of this.untold) {
      if (nowMs - sinceMs < TOLD_MS) return
      this.untold.delete(mark)
      if (!computer.alive || computer.pausedUntilMs > sinceMs) continue
      this.world.violate(`${mark} has not heard that its commit is stored`)
    }
  }

  /** The Retry-After of each answer with this status; 0 for failures and local deliveries. */
  private asked(key: string, to: string, code: number | undefined): ReadonlyArray<number> {
    const answers = this.world.externalServices.deliveries.filter((one) =>
      one.uri === to && one.code === code &&
      `notification/${notificationIdOf(markIn(one.body))}` === key
    )
    return answers.length === 0 ? [0] : answers.map(({ retryAfterMs }) => retryAfterMs)
  }

  /** Each wait is as long as the schedule requires, by the clock of the deciding node. */
  private scheduled(key: string, text: string): void {
    for (
      const { code, lastAtMs, nextAtMs, status, to, tries } of queuedOf(text)?.recipients ?? []
    ) {
      if (status !== "retry" || tries === 0 || lastAtMs === undefined) continue
      const waitMs = schedule[tries]
      if (waitMs === undefined || nextAtMs === undefined) {
        this.world.violate(`${key} tries ${to} once more after its last time`)
        continue
      }
      const leastMs = Math.floor(waitMs * (1 - jitterFraction))
      const mostMs = Math.ceil(waitMs * (1 + jitterFraction))
      const leftMs = nextAtMs - lastAtMs
      const isKept = this.asked(key, to, code).some((askedMs) =>
        leftMs >= Math.max(leastMs, askedMs) && leftMs <= Math.max(mostMs, askedMs)
      )
      if (!isKept) {
        this.world.violate(`${key} waits ${leftMs} ms after ${tries} tries of ${to}`)
      }
    }
  }

  /** Whether a client received the confirmation that the notification is deleted. */
  private isRemoved(id: string): boolean {
    return this.records.notification.some(({ input, outcome, output, resource }) =>
      resource === id && input.kind === "delete" && outcome === "ok" && output?._tag === "Done"
    )
  }

  /**
   * No attempt begins before its time, or after the end, on a node that owns the notification. No
   * process sends again a request whose outcome it knows.
   */
  private attempt(uri: string, body: string, computer: Computer): void {
    const { nodes, store: { inner }, time } = this.world
    const mark = uri.includes("//callback.") ? -1 : markIn(body)
    if (mark < 0) return
    const to = notificationAt(notificationIdOf(mark))
    const node = nodes.find((one) => one.computer === computer)
    if (node?.placement?.owns(shardOf(to)) !== true) return
    if (this.isRemoved(to.id)) return this.world.violate(`${uri} is tried after A8 (${mark})`)
    const queued = storedNotification(inner, to)
    if (queued?._tag !== "Queued") return
    const recipient = queued.recipients.find((one) => one.to === uri)
    if (recipient === undefined) return this.world.violate(`${uri} gets what is not for it`)
    const name = `${keyOf(to)} ${uri}`
    // The result was stored late, by another process: the owner may have loaded the actor before.
    if (this.results.get(name)?.isOwners === false) return
    const request = `${computer.name} ${name}`
    if (this.known.get(request) === recipient.attempts) {
      this.world.violate(`${computer.name} knows the outcome, and tries ${uri} again (${mark})`)
    }
    this.requested.set(request, recipient.attempts)
    if (hasEnded(recipient)) return this.world.violate(`${uri} is tried after its end (${mark})`)
    const earlyMs = (recipient.nextAtMs ?? 0) - time.wallMs(computer)
    const jumpedMs = time.nowMs - computer.jumpedAtMs
    if (earlyMs > 0 && jumpedMs > LETTER_MS) {
      this.world.violate(`${uri} is tried ${earlyMs} ms too early (${mark})`)
    }
  }

  private outcome(uri: string, body: string, { name }: Computer): void {
    const request = `${name} ${keyOf(notificationAt(notificationIdOf(markIn(body))))} ${uri}`
    const attempts = this.requested.get(request)
    if (attempts !== undefined) this.known.set(request, attempts)
  }
}
