/** The invariants at the end of a run, once the cluster is idle. */
import { Effect } from "effect"
import { byResource, check, type HistoryOperation as Operation,
  type Model } from "../../runtime/testing/index.ts"
import { mailboxKind, notificationKind } from "../../actors/index.ts"
import { decodeItem, isRemoval, itemAtMs,
  localDeliveryIdRandom } from "../../actors/mailbox/log-item.ts"
import { derivedName } from "../../actors/notification/local-delivery.ts"
import type { NotificationState } from "../../actors/notification/protocol.ts"
import type { RegistrationState } from "../../actors/registration/protocol.ts"
import { type Address, address, keyOf } from "../../runtime/actor/address.ts"
import { mailbox, type MailboxInput, type MailboxOutput } from "../histories/models/mailbox.ts"
import { notification } from "../histories/models/notification.ts"
import { registration } from "../histories/models/registration.ts"
import { session } from "../histories/models/session.ts"
import { row } from "../histories/models/row.ts"
import { stored } from "../histories/models/stored.ts"
import { contentsHold } from "./contents.ts"
import type { Delivery } from "./external-services.ts"
import type { Invariants } from "./invariants.ts"
import { customersHold } from "./customers.ts"
import { keyedDepositsHold } from "./keyed-deposits.ts"
import { links, schedule } from "./nodes.ts"
import { markIn, notificationAt, storedNotification } from "./notifications.ts"
import type { Known } from "./operations.ts"
import type { Plan } from "./plan.ts"
import { faultsOf } from "./pushes.ts"
import type { Records } from "./records.ts"
import { registrationAt } from "./registrations.ts"
import { versioned } from "./versioned.ts"
import { leftOver } from "./volume.ts"
import { stateOf, type World } from "./world.ts"

/** A finished run. */
export interface Run {
  readonly plan: Plan
  readonly world: World
  readonly invariants: Invariants
  readonly records: Records
  readonly known: Known
}

type Queued = Extract<NotificationState, { readonly _tag: "Queued" }>

type Registered = Extract<RegistrationState, { readonly _tag: "Registered" }>

const stepsMax = 100_000

/** A process makes some hundred decisions in a run. */
const decisionsMax = 3_000

const queuedOf = (world: World, id: string): Queued | undefined => {
  const state = storedNotification(world.store.inner, notificationAt(id))
  return state?._tag === "Queued" ? state : undefined
}

const registeredOf = (world: World, id: string): Registered | undefined => {
  const state = stateOf<RegistrationState>(world, registrationAt(id))
  return state?._tag === "Registered" ? state : undefined
}

const mailboxOf = (id: string): Address => address(mailboxKind, id.slice(0, id.indexOf("=")))

/** The unfinished work; undefined if there is none. */
export const unfinishedWork = ({ known, plan, world }: Run): string | undefined => {
  for (const node of world.nodes) {
    if (!node.alive || node.isLeaving || node.system === undefined) {
      return `${node.computer.name} is not up`
    }
    if (node.computer.pausedUntilMs > world.time.nowMs) return `${node.computer.name} is paused`
  }
  const left = plan.waiting > 0 ? leftOver(world.store.inner) : undefined
  if (left !== undefined) return `the timer of ${left} has not fired`
  for (const id of new Set(known.notifications)) {
    const queued = queuedOf(world, id)
    if (queued !== undefined && queued.endedAtMs === undefined) return `${id} has not ended`
  }
  for (const id of known.listed.keys()) {
    const registered = registeredOf(world, id)
    if (registered === undefined || registered.status === "suspended") continue
    const isVerifying = registered.intent?.nextAtMs !== undefined
    if (isVerifying) return `${id} is not verified`
    const isGone = stateOf<{ _tag: string }>(world, mailboxOf(id))?._tag === "Destroyed"
    if (registered.status === "active" && isGone && !registered.mailboxGone) {
      return `${id} knows nothing of the mailbox's end`
    }
    // What was removed before the mailbox listed the registration is not in the log.
    const after = registered.cursor + 1
    const [next] = Effect.runSync(world.store.inner.read(mailboxOf(id), after, 1))
    if (registered.status === "active" && next !== undefined) {
      return `${id} has pushed up to ${registered.cursor}, and not ${next.n}`
    }
  }
  return undefined
}

const linearizable = <State, Input extends { readonly kind: string }, Output>(
  { world }: Run,
  name: string,
  model: Model<State, Input, Output>,
  operations: ReadonlyArray<Operation<Input, Output>>
): void => {
  for (const [resource, part] of byResource(operations)) {
    const verdict = check(model, part, stepsMax)
    if (verdict._tag === "Linearizable") continue
    const what = verdict._tag === "Broken" ? "is not linearizable" : "was not settled in time"
    world.violate(`${name} ${resource} ${what}: ${verdict.report}`)
  }
}

/** The reported head of a mailbox never decreases. */
const headsHold = ({ records: { heads }, world }: Run): void => {
  const latest = new Map<string, number>()
  // Starts and ends, in their order.
  const moments = heads.flatMap((one) => [
    { at: one.start, one, ends: false },
    { at: one.end, one, ends: true }
  ]).sort((a, b) => a.at - b.at)
  const atStart = new Map<object, number>()
  for (const { ends, one } of moments) {
    const known = latest.get(one.resource) ?? 0
    if (!ends) atStart.set(one, known)
    else {
      const least = one.isRepeated ? 0 : atStart.get(one) ?? 0
      if (one.head < least) {
        world.violate(`${one.resource} was said to go to ${one.head}, and before to ${least}`)
      }
      latest.set(one.resource, Math.max(known, one.head))
    }
  }
}

/** Logs of mailboxes: times never decrease, and no document occurs twice. */
const logsHold = ({ invariants, world }: Run): void => {
  for (const [key, all] of invariants.appended) {
    if (!key.startsWith(`${mailboxKind}/`)) continue
    let lastMs = 0
    const standing = new Set<string>()
    for (const { n, value } of all) {
      const atMs = itemAtMs(value)
      if (atMs < lastMs) world.violate(`${key} has item ${n} before the one before it`)
      lastMs = atMs
      if (isRemoval(value) || invariants.removed.get(key)?.has(n) === true) continue
      const { digest, fragment } = decodeItem(value)
      // Each document has a unique content: another digest does not make it another document.
      for (const what of [digest, fragment]) {
        if (standing.has(what)) world.violate(`${key} has ${what} twice`)
        standing.add(what)
      }
    }
  }
}

/** A local delivery is stored once, also when a reader has removed it before it is repeated. */
const relaysHold = ({ invariants: { appended }, world }: Run): void => {
  for (const [key, items] of appended) {
    if (!key.startsWith(`${mailboxKind}/`)) continue
    const relayed = items.flatMap(({ value }) => {
      const { fragment } = isRemoval(value) ? { fragment: "" } : decodeItem(value)
      return markIn(fragment) < 0 ? [] : [fragment]
    })
    for (const [at, fragment] of relayed.entries()) {
      if (relayed.indexOf(fragment) < at) world.violate(`${key} has got ${fragment} again`)
    }
  }
}

/** The requests of each recipient, by number of the notification and URI. */
const sentTo = (deliveries: ReadonlyArray<Delivery>): ReadonlyMap<string, Array<Delivery>> => {
  const sent = new Map<string, Array<Delivery>>()
  for (const delivery of deliveries) {
    const mark = markIn(delivery.body)
    if (mark < 0 || delivery.uri.includes("//callback.")) continue
    const key = `${mark} ${delivery.uri}`
    const known = sent.get(key)
    if (known === undefined) sent.set(key, [delivery])
    else known.push(delivery)
  }
  return sent
}

const recipientHolds = (
  { known, invariants, world }: Run,
  id: string,
  { code, status, to, tries }: Queued["recipients"][number],
  sent: ReadonlyArray<Delivery>
): void => {
  const name = links.mailboxOf(to)?.name
  const isRefused = code !== undefined && code >= 400 && code < 500 && code !== 429 && code !== 408
  if (status === "failed" && !isRefused && tries < schedule.length) {
    world.violate(`${id} gave ${to} up after ${tries} tries (${code})`)
  }
  if (status !== "success") return
  if (name === undefined) {
    if (!sent.some((one) => one.code >= 200 && one.code < 300)) {
      world.violate(`${id} says that ${to} has it, which never said so`)
    }
    return
  }
  // An item that the same commit stores and removes is never visible.
  if (known.destroyed.has(name.replace("-", "/"))) return
  const idRandom = localDeliveryIdRandom(derivedName("item", id, to))
  const items = invariants.appended.get(`${mailboxKind}/${name}`) ?? []
  if (!items.some(({ value }) => !isRemoval(value) && decodeItem(value).idRandom === idRandom)) {
    world.violate(`${id} says that ${to} has it, which never got it`)
  }
}

/** Each accepted notification has the status that its recipients' answers imply. */
const notificationsHold = (run: Run): void => {
  const { known, records, world } = run
  const sent = sentTo(world.externalServices.deliveries)
  const keys = new Map<string, string>()
  for (const [to, deliveries] of sent) {
    for (const { headers } of deliveries) {
      const key = headers["Idempotency-Key"] ?? ""
      const other = keys.get(key) ?? to
      if (key === "" || other !== to) world.violate(`${to} and ${other} were sent ${key}`)
      keys.set(key, to)
    }
    if (new Set(deliveries.map(({ headers }) => headers["Idempotency-Key"])).size > 1) {
      world.violate(`${to} was sent under several keys`)
    }
  }
  for (const id of new Set(known.notifications)) {
    const own = records.notification.filter(({ resource }) => resource === id)
    const isAccepted = own.some(({ input, outcome }) => input.kind === "queue" && outcome === "ok")
    const state = storedNotification(world.store.inner, notificationAt(id))
    if (isAccepted && state === undefined) world.violate(`${notificationKind} ${id} is lost`)
    if (state?._tag !== "Queued") continue
    const mark = id.slice(id.indexOf("=") + 1)
    for (const recipient of state.recipients) {
      recipientHolds(run, id, recipient, sent.get(`${mark} ${recipient.to}`) ?? [])
    }
  }
}

const pushesHold = ({ known, invariants, world }: Run): void => {
  for (const [id, { callback, cursor }] of known.registrations) {
    const key = keyOf(mailboxOf(id))
    const name = mailboxOf(id).id.replace("-", "/")
    const registered = registeredOf(world, id)
    const faults = faultsOf({
      cursor,
      echoedMs: world.externalServices.echoes.get(callback),
      deliveries: world.externalServices.deliveries.filter(({ uri }) => uri === callback),
      appended: invariants.appended.get(key) ?? [],
      removed: invariants.removed.get(key) ?? new Map(),
      // A registration that is removed with its mailbox is not checked further.
      listedMs: known.destroyed.has(name) ? undefined : known.listed.get(id)
    }, registered?.status === "active" && known.listed.has(id))
    for (const fault of faults) world.violate(`${id}: ${fault}`)
  }
}

/**
 * The histories of mailboxes with the moments of their commits: relays are deposits too, and the
 * store determines the outcome of unanswered deposits.
 */
const mailboxOperations = (
  { records, invariants }: Run
): ReadonlyArray<Operation<MailboxInput, MailboxOutput>> => {
  const all = records.mailbox.filter(({ input, outcome }) =>
    input.kind !== "deposit" || outcome !== "info"
  )
  for (const [key, items] of invariants.appended) {
    if (!key.startsWith(`${mailboxKind}/`)) continue
    const resource = key.slice(key.indexOf("/") + 1).replace("-", "/")
    for (const { at, n, value } of items) {
      if (isRemoval(value)) continue
      const input = { kind: "deposit", id: decodeItem(value).digest } as const
      const output = { _tag: "Deposited", place: n } as const
      all.push({ client: "store", resource, input, output, start: at, end: at, outcome: "ok" })
    }
  }
  return all
}

/** A registration that its mailbox does not list must end. */
const noteEnds = ({ known, records }: Run): void => {
  for (const resource of known.registrations.keys()) {
    const mailbox = mailboxOf(resource).id.replace("-", "/")
    if (known.listed.has(resource) && !known.destroyed.has(mailbox)) continue
    const end = { client: "itself", resource, start: 0, end: 0, outcome: "info" as const }
    records.registration.push({ ...end, input: { kind: "delete" } })
  }
}

/** No actor decides repeatedly without messages, as by a timer without effect. */
const nothingSpins = ({ world }: Run): void => {
  for (const { computer, system } of world.processes) {
    for (const [kind, { decisions }] of system?.snapshot().metrics.kinds ?? []) {
      if (decisions > decisionsMax) {
        world.violate(`${computer.name} has decided ${decisions} times for kind ${kind}`)
      }
    }
  }
}

/** Checks all invariants of a run; adds violations to the world. */
export const checkRun = (run: Run): void => {
  const { records } = run
  const left = unfinishedWork(run)
  if (left !== undefined) run.world.violate(`it does not come to rest: ${left}`)
  if (run.plan.isCalm) {
    for (const why of records.unanswered) {
      run.world.violate(`${why} was answered, though nodes came and went in good order`)
    }
  }
  noteEnds(run)
  linearizable(run, "mailbox", mailbox, mailboxOperations(run))
  linearizable(run, "notification", notification, records.notification)
  linearizable(run, "registration", registration, records.registration)
  linearizable(run, "session", session, records.session)
  linearizable(run, "content", stored, records.content)
  linearizable(run, "customer", row, records.customer)
  linearizable(run, "versioned", versioned, records.versioned)
  nothingSpins(run)
  headsHold(run)
  logsHold(run)
  relaysHold(run)
  notificationsHold(run)
  pushesHold(run)
  for (const what of records.wrong) run.world.violate(what)
  contentsHold(run.world)
  customersHold(run.world)
  keyedDepositsHold(run.world, run.invariants, records, run.plan.operations)
}
