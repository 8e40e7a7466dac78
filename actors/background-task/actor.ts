/** The errand bound to the runtime: what it fetches and reports, inside or over HTTP. */
import { Clock, Effect, Semaphore } from "effect"
import { type Address, address, type Behavior, isRefusal, type Peers,
  type Refusal } from "../../runtime/index.ts"
import { fetchBytesInFlightMax, fetchPermitBytes, unavailableRetryMs } from "../limits.ts"
import { decodeItem, isRemoval, mailboxKind, type MailboxMessage, type MailboxReply,
  type OwnerSettings } from "../mailbox/index.ts"
import type { DeliveryOutcome } from "../outbound/index.ts"
import { jsonRecord, strictMessage } from "../schemas.ts"
import { clearCopy, keepCopy, showCopy } from "./content-copy.ts"
import { backgroundTaskTable } from "./decide.ts"
import { fetchContent, sendReceipt, type TaskInput } from "./fetch-and-receipt.ts"
import { type BackgroundTaskAction, type BackgroundTaskDependencies, type BackgroundTaskKind,
  BackgroundTaskMessage, BackgroundTaskState, type ContentCopy } from "./protocol.ts"

export const backgroundTaskKind = "errand"

/** Which notification of which mailbox an errand is for, and what is to be done. */
interface NotificationPosition {
  readonly mailbox: string
  readonly n: number
  readonly duty: BackgroundTaskKind
}

const idPattern = /^([a-z0-9][a-z0-9-]{0,63})=([0-9a-z]{1,8})-(fetch|received|retrieved)$/

const placeOf = ({ id }: Address): NotificationPosition => {
  const [, mailbox, n, duty] = idPattern.exec(id) ?? []
  if (mailbox === undefined || n === undefined) throw new TypeError(`${id} is no errand`)
  return { mailbox, n: Number.parseInt(n, 36), duty: duty as BackgroundTaskKind } // one of the pattern's
}

/** The notification and its mailbox's settings; undefined when either is gone. */
const lookUp = Effect.fnUntraced(function*(peers: Peers, { mailbox, n }: NotificationPosition) {
  const to = address(mailboxKind, mailbox)
  const describe: MailboxMessage = { _tag: "Describe", reader: {} }
  // A mailbox answers in its own protocol, and in no other.
  const reply = (yield* peers.ask(to, describe)) as MailboxReply | Refusal
  if (isRefusal(reply) || reply._tag !== "Described") return undefined
  const [item] = yield* peers.read(to, n, 1)
  if (item?.n !== n || isRemoval(item.value)) return undefined
  const settings: OwnerSettings = reply.view.settings
  return { settings, owner: reply.view.owner, stored: decodeItem(item.value) }
})

const isWanted = (settings: OwnerSettings, duty: BackgroundTaskKind): boolean =>
  duty === "fetch" ? settings.fetch === "eager" : settings.receipts === duty

/** What there is to do, as it stands now; undefined when there is nothing. */
const findDuty = Effect.fnUntraced(function*(
  { documents, links }: BackgroundTaskDependencies,
  peers: Peers,
  place: NotificationPosition,
  problem: string | undefined
) {
  const looked = yield* lookUp(peers, place)
  if (looked === undefined) return undefined
  const { owner, settings, stored } = looked
  if (problem === undefined && !isWanted(settings, place.duty)) return undefined
  const pointer = documents.pointerOf(stored.fragment)
  if (pointer === undefined || pointer.url === "") return undefined
  const mailbox = links.mailbox(place.mailbox)
  const found: TaskInput = { pointer, mailbox, settings, key: stored.idRandom }
  return { found, owner }
})

const moot: BackgroundTaskMessage = { _tag: "Moot" }

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

/** Does what is to be done now. */
const attempt = Effect.fnUntraced(function*(
  deps: BackgroundTaskDependencies,
  peers: Peers,
  room: Semaphore.Semaphore,
  place: NotificationPosition,
  problem: string | undefined
) {
  const duty = yield* findDuty(deps, peers, place, problem)
  if (duty === undefined) return moot
  const { found, owner } = duty
  const random = deps.random()
  if (problem !== undefined || place.duty !== "fetch") {
    const status = place.duty === "fetch" ? "problem" : place.duty
    return attempted(yield* sendReceipt(deps, peers, found, status, problem), random)
  }
  const outcome = yield* fetchContent(deps, peers, room, found)
  if (outcome._tag !== "Fetched") return attempted(outcome, random)
  const copy = yield* keepCopy(deps, peers, found.key, owner, outcome.fetched)
  return attempted({ _tag: "Delivered", code: outcome.fetched.code }, random, copy)
})

/** A store or actor is away: nothing is counted, and the attempt is made a little later. */
const putOff = ({ random }: BackgroundTaskDependencies): Effect.Effect<BackgroundTaskMessage> =>
  Effect.map(
    Clock.currentTimeMillis,
    (nowMs) => attempted({ _tag: "Deferred", untilMs: nowMs + unavailableRetryMs }, random())
  )

export const backgroundTask = (
  deps: BackgroundTaskDependencies
): Behavior<BackgroundTaskState, BackgroundTaskMessage, never, BackgroundTaskAction> => {
  const room = Semaphore.makeUnsafe(Math.ceil(fetchBytesInFlightMax / fetchPermitBytes))
  return {
    kind: backgroundTaskKind,
    initial: { _tag: "Absent" },
    table: backgroundTaskTable(deps.schedule, (id) => id.endsWith("-fetch")),
    ...jsonRecord(BackgroundTaskState),
    decodeMessage: strictMessage(BackgroundTaskMessage),
    timerMessage: { _tag: "TimerFired" },
    perform: (action, self, peers) => {
      const place = placeOf(self)
      switch (action._tag) {
        case "Attempt":
          return attempt(deps, peers, room, place, action.problem).pipe(
            Effect.catch(() => putOff(deps))
          )
        // These three come again with the timer that is held, when they fail.
        case "Show":
          return showCopy(deps, peers, place, action.copy).pipe(
            Effect.as<BackgroundTaskMessage>({ _tag: "Shown" }),
            Effect.catch(() => Effect.void)
          )
        case "Look":
          return lookUp(peers, place).pipe(
            Effect.map((found): BackgroundTaskMessage => ({
              _tag: "Looked",
              there: found !== undefined
            })),
            Effect.catch(() => Effect.void)
          )
        case "Clear":
          return clearCopy(deps, peers, place, action.copy).pipe(
            Effect.as(moot),
            Effect.catch(() => Effect.void)
          )
      }
    }
  }
}
