/** The pauses of an outgoing mailbox: all its relays, or those to some origins (protocol §1.3). */
import { Clock, Effect, Option } from "effect"
import { contentOverheadBytes, heldBy, outgoingMailboxKind, parseUrl, pausedOriginsMax,
  pausesFormat } from "../../../actors/index.ts"
import type { OutgoingMailboxMessage, OutgoingMailboxReply,
  Pauses } from "../../../actors/outgoing-mailbox/index.ts"
import { address } from "../../../runtime/index.ts"
import { auditedAsAdmin } from "../../audit/index.ts"
import { callerOf } from "../../auth/index.ts"
import { childrenOf } from "../../formats/xml/index.ts"
import { uriCharsMax } from "../../limits.ts"
import { askOrRefusal, type Call, checkShownVersion, defineHandler, describeActor, entityTags,
  expectedVersion, expectReply, failRefused, type HandlerFailure, type HttpError, httpError,
  isPageForm, readerHeaders, readFormMethod, readInput, redisplayOutdated, type RequestInput,
  requireFormat, seeOther, type Service, shownVersion, unprocessable,
  viewAnswer } from "../../pipeline/index.ts"
import { changeOnce } from "../../request-record.ts"
import { existingOutgoingRef, mailboxPath, type OutgoingRef } from "./outgoing-access.ts"
import { currentForm, pausesPath, pausesView } from "./pause-views.ts"

const addressOf = (account: string) => address(outgoingMailboxKind, account)

/** What is paused. A node of an earlier version in the cluster has no pauses, and knows none. */
export const readPausesOf = (
  service: Service,
  account: string,
  caller: ReturnType<typeof callerOf>
): Effect.Effect<Pauses, HandlerFailure> => {
  if (service.system.format() < pausesFormat) return Effect.succeed({ origins: [], version: 0 })
  const message: OutgoingMailboxMessage = { _tag: "Describe", caller }
  return failRefused(describeActor<Pauses>(service, addressOf(account), message))
}

/** The same for a listing, which is worth more than its pauses: undefined if nobody knows them. */
export const pausesIfKnown = (
  service: Service,
  mailbox: OutgoingRef
): Effect.Effect<Pauses | undefined, HandlerFailure> =>
  readPauses(service, mailbox).pipe(
    Effect.catchTags({
      Quarantined: () => Effect.succeed(undefined),
      ActorDefect: () => Effect.succeed(undefined)
    })
  )

/** What is paused of the outgoing mailbox of a request. */
export const readPauses = (
  service: Service,
  { account, caller }: OutgoingRef
): Effect.Effect<Pauses, HandlerFailure> => readPausesOf(service, account, callerOf(caller))

/** How long a submission waits for what is paused, ms: a count is not worth more. */
const pausesAwaitMs = 1_000

/** The value, if it comes soon. */
const soon = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A | undefined> =>
  effect.pipe(
    Effect.timeoutOption(pausesAwaitMs),
    Effect.map(Option.getOrUndefined),
    Effect.orElseSucceed(() => undefined)
  )

/** What is sent, and to which recipients; undefined if not all of them are known. */
interface Submission {
  readonly bytes: number
  readonly to: ReadonlyArray<string> | undefined
}

/**
 * Counts what a pause would keep back: otherwise a paused outgoing mailbox could fill the store.
 * 507 without room. What nobody could count is admitted: its attempts find no pauses either, and
 * wait by themselves.
 */
export const admitWhilePaused = Effect.fnUntraced(function*(
  service: Service,
  account: string,
  { bytes, to }: Submission
): Effect.fn.Return<void, HandlerFailure> {
  const { system, usage } = service
  if (system.format() < pausesFormat) return
  const pauses = yield* soon(service.pauses.pausesOf(system, account))
  if (pauses === undefined || (pauses.pausedAtMs === undefined && pauses.origins.length === 0)) {
    return
  }
  const isHeld = to === undefined || to.some((uri) => heldBy(pauses, uri) !== undefined)
  if (!isHeld) return
  const wanted = (to ?? []).reduce((sum, { length }) => sum + length, bytes + contentOverheadBytes)
  const { accountBytesMax: max } = usage.limits
  const message: OutgoingMailboxMessage = {
    _tag: "Admit",
    caller: { account, admin: false },
    bytes: wanted,
    bytesMax: max
  }
  const asked = askOrRefusal<OutgoingMailboxReply>(service, addressOf(account), message)
  const reply = yield* soon(asked)
  if (reply?._tag !== "NoRoom") return
  const { usedBytes } = reply
  return yield* httpError(
    "quota-exceeded",
    `what waits for a pause in the outgoing mailbox of ${account} uses ${usedBytes} of ${max} ` +
      `bytes, and this needs ${wanted} (ACCOUNT_BYTES_MAX): end all pauses at ` +
      `${pausesPath({ path: mailboxPath(account) })}, or ask the operator for more`,
    [],
    { quota: "outgoing", "used-bytes": usedBytes, "max-bytes": max }
  )
})

/** The origin of a text that is one; undefined for any other text. */
const originIn = (text: string): string | undefined => {
  const isHttp = text.length <= uriCharsMax && /^https?:\/\/[^/?#]/i.test(text)
  const url = isHttp ? parseUrl(text) : undefined
  return url !== undefined && url.href === `${url.origin}/` ? url.origin : undefined
}

const originsIn = (input: RequestInput): ReadonlyArray<string> =>
  input._tag === "Form"
    ? input.fields.all("origin").flatMap((field) => field.split(/[\r\n]+/))
      .map((line) => line.trim()).filter((line) => line !== "")
    : childrenOf(input.root, "pause").map(({ attributes }) => attributes["origin"] ?? "")

/** The pauses of a document or form; 422 for an invalid one, by its number: it may be a secret. */
const chosenPauses = Effect.fnUntraced(function*(
  input: RequestInput
): Effect.fn.Return<
  { readonly isPaused: boolean; readonly origins: ReadonlyArray<string> },
  HttpError
> {
  const status = input._tag === "Form"
    ? input.fields.get("status")
    : input.root.attributes["status"]
  if (status !== undefined && status !== "active" && status !== "paused") {
    return yield* unprocessable("status must be active or paused")
  }
  const texts = originsIn(input)
  const origins = texts.map(originIn)
  const fault = origins.indexOf(undefined)
  if (fault >= 0) {
    return yield* unprocessable(
      `origin number ${fault + 1} must be an origin such as https://receiver.example: ` +
        "http or https, a host, and a port if it has one"
    )
  }
  const unique = new Set(origins.filter((origin) => origin !== undefined))
  if (unique.size > pausedOriginsMax) {
    return yield* unprocessable(
      `relays to at most ${pausedOriginsMax} origins can be paused: pause the outgoing mailbox`
    )
  }
  return { isPaused: status === "paused", origins: [...unique] }
})

/** Replaces the pauses, of the version for which the conditions of the request hold. */
const replacePauses = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  mailbox: OutgoingRef,
  input: RequestInput
): Effect.fn.Return<Pauses, HandlerFailure> {
  const chosen = yield* chosenPauses(input)
  yield* requireFormat(service, pausesFormat)
  const current = readPauses(service, mailbox)
  const version = Effect.flatMap(
    current,
    (pauses) =>
      Effect.as(
        expectedVersion(
          call,
          Effect.sync(() => ({
            version: pauses.version,
            tags: entityTags(call, pausesView(service, mailbox, pauses))
          }))
        ),
        pauses.version
      )
  ).pipe(Effect.tap((one) => checkShownVersion(input, one)))
  const message: OutgoingMailboxMessage = {
    _tag: "Replace",
    caller: callerOf(mailbox.caller),
    ...chosen
  }
  const change = failRefused(changeOnce(
    service,
    call,
    version,
    (expected) =>
      askOrRefusal<OutgoingMailboxReply>(service, addressOf(mailbox.account), {
        ...message,
        ...shownVersion(input),
        ...expected
      })
  ))
  const operation = {
    caller: message.caller,
    action: "outgoing.pauses",
    target: pausesPath(mailbox)
  } as const
  const now = Effect.map(current, (pauses) => currentForm(mailbox, pauses, chosen.isPaused))
  const audited = auditedAsAdmin(service, call, operation, mailbox.account, change)
  const reply = yield* redisplayOutdated(call, input, now, audited)
  const { view } = expectReply(reply, "Described")
  service.pauses.note(mailbox.account, view, yield* Clock.currentTimeMillis)
  return view
})

/** GET: what is paused, and since when. */
export const getPauses = defineHandler(function*(service, call) {
  const mailbox = yield* existingOutgoingRef(service, call)
  const pauses = yield* readPauses(service, mailbox)
  return viewAnswer(pausesView(service, mailbox, pauses), { headers: readerHeaders })
})

/** PUT: what is paused from now on. What waits for a pause that ends is relayed. */
export const putPauses = defineHandler(function*(service, call) {
  const mailbox = yield* existingOutgoingRef(service, call)
  const pauses = yield* replacePauses(service, call, mailbox, yield* readInput(call, "pauses"))
  return viewAnswer(pausesView(service, mailbox, pauses), { headers: readerHeaders })
})

/** PUT from the forms of pages. */
export const postPausesForm = defineHandler(function*(service, call) {
  const mailbox = yield* existingOutgoingRef(service, call)
  const { input } = yield* readFormMethod(call, "pauses", ["put"])
  const pauses = yield* replacePauses(service, call, mailbox, input)
  return isPageForm(call.request)
    ? seeOther(service, pausesPath(mailbox))
    : viewAnswer(pausesView(service, mailbox, pauses), { headers: readerHeaders })
})
