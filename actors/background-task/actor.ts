/** The background task bound to the runtime: what it fetches, reports and copies. */
import { Effect, type Semaphore } from "effect"
import { type Address, address, type AskFailure, type Behavior, isRefusal, type Peers,
  type StorageFailure } from "../../runtime/index.ts"
import { backgroundTaskAttemptMaxMs, fetchBytesPerMailboxMax,
  fetchBytesPerSenderMax } from "../limits.ts"
import { askMailbox, backgroundTaskKind, decodeItem, isRemoval, mailboxKind, type OwnerSettings,
  type StoredNotification } from "../mailbox/index.ts"
import { deferredOutcome, type DeliveryOutcome } from "../outbound/index.ts"
import { askerOf, codecsOf } from "../schemas.ts"
import { openItems } from "../sealed-fragment.ts"
import { admitFetch, admitReceipt, boundsOf, makeRequestHistory,
  type RequestHistory } from "./admission.ts"
import { listCopy, newCopy, removeCopy, removeInlined, storeCopy } from "./content-copy.ts"
import { backgroundTaskTable } from "./decide.ts"
import { accessOf, fetchContent, type FetchResources, memoryDeferred, passwordChecks, sendReceipt,
  type TaskInput } from "./fetch-and-receipt.ts"
import { FetchBudget, type FetchHolder, FetchReservation } from "./fetch-budget.ts"
import { type BackgroundTaskAction, type BackgroundTaskDependencies, BackgroundTaskMessage,
  type BackgroundTaskReply, BackgroundTaskState, targetOf, type TaskTarget } from "./protocol.ts"

/** The notification and its mailbox's settings; undefined if either is gone. */
const readNotification = Effect.fnUntraced(function*(
  { keyring }: BackgroundTaskDependencies,
  peers: Peers,
  { mailbox, n }: TaskTarget
) {
  const reply = yield* askMailbox(peers, mailbox, { _tag: "Describe", reader: {} })
  if (isRefusal(reply) || reply._tag !== "Described") return undefined
  const to = address(mailboxKind, mailbox)
  const [item] = openItems(keyring, to, yield* peers.read(to, n, 1))
  if (item?.n !== n || isRemoval(item.value)) return undefined
  const { owner, settings } = reply.view
  return { settings, owner, notification: decodeItem(item.value) }
})

const isWanted = (settings: OwnerSettings, kind: RequestKind): boolean =>
  kind === "fetch" ? settings.fetch === "eager" : settings.receipts === kind

/** The kinds of tasks that make requests. */
type RequestKind = Exclude<TaskTarget["kind"], "inlined">

const obsolete: BackgroundTaskMessage = { _tag: "Obsolete" }

const attempted = (outcome: DeliveryOutcome, random: number): BackgroundTaskMessage => ({
  _tag: "Attempted",
  outcome,
  random
})

const askBackgroundTask = askerOf<BackgroundTaskMessage, BackgroundTaskReply>(backgroundTaskKind)

/** What the tasks of a node share. */
interface NodeResources {
  /** Bounds the bytes of all fetches. */
  readonly memory: FetchBudget
  readonly passwords: Semaphore.Semaphore
  readonly history: RequestHistory
  /** The ids of tasks with a running attempt. */
  readonly running: Set<string>
}

/**
 * The mailbox and the sender of a fetch: each may hold a part of the memory. Where the sender is
 * not known, as of a signed webhook, all of the mailbox are one: they leave room for the others.
 */
const holdersOf = (
  mailbox: string,
  { account, network }: StoredNotification
): ReadonlyArray<FetchHolder> => {
  const senders = [
    ...account === undefined ? [] : [`account ${account}`],
    ...network === undefined ? [] : [`network ${network}`]
  ]
  if (senders.length === 0) senders.push(`unknown sender to ${mailbox}`)
  return [
    { name: `mailbox ${mailbox}`, bytesMax: fetchBytesPerMailboxMax },
    ...senders.map((name) => ({ name, bytesMax: fetchBytesPerSenderMax }))
  ]
}

/** Finds the content that came with the notification. */
const findInlined = Effect.fnUntraced(function*(
  deps: BackgroundTaskDependencies,
  peers: Peers,
  target: TaskTarget
) {
  const { documents, links } = deps
  // If the notification is gone by now, the content finds that out itself.
  const found = yield* readNotification(deps, peers, target)
  if (found === undefined) return obsolete
  const { fragment, idRandom } = found.notification
  const contentId = links.contentOf(documents.pointerOf(fragment)?.url ?? "")
  if (contentId === undefined) return obsolete
  const message: BackgroundTaskMessage = { _tag: "InlinedFound", copy: { contentId, idRandom } }
  return message
})

/** Fetches the content and stores a copy; its bytes count until both have ended. */
const fetchAndStore = Effect.fnUntraced(function*(
  deps: BackgroundTaskDependencies,
  peers: Peers,
  resources: FetchResources & { readonly memory: FetchReservation },
  self: Address,
  input: TaskInput,
  owner: string
): Effect.fn.Return<DeliveryOutcome | undefined, AskFailure | StorageFailure> {
  const outcome = yield* fetchContent(deps, peers, resources, input)
  if (outcome._tag !== "Fetched") return outcome
  // An earlier attempt may have named the copy.
  const named = yield* askBackgroundTask(peers, self.id, { _tag: "CopyNamed", copy: newCopy() })
  if (isRefusal(named)) return undefined
  const access = { owner, ...accessOf(input.pointer) }
  return yield* storeCopy(deps, peers, named.copy, access, outcome.fetched)
}, (effect, _deps, _peers, { memory }) => Effect.ensuring(effect, Effect.sync(() => memory.end())))

/** Fetches the content or sends a receipt; with a `problem`, sends a receipt of that. */
const attempt = Effect.fnUntraced(function*(
  deps: BackgroundTaskDependencies,
  peers: Peers,
  { history, memory, passwords }: NodeResources,
  self: Address,
  problem: string | undefined
) {
  const { documents, links } = deps
  const target = targetOf(self)
  if (target.kind === "inlined") return yield* findInlined(deps, peers, target)
  const found = yield* readNotification(deps, peers, target)
  if (found === undefined) return obsolete
  const { notification, owner, settings } = found
  if (problem === undefined && !isWanted(settings, target.kind)) return obsolete
  const pointer = documents.pointerOf(notification.fragment)
  if (pointer === undefined || pointer.url === "") return obsolete
  const bounds = boundsOf(history, notification, target.mailbox)
  const isReceipt = problem !== undefined || target.kind !== "fetch"
  const reservation = new FetchReservation(memory, holdersOf(target.mailbox, notification))
  const random = deps.random()
  // Before admission: an attempt that makes no request takes nothing of its sender's budget.
  if (!isReceipt && !reservation.hasRoom) return attempted(yield* memoryDeferred, random)
  const admission = yield* (isReceipt ? admitReceipt : admitFetch)(
    deps,
    history,
    notification,
    pointer,
    bounds
  )
  if (admission === "never") return obsolete
  if (admission !== "admitted") return attempted(admission, random)
  const mailbox = links.mailbox(target.mailbox)
  const { account = owner, network } = notification
  const guesser = network === undefined ? `account ${account}` : `network ${network}`
  const input: TaskInput = {
    pointer,
    mailbox,
    settings,
    key: notification.idRandom,
    bounds,
    guesser
  }
  if (isReceipt) {
    const status = target.kind === "fetch" ? "problem" : target.kind
    return attempted(yield* sendReceipt(deps, peers, input, status, problem), random)
  }
  const outcome = yield* fetchAndStore(
    deps,
    peers,
    { memory: reservation, passwords },
    self,
    input,
    owner
  )
  return outcome === undefined ? undefined : attempted(outcome, random)
})

/**
 * Makes an attempt, unless one of the task is running: an actor that was loaded again does not know
 * of it, and the timer fires again while it is slow. The running attempt reports the outcome.
 */
const attemptOnce = (
  deps: BackgroundTaskDependencies,
  peers: Peers,
  resources: NodeResources,
  self: Address,
  problem: string | undefined
): Effect.Effect<BackgroundTaskMessage | undefined> => {
  const { running } = resources
  const deferred = Effect.map(deferredOutcome, (outcome) => attempted(outcome, deps.random()))
  const attempting = attempt(deps, peers, resources, self, problem).pipe(
    // A call that never ends would keep the attempt running, so that none begins again.
    Effect.timeoutOrElse({ duration: backgroundTaskAttemptMaxMs, orElse: () => deferred }),
    // A store or actor is unavailable: nothing is counted, and the attempt is repeated soon.
    Effect.catch(() => deferred)
  )
  return Effect.acquireUseRelease(
    Effect.sync(() => {
      if (running.has(self.id)) return false
      running.add(self.id)
      return true
    }),
    (begins) => begins ? attempting : Effect.succeed(undefined),
    (begins) => Effect.sync(() => void (begins && running.delete(self.id)))
  )
}

const performOnCopy = (
  deps: BackgroundTaskDependencies,
  peers: Peers,
  target: TaskTarget,
  action: Exclude<BackgroundTaskAction, { readonly _tag: "Attempt" }>
): Effect.Effect<BackgroundTaskMessage, AskFailure | StorageFailure> => {
  switch (action._tag) {
    case "ListCopy":
      return Effect.as(listCopy(deps, peers, target, action.copy), { _tag: "CopyListed" })
    case "CheckNotification":
      return Effect.map(
        readNotification(deps, peers, target),
        (found) => ({
          _tag: "NotificationChecked",
          check: action.check,
          exists: found !== undefined
        })
      )
    case "RemoveCopy": {
      const { contentId, idRandom } = action.copy
      const removing = idRandom === undefined
        ? removeCopy(deps, peers, target, action.copy)
        : removeInlined(peers, target.mailbox, contentId, idRandom)
      return Effect.as(removing, { _tag: "CopyRemoved" })
    }
  }
}

export const backgroundTask = (
  deps: BackgroundTaskDependencies
): Behavior<
  BackgroundTaskState,
  BackgroundTaskMessage,
  BackgroundTaskReply,
  BackgroundTaskAction
> => {
  const resources: NodeResources = {
    memory: new FetchBudget(),
    passwords: passwordChecks(),
    history: makeRequestHistory(deps.droppedRequests),
    running: new Set()
  }
  return {
    kind: backgroundTaskKind,
    initial: { _tag: "Absent" },
    table: backgroundTaskTable(deps.schedule),
    ...codecsOf(BackgroundTaskState, BackgroundTaskMessage),
    perform: (action, self, peers) => {
      if (action._tag === "Attempt") {
        return attemptOnce(deps, peers, resources, self, action.problem)
      }
      // If it fails, the deferred timer fires it again.
      return Effect.catch(performOnCopy(deps, peers, targetOf(self), action), () => Effect.void)
    }
  }
}
