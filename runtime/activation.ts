/**
 * One live actor: load -> decide -> group commit -> reply -> perform.
 *
 * A message is decided at once on the state in memory, which may be ahead of what is durable;
 * every reply, of a read too, waits for the commit of what it has seen. A conflict or a failed
 * write drops the state: the actor is loaded again and the waiting messages are decided anew.
 */
import { Exit } from "effect"
import { type AnyBehavior, isRefusal, type Tagged } from "./actor.ts"
import { type Address, keyOf, shardOf } from "./address.ts"
import type { AnyDecision } from "./cell.ts"
import type { CommitSource, KnownOutcome } from "./committer.ts"
import { brokeOff, hasDied, namedFailure, runWithin } from "./deadline.ts"
import { ActorDefect, StorageUnavailable, UnknownMessage } from "./errors.ts"
import type { AskFailure, StorageFailure } from "./errors.ts"
import { ActorImage } from "./image.ts"
import { Inbox } from "./inbox.ts"
import type { KindMetrics } from "./measures.ts"
import {
  changes,
  type FiredTimer,
  type PendingCommit,
  type PendingMessage,
  type ReplyCallback
} from "./pending.ts"
import { Pipeline } from "./pipeline.ts"
import type { Commit } from "./ports/storage.ts"
import { recover, type Recovered } from "./recover.ts"
import type { ActivationContext } from "./surroundings.ts"
import { ActorTimers } from "./wakes.ts"

export class Activation implements CommitSource {
  readonly address: Address
  readonly key: string
  readonly shard: number
  /** Whether a message came since the passivation sweep looked last. */
  used = true
  lastUsedMs = 0
  private readonly around: ActivationContext
  private readonly measures: KindMetrics
  private phase: "asleep" | "loading" | "live" | "stopped" = "asleep"
  private readonly image: ActorImage
  private readonly inbox: Inbox
  private readonly wakes: ActorTimers
  private readonly commits: Pipeline
  /** A decision or a round of replies is under way: what arrives meanwhile waits. */
  private busy = false
  private restartAfterMs: number | undefined = undefined
  private cancelReload: (() => void) | undefined = undefined

  constructor(
    address: Address,
    behaviour: AnyBehavior,
    around: ActivationContext,
    measures: KindMetrics,
    isNew = false
  ) {
    this.address = address
    this.key = keyOf(address)
    this.shard = shardOf(address)
    this.around = around
    this.measures = measures
    this.image = new ActorImage(behaviour, address)
    this.inbox = new Inbox(address, around)
    this.wakes = new ActorTimers(address, around)
    this.commits = new Pipeline(this, around.committer)
    // Nobody has addressed it before. Should there be one all the same, its commit is a conflict.
    if (isNew) this.awake(this.image.blank())
  }

  /** Messages not yet replied to. */
  get queued(): number {
    return this.inbox.unreplied
  }

  /** Whether nothing is under way, so that the actor may be put to sleep. */
  get idle(): boolean {
    return this.phase === "live" && this.inbox.unreplied === 0 && this.commits.empty &&
      this.restartAfterMs === undefined && !this.busy
  }

  /** Takes one message; `done` is called exactly once, maybe before this returns. */
  deliver(message: Tagged, done: ReplyCallback, due?: FiredTimer): void {
    this.used = true
    const entry = this.inbox.take(message, done, due)
    if (entry === undefined) return
    if (this.busy || this.inbox.length > 0 || this.held()) {
      this.inbox.push(entry)
      if (this.phase === "asleep") this.load()
      return
    }
    this.busy = true
    this.decide(entry)
    this.busy = false
    if (this.inbox.length > 0) this.drain()
  }

  /**
   * Ends the activation: what waits is answered with `failure`. What is decided already is still
   * committed, and answered as its commit turns out.
   */
  stop(failure: AskFailure | undefined): void {
    this.phase = "stopped"
    this.cancelReload?.()
    this.inbox.close(failure)
  }

  takeCommit(): Commit | undefined {
    const { image } = this
    const commit = this.commits.take()
    let state: string | undefined
    try {
      if (commit.writesState && !commit.vanishes) state = image.behaviour.encode(image.state)
    } catch (cause) {
      return this.unwritable(this.commits.landed(), cause)
    }
    const wake = this.wakes.toWrite(commit)
    const written = commit.toCommit(this.address, image.revision, state, wake)
    this.drain()
    return written
  }

  committed(outcome: KnownOutcome): void {
    const commit = this.commits.landed()
    if (outcome._tag === "Conflict") {
      const lost = new StorageUnavailable({ detail: outcome.conflict.message })
      return this.again(commit, lost, 0, false)
    }
    this.around.step?.("committed", this.address)
    this.image.revision = outcome.revision
    if (commit.vanishes) {
      this.image.recovered(this.image.blank())
      this.wakes.forget()
    }
    this.wakes.arm(commit)
    this.busy = true
    for (const entry of commit.held) this.inbox.answer(entry, undefined, entry.reply)
    this.around.step?.("replied", this.address)
    if (commit.actions !== undefined) this.perform(commit.actions)
    this.around.onChange(this.address, commit.vanishes ? 0 : commit.head)
    this.busy = false
    this.carryOn()
  }

  /** The commit failed; `unsure` when it may have been kept all the same. */
  commitFailed(failure: StorageFailure, unsure: boolean): void {
    this.again(this.commits.landed(), failure, this.around.limits.reloadDelayMs, unsure)
  }

  /** The state has no record text: who waits for it is told, and it is dropped. */
  private unwritable(commit: PendingCommit, cause: unknown): undefined {
    this.busy = true
    this.wakes.armLost(commit, false)
    for (const entry of commit.held) this.inbox.answer(entry, new ActorDefect({ key: this.key }))
    this.busy = false
    this.defect(cause)
  }

  private held(): boolean {
    return this.phase !== "live" || this.restartAfterMs !== undefined ||
      this.commits.blocked(this.around.limits.commitItemsMax)
  }

  private load(): void {
    const { around, image } = this
    this.phase = "loading"
    const read = () => recover(around.storage, image.behaviour, this.address)
    runWithin(around, read, around.limits.storageDeadlineMs, (exit) => {
      if (this.phase === "stopped") return
      if (Exit.isSuccess(exit)) return this.awake(exit.value)
      const failure = namedFailure(exit.cause)
      if (failure === undefined && hasDied(exit.cause)) return this.defect(exit.cause)
      const kept = this.inbox.onceMore(this.inbox.takeAll(), failure ?? brokeOff(), false)
      this.inbox.putFirst(kept)
      if (this.inbox.length > 0) return this.reload(around.limits.reloadDelayMs)
      this.stop(failure)
      around.onEnd(this)
    })
  }

  private awake(recovered: Recovered): void {
    this.image.recovered(recovered)
    this.wakes.forget()
    this.phase = "live"
    this.drain()
  }

  private decide(entry: PendingMessage): void {
    const nowMs = this.around.nowMs()
    this.measures.decisions++
    let decision: AnyDecision | undefined
    try {
      decision = this.image.decide(entry.message, nowMs, entry.due?.foreign?.hint)
    } catch (cause) {
      this.inbox.answer(entry, new ActorDefect({ key: this.key }))
      return this.defect(cause)
    }
    if (decision === undefined) {
      const detail = `${this.address.kind} takes no ${entry.message._tag}`
      return this.inbox.answer(entry, new UnknownMessage({ key: this.key, detail }))
    }
    if (isRefusal(decision.answer)) this.measures.refusals++
    this.carryOut(entry, decision, nowMs)
  }

  private carryOut(entry: PendingMessage, decision: AnyDecision, nowMs: number): void {
    // Behaviours hand back their own states and actions; only the table's types know them.
    if (decision.nextState !== undefined) this.image.state = decision.nextState as Tagged
    const actions = decision.actions as Array<Tagged> | undefined
    const clears = entry.due !== undefined && this.wakes.isOver(entry.due, decision, nowMs)
    entry.reply = decision.answer
    entry.writes = clears || changes(decision)
    if (entry.writes) return this.write(entry, decision, clears, actions)
    const seen = this.commits.latest
    this.wakes.hold(decision, seen)
    if (seen !== undefined) return seen.hold(entry, actions)
    this.inbox.answer(entry, undefined, decision.answer)
    if (actions !== undefined) this.perform(actions)
  }

  private write(
    entry: PendingMessage,
    decision: AnyDecision,
    clears: boolean,
    actions: ReadonlyArray<Tagged> | undefined
  ): void {
    const commit = this.commits.open(this.image.head)
    const first = this.image.head + 1
    commit.add(decision)
    this.image.head = commit.head
    this.wakes.decide(commit, decision, clears)
    commit.hold(entry, actions)
    this.around.step?.("decided", this.address)
    this.commits.join()
    try {
      if (decision.items !== undefined) this.image.remember(decision.items, first)
    } catch (cause) {
      this.defect(cause)
    }
  }

  private perform(actions: ReadonlyArray<Tagged>): void {
    this.around.effects.perform(this.image.behaviour, this.address, actions, (cause) => {
      // What is down already is not restarted once more for it.
      if (this.phase !== "live" || this.restartAfterMs !== undefined) {
        return this.around.onFault(this.address, cause)
      }
      this.defect(cause)
    })
  }

  /** After a commit: what was decided meanwhile is next, then a restart that was put off. */
  private carryOn(): void {
    this.commits.join()
    if (this.restartAfterMs !== undefined && this.commits.empty) this.reload(this.restartAfterMs)
    this.drain()
  }

  private drain(): void {
    if (this.busy) return
    this.busy = true
    while (this.inbox.length > 0 && !this.held()) {
      const entry = this.inbox.shift()
      if (entry !== undefined) this.decide(entry)
    }
    this.busy = false
  }

  /** The commit was lost: all that was decided since is dropped and decided anew, in order. */
  private again(lost: PendingCommit, failure: AskFailure, delayMs: number, unsure: boolean): void {
    const pending = this.commits.drop()
    if (this.phase !== "stopped") this.phase = "loading"
    this.wakes.armLost(lost, unsure)
    const kept = this.inbox.onceMore(lost.held, failure, unsure)
    if (pending !== undefined) {
      this.wakes.armLost(pending, false)
      kept.push(...this.inbox.onceMore(pending.held, failure, false))
    }
    this.measures.redecisions += kept.length
    this.inbox.putFirst(kept)
    this.reload(Math.max(delayMs, this.restartAfterMs ?? 0))
  }

  private reload(delayMs: number): void {
    this.restartAfterMs = undefined
    if (this.phase === "stopped") return
    this.phase = "loading"
    if (delayMs <= 0) return this.load()
    this.cancelReload = this.around.later(delayMs, () => this.phase === "stopped" || this.load())
  }

  /** A broken invariant: logged, and the actor starts anew from the store, or rests. */
  private defect(cause: unknown): void {
    if (this.phase === "stopped") return this.around.onFault(this.address, cause)
    const verdict = this.around.onDefect(this.address, cause)
    if (typeof verdict !== "number") {
      this.stop(verdict)
      return this.around.onEnd(this)
    }
    if (this.commits.empty) this.reload(verdict)
    else this.restartAfterMs = verdict
  }
}
