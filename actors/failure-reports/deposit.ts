/**
 * The steps of a failure report: asking its account for the mailbox, and the deposit there. The
 * actor that reports keeps the report in its state, and repeats a step until it has a result.
 * Nothing here causes another report: a deposit that the mailbox refuses ends the report.
 */
import { Effect } from "effect"
import { type AskFailure, isRefusal, type Peers, type RecordsApi, type Refusal,
  type StorageFailure } from "../../runtime/index.ts"
import { failureReportCharsMax } from "../limits.ts"
import { askMailbox, localDeliveryIdRandom, type MailboxMessage,
  partChars } from "../mailbox/index.ts"
import { accountKind, askerOf, type Caller } from "../schemas.ts"
import { sha256 } from "../secret-hash.ts"
import type { AdmitFailureReport, AdmitFailureReportReply, FailureCause } from "./admission.ts"
import { openReportsMailbox, reportsMailboxName } from "./default-mailbox.ts"
import type { FailureReportProgress, FailureReportTo, ReportFailure } from "./report.ts"

/** What is asked of an account here; its module has all of its messages. */
type AccountQuestion =
  | typeof AdmitFailureReport.Type
  | { readonly _tag: "Describe"; readonly caller: Caller }
  | {
    readonly _tag: "ChooseReportsMailbox"
    readonly caller: Caller
    readonly mailbox: string
    readonly ifVersion: number
  }

type AccountAnswer = AdmitFailureReportReply | {
  readonly _tag: "Described"
  readonly view: {
    readonly failureReports?: string | undefined
    readonly reportsUndecided?: boolean
    readonly version: number
  }
}

const askAccount = askerOf<AccountQuestion, AccountAnswer>(accountKind)

/** Asks an account for the mailbox that receives its failure reports. */
export const describeReports = (peers: Peers, account: string) =>
  askAccount(peers, account, { _tag: "Describe", caller: { account, admin: false } })

/** A report of an actor. */
interface ReportedFailure {
  /** Of the actor that reports: with the report's time it is the same in every attempt. */
  readonly actorId: string
  readonly action: ReportFailure
  readonly cause: FailureCause
  /** The account that the report is for; undefined if there is none. */
  readonly account: Effect.Effect<string | undefined, AskFailure>
  /** Where the account sees more. */
  readonly url: string
  /** Where the mailboxes of accounts are listed. */
  readonly records: Pick<RecordsApi, "write">
}

const escaped: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" }

/** Text of an element: problems come from other services. */
const xmlText = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cs}\ufffe\uffff]/gu, " ").replace(/[&<>]/g, (one) => escaped[one] ?? one)

const lastOfShare = " There may be more failures of this kind, which are not reported for a while."

const fragmentOf = (description: string, url: string, isLast: boolean): string => {
  const text = description.slice(0, failureReportCharsMax) + (isLast ? lastOfShare : "")
  return `<item><description>${xmlText(text)}</description><url>${xmlText(url)}</url></item>`
}

/** The actor has decided nothing: it may be asked again. */
const isUndecided = ({ reason }: Refusal): boolean => reason === "Busy"

const settled = (atMs: number): FailureReportProgress => ({ _tag: "FailureReportSettled", atMs })

/** The report ends without a deposit. */
const drop = (
  { action: { atMs }, url }: ReportedFailure,
  reason: string
): Effect.Effect<FailureReportProgress> =>
  Effect.as(
    Effect.logWarning(`the failure report of ${url} was dropped: ${reason}`),
    settled(atMs)
  )

const dropUnlessUndecided = (
  failure: ReportedFailure,
  what: string,
  refusal: Refusal
): Effect.Effect<FailureReportProgress | undefined> =>
  isUndecided(refusal)
    ? Effect.succeed(undefined)
    : drop(failure, `${what}: ${refusal.detail ?? refusal.reason}`)

/**
 * Chooses a new mailbox for an account that has never chosen: one of an earlier version, or of an
 * issuer. The deposit opens it. Only one of several reports of a time wins.
 */
const chooseDefault = (peers: Peers, account: string, ifVersion: number) =>
  Effect.andThen(
    askAccount(peers, account, {
      _tag: "ChooseReportsMailbox",
      caller: { account, admin: false },
      mailbox: reportsMailboxName(),
      ifVersion
    }),
    describeReports(peers, account)
  )

/** Asks for the mailbox. An account that refuses one gets no report, and nothing is logged. */
const addressReport = Effect.fnUntraced(function*(
  peers: Peers,
  failure: ReportedFailure
): Effect.fn.Return<FailureReportProgress | undefined, AskFailure> {
  const { atMs } = failure.action
  const account = yield* failure.account
  if (account === undefined) return settled(atMs)
  const before = yield* describeReports(peers, account)
  const isUndecided = !isRefusal(before) && before._tag === "Described" &&
    before.view.reportsUndecided === true
  const described = isUndecided ? yield* chooseDefault(peers, account, before.view.version) : before
  if (isRefusal(described)) {
    return yield* dropUnlessUndecided(failure, `the account ${account} has no settings`, described)
  }
  if (described._tag !== "Described") return settled(atMs)
  const { failureReports: mailbox, reportsUndecided } = described.view
  // Another change of the account came first: the step is repeated.
  if (reportsUndecided === true) return undefined
  return mailbox === undefined
    ? settled(atMs)
    : { _tag: "FailureReportAddressed", atMs, to: { account, mailbox } }
})

/** The mailbox of a report. One that an account has by default may not be open yet. */
const describeMailbox = Effect.fnUntraced(function*(
  peers: Peers,
  { records }: ReportedFailure,
  { account, mailbox }: FailureReportTo
) {
  const message: MailboxMessage = { _tag: "Describe", reader: { account } }
  const described = yield* askMailbox(peers, mailbox, message)
  if (!isRefusal(described) || described.reason !== "NotFound") return described
  yield* openReportsMailbox(records, peers, account, mailbox)
  return yield* askMailbox(peers, mailbox, message)
})

const depositReport = Effect.fnUntraced(function*(
  peers: Peers,
  failure: ReportedFailure,
  to: FailureReportTo
): Effect.fn.Return<FailureReportProgress | undefined, AskFailure | StorageFailure> {
  const { account, mailbox } = to
  const { action: { atMs, description }, actorId, cause, url } = failure
  const id = `${actorId} ${atMs}`
  const what = `the mailbox ${mailbox} did not take it`
  const described = yield* describeMailbox(peers, failure, to)
  if (isRefusal(described)) return yield* dropUnlessUndecided(failure, what, described)
  // The name may have passed to another account since it was chosen.
  if (described._tag !== "Described" || described.view.owner !== account) {
    return yield* drop(failure, `the mailbox ${mailbox} is not one of ${account}`)
  }
  // Only now: a report that no mailbox would take must not use up the share.
  const admitted = yield* askAccount(peers, account, { _tag: "AdmitFailureReport", id, cause })
  if (isRefusal(admitted)) {
    return yield* dropUnlessUndecided(failure, `the account ${account} did not admit it`, admitted)
  }
  // Not logged, which would be without a bound: the last admitted report says that there are more.
  if (admitted._tag !== "FailureReportAdmitted") return settled(atMs)
  const message: MailboxMessage = {
    _tag: "Deposit",
    fragment: fragmentOf(description, url, admitted.isLast),
    // Both are the same in every attempt, so that the mailbox recognizes a repetition.
    digest: sha256(`failure report digest ${id}`).slice(0, partChars),
    idRandom: localDeliveryIdRandom(sha256(`failure report item ${id}`)),
    account
  }
  const reply = yield* askMailbox(peers, mailbox, message)
  if (isRefusal(reply)) return yield* dropUnlessUndecided(failure, what, reply)
  return settled(atMs)
})

/**
 * Makes the next step of a report. Undefined if its outcome is not known: then the actor repeats
 * the step, and the mailbox recognizes a repetition.
 */
export const reportFailure = (
  peers: Peers,
  failure: ReportedFailure
): Effect.Effect<FailureReportProgress | undefined> => {
  const { isOverdue, to } = failure.action
  if (isOverdue) return drop(failure, "it could not be deposited for a day")
  const step: Effect.Effect<FailureReportProgress | undefined, AskFailure | StorageFailure> =
    to === undefined ? addressReport(peers, failure) : depositReport(peers, failure, to)
  return Effect.catch(step, () => Effect.succeed(undefined))
}
