/** The background task bound to the runtime: what it fetches, reports and copies. */
import { Clock, Effect, Semaphore } from "effect"
import { type Address, address, type Behavior, isRefusal, type Peers } from "../../runtime/index.ts"
import { fetchBytesInFlightMax, fetchPermitBytes, unavailableRetryMs } from "../limits.ts"
import { askMailbox, backgroundTaskKind, decodeItem, isRemoval, mailboxKind,
  type OwnerSettings } from "../mailbox/index.ts"
import type { DeliveryOutcome } from "../outbound/index.ts"
import { jsonRecord, strictMessage } from "../schemas.ts"
import { listCopy, removeCopy, storeCopy } from "./content-copy.ts"
import { backgroundTaskTable } from "./decide.ts"
import { fetchContent, sendReceipt, type TaskInput } from "./fetch-and-receipt.ts"
import { type BackgroundTaskAction, type BackgroundTaskDependencies, type BackgroundTaskKind,
  BackgroundTaskMessage, BackgroundTaskState, type ContentCopy } from "./protocol.ts"

/** The notification that a task is for, and what it does. */
interface TaskTarget {
  readonly mailbox: string
  readonly n: number
  readonly kind: BackgroundTaskKind
}

const idPattern = /^([a-z0-9][a-z0-9-]{0,63})=([0-9a-z]{1,8})-(fetch|received|retrieved)$/

const targetOf = ({ id }: Address): TaskTarget => {
  const [, mailbox, n, kind] = idPattern.exec(id) ?? []
  if (mailbox === undefined || n === undefined) throw new TypeError(`${id} is no background task`)
  return { mailbox, n: Number.parseInt(n, 36), kind: kind as BackgroundTaskKind } // by the pattern
}

/** The notification and its mailbox's settings; undefined if either is gone. */
const readNotification = Effect.fnUntraced(function*(peers: Peers, { mailbox, n }: TaskTarget) {
  const reply = yield* askMailbox(peers, mailbox, { _tag: "Describe", reader: {} })
  if (isRefusal(reply) || reply._tag !== "Described") return undefined
  const [item] = yield* peers.read(address(mailboxKind, mailbox), n, 1)
  if (item?.n !== n || isRemoval(item.value)) return undefined
  const { owner, settings } = reply.view
  return { settings, owner, notification: decodeItem(item.value) }
})

const isWanted = (settings: OwnerSettings, kind: BackgroundTaskKind): boolean =>
  kind === "fetch" ? settings.fetch === "eager" : settings.receipts === kind

const obsolete: BackgroundTaskMessage = { _tag: "Obsolete" }

const attempted = (
  outcome: DeliveryOutcome,
  random: number,
  copy?: ContentCopy
): BackgroundTaskMessage => ({
  _tag: "Attempted",
  outcome,
  random,
  ...copy === undefined ? {} : { copy }
})

/** Fetches the content or sends a receipt; with a `problem`, sends a receipt of that. */
const attempt = Effect.fnUntraced(function*(
  deps: BackgroundTaskDependencies,
  peers: Peers,
  memory: Semaphore.Semaphore,
  target: TaskTarget,
  problem: string | undefined
) {
  const { documents, links } = deps
  const found = yield* readNotification(peers, target)
  if (found === undefined) return obsolete
  const { notification, owner, settings } = found
  if (problem === undefined && !isWanted(settings, target.kind)) return obsolete
  const pointer = documents.pointerOf(notification.fragment)
  if (pointer === undefined || pointer.url === "") return obsolete
  const mailbox = links.mailbox(target.mailbox)
  const input: TaskInput = { pointer, mailbox, settings, key: notification.idRandom }
  const random = deps.random()
  if (problem !== undefined || target.kind !== "fetch") {
    const status = target.kind === "fetch" ? "problem" : target.kind
    return attempted(yield* sendReceipt(deps, peers, input, status, problem), random)
  }
  const outcome = yield* fetchContent(deps, peers, memory, input)
  if (outcome._tag !== "Fetched") return attempted(outcome, random)
  const copy = yield* storeCopy(deps, peers, input.key, owner, outcome.fetched)
  return attempted({ _tag: "Delivered", code: outcome.fetched.code }, random, copy)
})

/** A store or actor is unavailable: nothing is counted, and the attempt is repeated soon. */
const deferred = ({ random }: BackgroundTaskDependencies): Effect.Effect<BackgroundTaskMessage> =>
  Effect.map(
    Clock.currentTimeMillis,
    (nowMs) => attempted({ _tag: "Deferred", untilMs: nowMs + unavailableRetryMs }, random())
  )

export const backgroundTask = (
  deps: BackgroundTaskDependencies
): Behavior<BackgroundTaskState, BackgroundTaskMessage, never, BackgroundTaskAction> => {
  const memory = Semaphore.makeUnsafe(Math.ceil(fetchBytesInFlightMax / fetchPermitBytes))
  return {
    kind: backgroundTaskKind,
    initial: { _tag: "Absent" },
    table: backgroundTaskTable(deps.schedule, (id) => id.endsWith("-fetch")),
    ...jsonRecord(BackgroundTaskState),
    decodeMessage: strictMessage(BackgroundTaskMessage),
    timerMessage: { _tag: "TimerFired" },
    perform: (action, self, peers): Effect.Effect<BackgroundTaskMessage | void> => {
      const target = targetOf(self)
      switch (action._tag) {
        case "Attempt":
          return attempt(deps, peers, memory, target, action.problem).pipe(
            Effect.catch(() => deferred(deps))
          )
        // If one of these three fails, the deferred timer fires it again.
        case "ListCopy":
          return listCopy(deps, peers, target, action.copy).pipe(
            Effect.as<BackgroundTaskMessage>({ _tag: "CopyListed" }),
            Effect.catch(() => Effect.void)
          )
        case "CheckNotification":
          return readNotification(peers, target).pipe(
            Effect.map((found): BackgroundTaskMessage => ({
              _tag: "NotificationChecked",
              exists: found !== undefined
            })),
            Effect.catch(() => Effect.void)
          )
        case "RemoveCopy":
          return removeCopy(deps, peers, target, action.copy).pipe(
            Effect.as(obsolete),
            Effect.catch(() => Effect.void)
          )
      }
    }
  }
}
