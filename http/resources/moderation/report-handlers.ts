/**
 * Reports of notifications, and who deposited one (protocol §7). Any reader reports; admins see the
 * reports, and what a report shows of the depositor: the account, or the network of a client.
 */
import { Effect, Option, Schema } from "effect"
import { cursorOf, hostsOf, sha256 } from "../../../actors/index.ts"
import { decodeItem, isRemoval, parseNotificationId,
  type StoredNotification } from "../../../actors/mailbox/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { audited } from "../../audit/index.ts"
import { type AuthenticatedAccount, callerOf, requireAccount,
  requireAdmin } from "../../auth/index.ts"
import { childText, isText } from "../../formats/xml/index.ts"
import { openReportsCountedMax, reportHostsMax, reportReasonCharsMax, reportsMax,
  reportsPerClient } from "../../limits.ts"
import { isCursor } from "../../newest-first-index.ts"
import { type Call, defineHandler, emptyAnswer, type HandlerFailure, httpError, nextLink, noStore,
  overLimit, readFormMethod, readInput, readPageRequest, refusalError, type ResourceHandler,
  seeOther, type Service, unprocessable, viewAnswer } from "../../pipeline/index.ts"
import { Buckets } from "../../rates/index.ts"
import { defineMailboxHandler, describeMailbox, type MailboxCall, type ReaderCall,
  requireReader } from "../mailboxes/index.ts"
import { depositorView, type ListedReport, type Report, reportPath, reportsPath, reportsView,
  reportView } from "./report-views.ts"

/** The key is a cursor, newest first; the value is the report as JSON. */
const reportsTable = "reports"

/** The key is the id of a report; the value is its key in {@link reportsTable}. */
const reportIdsTable = "report-ids"

const StoredReport = Schema.Struct({
  mailbox: Schema.String,
  notification: Schema.String,
  reason: Schema.String,
  atMs: Schema.Int,
  by: Schema.optionalKey(Schema.String),
  account: Schema.optionalKey(Schema.String),
  network: Schema.optionalKey(Schema.String),
  hosts: Schema.Array(Schema.String)
})

const decodeReport = Schema.decodeUnknownOption(Schema.fromJsonString(StoredReport))

const reportOf = (value: string): Report | undefined => Option.getOrUndefined(decodeReport(value))

/** The notification of the path; 404 for one that never existed, 410 for a removed one. */
const storedAt = Effect.fnUntraced(function*(
  { call, mailbox, service }: MailboxCall
): Effect.fn.Return<StoredNotification, HandlerFailure> {
  const id = parseNotificationId(call.parameters.get("notification"))
  if (id === undefined) return yield* httpError("not-found")
  const [item] = yield* service.system.read(mailbox.to, id.n, 1)
  if (item === undefined) return yield* httpError("not-found")
  if (item.n !== id.n) return yield* httpError("gone")
  if (isRemoval(item.value)) return yield* httpError("not-found")
  const stored = decodeItem(item.value)
  return stored.idRandom === id.idRandom ? stored : yield* httpError("not-found")
})

/** Who deposited the notification of the path: for the owner of the mailbox, and admins. */
export const getDepositor = defineMailboxHandler(function*(mailboxCall) {
  const { call, mailbox, service } = mailboxCall
  const account = yield* requireAccount(service, call)
  const view = yield* describeMailbox(service, mailbox, account.name)
  if (isRefusal(view)) return yield* refusalError(view)
  if (!view.isOwner && !account.roles.includes("admin")) {
    return yield* httpError(
      "forbidden",
      "only the owner of the mailbox and the role admin see who has deposited a notification"
    )
  }
  const { account: depositor, fragment, network } = yield* storedAt(mailboxCall)
  const hosts = hostsOf(fragment)
  const blocksPath = view.isOwner ? `/mailboxes/${mailbox.name}/blocks` : "/blocks"
  return viewAnswer(depositorView({ account: depositor, network, hosts }, blocksPath), {
    headers: [...noStore, mailbox.link]
  })
})

const readReason = Effect.fnUntraced(function*(
  call: Call
): Effect.fn.Return<string, HandlerFailure> {
  const input = yield* readInput(call, "report", { form: true })
  const text = input._tag === "Form" ? input.fields.get("reason") : childText(input.root, "reason")
  const reason = text?.trim() ?? ""
  return reason === "" || reason.length > reportReasonCharsMax || !isText(reason)
    ? yield* unprocessable(`a report has a reason of 1 to ${reportReasonCharsMax} characters`)
    : reason
})

/**
 * Stores a report, and removes the oldest beyond the bound. A repeated report changes none. An id
 * whose report is missing does not count: a killed server has restored it.
 */
const storeReport = Effect.fnUntraced(function*(
  { records }: Service,
  report: Report
): Effect.fn.Return<void, HandlerFailure> {
  const id = sha256(`report\n${report.mailbox}\n${report.notification}`).slice(0, 22)
  const key = cursorOf(report.atMs, id)
  const earlier = yield* records.get(reportIdsTable, id)
  if (earlier !== undefined && (yield* records.get(reportsTable, earlier)) !== undefined) return
  const expected = [{ table: reportIdsTable, key: id, value: earlier ?? null }]
  const isStored = yield* records.writeIf(expected, [
    { table: reportIdsTable, key: id, value: key },
    { table: reportsTable, key, value: JSON.stringify(report) }
  ])
  if (!isStored) return
  const [keys = []] = yield* records.keys(reportsTable, [{ limit: reportsMax + 2 }])
  for (const old of keys.slice(reportsMax)) yield* removeReport(records, old)
})

/** A report that a killed server has brought back is removed again, by an admin or the bound. */
const removeReport = (records: Service["records"], key: string) => {
  const removal = { value: null, markerExpires: true }
  return records.write([
    { table: reportsTable, key, ...removal },
    { table: reportIdsTable, key: key.slice(key.indexOf(".") + 1), ...removal }
  ])
}

/** The reader's part of a report: its account, or nothing of a reader by a secret. */
const reporterOf = ({ reader }: ReaderCall): { readonly by?: string } =>
  reader.account === undefined ? {} : { by: reader.account }

/** A reader reports a notification; each reader may do so some times an hour. */
export const postReport = (service: Service): ResourceHandler["handle"] => {
  const buckets = new Buckets(reportsPerClient, () => performance.now())
  return defineMailboxHandler(function*(mailboxCall) {
    const { call, mailbox } = mailboxCall
    const readerCall = yield* requireReader(mailboxCall)
    const { account, fragment, network } = yield* storedAt(mailboxCall)
    const reason = yield* readReason(call)
    const client = service.clients.clientOf(call.request)
    const reporter = readerCall.reader.account
    const { isOver, waitMs } = buckets.take(reporter ?? client.network)
    if (isOver) {
      const who = reporter === undefined
        ? `the clients of ${client.network} without an account`
        : `the account ${reporter}`
      const detail = `${who} may send ${reportsPerClient.quota} reports an hour: repeat it later`
      return yield* overLimit({ policy: "reports", detail, waitMs })
    }
    yield* storeReport(service, {
      mailbox: mailbox.name,
      notification: call.parameters.get("notification"),
      reason,
      atMs: service.nowMs(),
      ...reporterOf(readerCall),
      ...account === undefined ? {} : { account },
      ...network === undefined ? {} : { network },
      hosts: hostsOf(fragment).slice(0, reportHostsMax)
    })
    return emptyAnswer(202, [mailbox.link])
  })(service)
}

/** The number of open reports, of which at most {@link openReportsCountedMax} are counted. */
export const countReports = ({ records }: Service) =>
  Effect.map(
    records.keys(reportsTable, [{ limit: openReportsCountedMax }]),
    ([keys = []]) => keys.length
  )

/** A page of the reports, newest first, for admins. */
export const getReports = defineHandler(function*(service, call) {
  yield* requireAdmin(service, call)
  const page = yield* readPageRequest(call, isCursor)
  const { after, limit } = page
  const range = after === undefined ? { limit } : { limit, after }
  const rows = yield* service.records.range(reportsTable, range)
  const listed = rows.flatMap(({ key, value }): ReadonlyArray<ListedReport> => {
    const report = reportOf(value)
    return report === undefined ? [] : [{ id: key, report }]
  })
  const next = nextLink(service.settings.baseUrl + reportsPath, page, rows.map(({ key }) => key))
  return viewAnswer(reportsView(service, listed, next), { headers: noStore })
})

const readReport = Effect.fnUntraced(function*(
  { records }: Service,
  { parameters }: Call
): Effect.fn.Return<ListedReport, HandlerFailure> {
  const id = parameters.get("report")
  const value = isCursor(id) ? yield* records.get(reportsTable, id) : undefined
  const report = value === undefined ? undefined : reportOf(value)
  return report === undefined ? yield* httpError("not-found") : { id, report }
})

export const getReport = defineHandler(function*(service, call) {
  yield* requireAdmin(service, call)
  return viewAnswer(reportView(service, yield* readReport(service, call)), { headers: noStore })
})

const dismissReport = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  admin: AuthenticatedAccount
): Effect.fn.Return<void, HandlerFailure> {
  const { id, report: { mailbox, notification } } = yield* readReport(service, call)
  const operation = {
    caller: callerOf(admin),
    action: "report.remove",
    target: reportPath(id),
    detail: `/mailboxes/${mailbox}/notifications/${notification}`
  } as const
  yield* audited(service, call, operation, removeReport(service.records, id))
})

export const deleteReport = defineHandler(function*(service, call) {
  yield* dismissReport(service, call, yield* requireAdmin(service, call))
  return emptyAnswer(204)
})

/** DELETE from the form of a page. */
export const postReportForm = defineHandler(function*(service, call) {
  const admin = yield* requireAdmin(service, call)
  yield* readFormMethod(call, "report", ["delete"])
  yield* dismissReport(service, call, admin)
  return seeOther(service, reportsPath)
})
