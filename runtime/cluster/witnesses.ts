/**
 * How a dead node loses its membership within seconds, and how a living one knows that it has not.
 *
 * Each node names up to `witnessesMax` other nodes as its witnesses in its membership, and pings
 * them. A majority of them may remove the membership of a node that is silent. The argument that a
 * node and the next owner of its shards never serve at the same time is in `docs/takeover.md`:
 *
 * 1. A witness that answers a ping agrees to no removal of that incarnation for `removeAfterMs`. A
 *    witness that has agreed does not answer that incarnation again, unless it has seen that the
 *    membership was written since: then the removal fails, as it compares the revision.
 * 2. A removal needs the agreement of a majority of the witnesses that the membership names, and
 *    compares the revision of that membership.
 * 3. A node serves only while so many of its witnesses have answered a ping of the last `answerMs`
 *    that the others are no majority. While a write of the membership is under way, this holds for
 *    the witnesses before and after the write.
 *
 * So one witness of each majority has answered a short time ago, and does not agree. `answerMs` is
 * shorter than `removeAfterMs` by more than clocks differ. A membership without witnesses ends only
 * `ttlMs` after its last refresh.
 *
 * In this file: the witnesses of this node, and then this node as a witness of others.
 */
import { Exit } from "effect"
import { runWithin } from "../clock.ts"
import type { PlacementLimits } from "../limits.ts"
import type { PingsApi, RegistryApi } from "../ports/index.ts"
import { type ClusterClock, type ClusterMember, memberKey, readMember } from "./member-entry.ts"
import type { Members, ObservedMember } from "./members.ts"
import { ranked } from "./rendezvous.ts"

/** How many of this many witnesses are a majority, which may remove a membership. */
const majorityOf = (witnesses: number): number => Math.floor(witnesses / 2) + 1

const pingText = (incarnation: string): string => `ping ${incarnation}`

/** `revision` of the membership that is to be removed. */
const removalText = (incarnation: string, revision: number): string =>
  `remove ${incarnation} ${revision}`

/** An answer: the witness counts as having heard of the incarnation, or has agreed to remove it. */
const alive = "alive"

const agreed = "agreed"

/** The ping by which a process learns that its own pings come through. */
const echoText = "echo"

/** What this node knows of one of its witnesses, for its present incarnation. */
interface Contact {
  /** When the last answered ping was sent. */
  answeredMs: number
  /** Pings in a row that were not answered. */
  failures: number
  /** The witness is not chosen again before this time. */
  avoidedUntilMs: number
  pinging: boolean
}

export interface WitnessLeaseOptions {
  readonly node: string
  readonly pings: PingsApi
  readonly members: Members
  readonly time: ClusterClock
  readonly limits: PlacementLimits
  /** Answers have come: the lease may last longer, or may be valid again. */
  readonly onAnswer: () => void
  /** The membership should name other witnesses. */
  readonly onReplace: () => void
}

/** The witnesses of this node: which ones its membership names, and how long it may serve. */
export class WitnessLease {
  /** Until when no majority of the witnesses can agree to a removal, by the node's own clock. */
  untilMs = Number.NEGATIVE_INFINITY
  private readonly options: WitnessLeaseOptions
  private incarnation = ""
  private contacts = new Map<string, Contact>()
  /** The witnesses that the stored membership may name: those of its last writes, by their text. */
  private stored = new Map<string, ReadonlyArray<string>>()
  private cancelNext: (() => void) | undefined = undefined
  private ended = false

  constructor(options: WitnessLeaseOptions) {
    this.options = options
  }

  /** The node has another incarnation, of which no membership is stored yet. */
  begin(incarnation: string): void {
    this.incarnation = incarnation
    this.contacts = new Map()
    this.stored = new Map()
    this.untilMs = Number.NEGATIVE_INFINITY
  }

  /** A membership that names these witnesses is being written: it may be stored from now on. */
  writing(witnesses: ReadonlyArray<string>): void {
    this.stored.set(witnesses.join(" "), witnesses)
    this.update()
    this.ping()
  }

  /** That membership is stored, and no earlier write can be stored any more. */
  written(witnesses: ReadonlyArray<string>): void {
    this.stored = new Map([[witnesses.join(" "), witnesses]])
    this.update()
  }

  /**
   * The witnesses that the next membership should name: those that answer. One that has not
   * answered yet would end the lease.
   */
  choose(): ReadonlyArray<string> {
    const { limits: { answerMs, pingMs }, time } = this.options
    const sinceMs = time.nowMs() - (answerMs - pingMs) / 2
    return this.candidates().filter((witness) =>
      (this.contacts.get(witness)?.answeredMs ?? Number.NEGATIVE_INFINITY) > sinceMs
    )
  }

  /** The witnesses that this node would name, were they to answer. */
  private candidates(): ReadonlyArray<string> {
    const { limits: { witnessesMax }, members, node, time } = this.options
    const nowMs = time.nowMs()
    const names = new Map<string, string>()
    for (const { leaving, node: other, witness } of members.observed()) {
      if (other === node || leaving || witness === undefined) continue
      if ((this.contacts.get(witness)?.avoidedUntilMs ?? 0) <= nowMs) names.set(other, witness)
    }
    return ranked(node, names.keys()).slice(0, witnessesMax).flatMap((other) =>
      names.get(other) ?? []
    )
  }

  /** Pings the witnesses and those that may become some: now, and then at an interval. */
  ping(): void {
    if (this.ended) return
    this.cancelNext?.()
    this.forgetContacts()
    for (const witness of new Set([...this.named(), ...this.candidates()])) this.pingOne(witness)
    const { limits, time } = this.options
    this.cancelNext = time.later(limits.pingMs, () => this.ping())
  }

  /** Forgets the processes that are no members any more: each start of a node is another one. */
  private forgetContacts(): void {
    const present = new Set(this.named())
    for (const { witness } of this.options.members.observed()) if (witness) present.add(witness)
    for (const witness of this.contacts.keys()) {
      if (!present.has(witness)) this.contacts.delete(witness)
    }
  }

  stop(): void {
    this.ended = true
    this.cancelNext?.()
  }

  /** The witnesses that the stored membership may name. */
  private named(): ReadonlyArray<string> {
    return [...this.stored.values()].flat()
  }

  private contactOf(witness: string): Contact {
    const known = this.contacts.get(witness)
    if (known !== undefined) return known
    const contact = {
      answeredMs: Number.NEGATIVE_INFINITY,
      failures: 0,
      avoidedUntilMs: Number.NEGATIVE_INFINITY,
      pinging: false
    }
    this.contacts.set(witness, contact)
    return contact
  }

  private pingOne(witness: string): void {
    const contact = this.contactOf(witness)
    if (contact.pinging) return
    contact.pinging = true
    const { limits, pings, time } = this.options
    const { incarnation } = this
    const sentMs = time.nowMs()
    const send = () => pings.send(witness, pingText(incarnation))
    runWithin(time, send, limits.pingDeadlineMs, (exit) => {
      contact.pinging = false
      if (this.ended || incarnation !== this.incarnation) return
      if (Exit.isFailure(exit)) contact.failures++
      else if (exit.value === alive) return this.answered(witness, contact, sentMs)
      // It has agreed to a removal, and does not answer this incarnation while that may happen.
      else contact.answeredMs = Number.NEGATIVE_INFINITY
      const isSilent = Exit.isSuccess(exit) || contact.failures >= limits.pingFailuresMax
      if (isSilent) this.avoid(witness, contact)
    })
  }

  private answered(witness: string, contact: Contact, sentMs: number): void {
    contact.failures = 0
    contact.answeredMs = Math.max(contact.answeredMs, sentMs)
    this.update()
    this.options.onAnswer()
    if (!this.named().includes(witness)) this.options.onReplace()
  }

  /** The membership should not name this witness for a while. */
  private avoid(witness: string, contact: Contact): void {
    const { limits: { witnessRetryMs }, time } = this.options
    const nowMs = time.nowMs()
    const wasAvoided = contact.avoidedUntilMs > nowMs
    contact.failures = 0
    contact.avoidedUntilMs = nowMs + witnessRetryMs
    this.update()
    if (!wasAvoided && this.named().includes(witness)) this.options.onReplace()
  }

  private update(): void {
    const untilMs = [...this.stored.values()].map((witnesses) => this.untilFor(witnesses))
    this.untilMs = untilMs.length === 0 ? Number.NEGATIVE_INFINITY : Math.min(...untilMs)
  }

  /** The witnesses other than those that have answered until then are no majority. */
  private untilFor(witnesses: ReadonlyArray<string>): number {
    if (witnesses.length === 0) return Number.POSITIVE_INFINITY
    // The others are no majority: half of them, rounded up.
    const needed = Math.ceil(witnesses.length / 2)
    const answeredMs = witnesses.map((witness) =>
      this.contacts.get(witness)?.answeredMs ?? Number.NEGATIVE_INFINITY
    ).sort((one, other) => other - one)
    return (answeredMs[needed - 1] ?? Number.NEGATIVE_INFINITY) + this.options.limits.answerMs
  }
}

export interface WitnessOptions {
  readonly node: string
  /** The name under which this process answers pings, new at each start. */
  readonly witness: string
  readonly pings: PingsApi
  readonly registry: RegistryApi
  readonly members: Members
  readonly time: ClusterClock
  readonly limits: PlacementLimits
  /** This process has removed the membership of a node. */
  readonly onRemoved: (node: string) => void
}

/** An agreement to the removal of an incarnation. */
interface Agreement {
  readonly atMs: number
  /** Of the membership, at the most: a removal compares it. */
  readonly revision: number
}

/** This process as a witness of other nodes. */
export class Witness {
  private readonly options: WitnessOptions
  /** By incarnation: when it last pinged this process, on the clock of {@link attentionMs}. */
  private readonly heard = new Map<string, number>()
  private readonly agreements = new Map<string, Agreement>()
  private readonly removing = new Set<string>()
  /**
   * Time during which this process received its own pings. A process that stood still, or was not
   * connected, must not take its own silence for that of others.
   */
  private attentionMs = 0
  private checkedMs: number
  private checking = false
  private cancelNext: (() => void) | undefined = undefined

  constructor(options: WitnessOptions) {
    this.options = options
    this.checkedMs = options.time.nowMs()
  }

  /** Answers a ping, or the request of another witness to agree to a removal. */
  readonly answer = (text: string): string => {
    const [verb, incarnation = "", revision = ""] = text.split(" ")
    if (verb === "remove") return this.agree(incarnation, Number(revision)) ? agreed : alive
    if (this.agreements.has(incarnation)) return agreed
    // Not less than the clock's time since the last check: that much is added at the next one.
    if (verb === "ping") this.heard.set(incarnation, this.attentionMs + this.elapsedMs())
    return alive
  }

  /** Time since the last check that may still count as attention. */
  private elapsedMs(): number {
    const { limits: { witnessCheckMs }, time } = this.options
    return Math.min(time.nowMs() - this.checkedMs, 2 * witnessCheckMs)
  }

  /** Checks at an interval whether a node is silent whose witness this process is. */
  start(): void {
    const { limits: { witnessCheckMs }, time } = this.options
    this.cancelNext = time.later(witnessCheckMs, () => {
      this.listen()
      this.start()
    })
  }

  stop(): void {
    this.cancelNext?.()
  }

  /** Pings itself; where that is answered, the time since the last such ping counts. */
  private listen(): void {
    if (this.checking) return
    this.checking = true
    const { limits, pings, time, witness } = this.options
    runWithin(time, () => pings.send(witness, echoText), limits.pingDeadlineMs, (exit) => {
      this.checking = false
      const elapsedMs = this.elapsedMs()
      this.checkedMs = time.nowMs()
      if (Exit.isFailure(exit)) return
      this.attentionMs += elapsedMs
      this.check(this.checkedMs)
    })
  }

  private check(nowMs: number): void {
    const { members, node, witness } = this.options
    const listed = new Set<string>()
    for (const member of members.observed()) {
      if (member.node === node || !member.witnesses.includes(witness)) continue
      listed.add(member.incarnation)
      this.forgetAgreement(member)
      // It may ping from now on.
      if (!this.heard.has(member.incarnation)) this.heard.set(member.incarnation, this.attentionMs)
      if (this.isSilent(member.incarnation)) this.proposeRemoval(member)
    }
    this.forget(listed, nowMs)
  }

  private isSilent(incarnation: string): boolean {
    const heardMs = this.heard.get(incarnation)
    const { removeAfterMs } = this.options.limits
    return heardMs !== undefined && this.attentionMs - heardMs > removeAfterMs
  }

  /** Agrees to the removal of an incarnation if it is silent. */
  private agree(incarnation: string, revision: number): boolean {
    const known = this.agreements.get(incarnation)
    if (known === undefined && !this.isSilent(incarnation)) return false
    const last = Math.max(known?.revision ?? 0, revision)
    this.agreements.set(incarnation, { atMs: this.options.time.nowMs(), revision: last })
    return true
  }

  /** The node has written its membership since the agreement: no removal can use that any more. */
  private forgetAgreement({ incarnation, revision }: ObservedMember): void {
    const agreement = this.agreements.get(incarnation)
    if (agreement === undefined || revision <= agreement.revision) return
    this.agreements.delete(incarnation)
    this.heard.set(incarnation, this.attentionMs)
  }

  /** Forgets incarnations that are no members, and agreements that nobody can use any more. */
  private forget(listed: ReadonlySet<string>, nowMs: number): void {
    const { ttlMs } = this.options.limits
    for (const [incarnation, heardMs] of this.heard) {
      const isOver = this.attentionMs - heardMs > 10 * ttlMs
      if (isOver && !listed.has(incarnation)) this.heard.delete(incarnation)
    }
    for (const [incarnation, { atMs }] of this.agreements) {
      if (nowMs - atMs > 10 * ttlMs) this.agreements.delete(incarnation)
    }
  }

  private proposeRemoval({ incarnation, node }: ClusterMember): void {
    if (this.removing.has(incarnation)) return
    this.removing.add(incarnation)
    void this.remove(node, incarnation).finally(() => this.removing.delete(incarnation))
  }

  /** Removes the membership if a majority of the witnesses that it names agrees. */
  private async remove(node: string, incarnation: string): Promise<void> {
    const { limits: { callDeadlineMs }, registry, witness } = this.options
    const read = await this.call(() => registry.get(memberKey(node)), callDeadlineMs)
    if (Exit.isFailure(read)) return
    const member = readMember(node, read.value)
    if (member?.incarnation !== incarnation || !member.witnesses.includes(witness)) return
    const { revision } = read.value
    const others = member.witnesses.filter((name) => name !== witness)
    const text = removalText(incarnation, revision)
    const answers = await Promise.all(others.map((name) => this.requestAgreement(name, text)))
    const agreements = 1 + answers.filter((isAgreed) => isAgreed).length
    if (agreements < majorityOf(member.witnesses.length)) return
    if (!this.agree(incarnation, revision)) return
    const remove = () => registry.remove(memberKey(node), revision)
    if (Exit.isSuccess(await this.call(remove, callDeadlineMs))) this.options.onRemoved(node)
  }

  private async requestAgreement(witness: string, text: string): Promise<boolean> {
    const { limits: { pingDeadlineMs }, pings } = this.options
    const exit = await this.call(() => pings.send(witness, text), pingDeadlineMs)
    return Exit.isSuccess(exit) && exit.value === agreed
  }

  private call<A, E>(
    make: Parameters<typeof runWithin<A, E>>[1],
    deadlineMs: number
  ): Promise<Exit.Exit<A, E>> {
    return new Promise((resolve) => runWithin(this.options.time, make, deadlineMs, resolve))
  }
}
