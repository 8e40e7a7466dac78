/**
 * Writes the audit log (protocol §7). `audited` stores an entry before an operation, so that no
 * change is missed, and one with the outcome after it. `auditedIfAllowed` first checks whether the
 * operation may happen: refusals are counted, since an account could otherwise replace the whole
 * log by them. For the same reason the operations of an account that is no admin are bounded for
 * each day. `recordAudit` stores one entry, for what changes nothing, or changes nothing that
 * must not be missed. None is for the hot path.
 */
import { Effect } from "effect"
import type { AccountMessage, AccountReply } from "../../actors/account/index.ts"
import { accountKind, auditAccountCharsMax, auditDetailCharsMax, auditId, auditKind,
  auditTargetCharsMax } from "../../actors/index.ts"
import type { AuditMessage, AuditOperation, AuditOutcome,
  AuditReply } from "../../actors/audit/index.ts"
import { address } from "../../runtime/index.ts"
import { withoutSecrets } from "../formats/index.ts"
import { ask, type Call, expectReply, type HandlerFailure, overLimit, type Service,
  toHttpError } from "../pipeline/index.ts"

/** What the audit log records. Programs search for these names, so they never change. */
export const auditActions = [
  "account.change",
  "account.create",
  "account.export",
  "account.remove",
  "actor.inspect",
  "admin.refused",
  "backup.take",
  "block.create",
  "block.remove",
  "cabinet.remove",
  "content.remove",
  "mailbox.create",
  "mailbox.remove",
  "mailbox.secrets",
  "notification.remove",
  "operator-token.set",
  "outgoing.pauses",
  "outgoing.remove",
  "outgoing.retry",
  "outgoing.withdraw",
  "quarantine.lift",
  "query.change",
  "query.remove",
  "report.remove",
  "session.remove",
  "sign-in",
  "sign-out",
  "token.create",
  "token.revoke"
] as const

export type AuditedAction = typeof auditActions[number]

/** Who asks for an operation, as `callerOf` says it: anonymous without an account. */
interface AuditedCaller {
  readonly account?: string | undefined
  /** Whether the request has the rights of an admin, whose operations are not bounded. */
  readonly admin: boolean
}

/** An operation, as a handler names it. It must have no secret and no content. */
export interface AuditedOperation {
  readonly caller: AuditedCaller
  readonly action: AuditedAction
  /** The path of what it changes; secrets after `~` are removed. */
  readonly target: string
  readonly detail?: string | undefined
  readonly count?: number
}

/** The address of the audit log. */
export const auditAddress = () => address(auditKind, auditId)

/** The request whose client the entry names. */
type Origin = Pick<Call, "request">

const operationOf = (
  { clients }: Service,
  origin: Origin | undefined,
  { action, caller: { account }, count, detail, target }: AuditedOperation
): AuditOperation => ({
  ...account === undefined ? {} : { account: account.slice(0, auditAccountCharsMax) },
  ...origin === undefined
    ? {}
    : { from: clients.clientOf(origin.request).address.slice(0, auditAccountCharsMax) },
  action,
  target: withoutSecrets(target).slice(0, auditTargetCharsMax),
  ...detail === undefined || detail === "" ? {} : { detail: detail.slice(0, auditDetailCharsMax) },
  ...count === undefined ? {} : { count }
})

const write = (service: Service, message: AuditMessage): Effect.Effect<number, HandlerFailure> =>
  Effect.map(
    ask<AuditReply>(service, auditAddress(), message),
    (reply) => expectReply(reply, "Recorded").n
  )

/** After a 5xx a change may have been stored; any other failure has changed nothing. */
const outcomeOf = (failure: HandlerFailure): AuditOutcome =>
  toHttpError(failure).problem.status < 500 ? "refused" : "unknown"

/**
 * An operation that began; `end` records its outcome. If that fails, or the node ends before, the
 * audit log itself records that the outcome is unknown.
 */
interface BegunOperation {
  readonly end: (outcome: AuditOutcome) => Effect.Effect<void>
}

/**
 * Counts an operation of an account that is no admin; fails with 429 beyond those of a day. The
 * count stays if the operation then does not begin, since that may be unknown.
 */
const countChange = Effect.fnUntraced(function*(
  service: Service,
  { action, caller: { account, admin } }: AuditedOperation
): Effect.fn.Return<void, HandlerFailure> {
  if (admin || account === undefined) return
  const message: AccountMessage = {
    _tag: "CountChange",
    ...action === "token.revoke" ? { kind: "revocation" } : {},
    ...action === "sign-out" ? { kind: "sign-out" } : {}
  }
  const reply = yield* ask<AccountReply>(service, address(accountKind, account), message)
  if (reply._tag !== "ChangesSpent") return
  const { count, untilMs } = reply
  const detail =
    `the account ${account} has made ${count} changes today (UTC) that the audit log ` +
    "records, of mailboxes, secrets, blocks, tokens and sign-ins, and may make no more: nothing " +
    `was changed; repeat the request from ${new Date(untilMs).toISOString()} on`
  const waitMs = untilMs - service.nowMs()
  return yield* overLimit({ policy: "audited-changes", detail, waitMs })
})

/**
 * Records that an operation begins; the operation must not happen if this fails. Fails with 429 for
 * an account that has made its operations of the day, which the log has as other refusals.
 */
export const beginAudited = Effect.fnUntraced(function*(
  service: Service,
  origin: Origin,
  audited: AuditedOperation
): Effect.fn.Return<BegunOperation, HandlerFailure> {
  yield* Effect.tapError(
    countChange(service, audited),
    (failure) =>
      outcomeOf(failure) === "refused" ? recordRefused(service, origin, audited) : Effect.void
  )
  const operation = operationOf(service, origin, audited)
  const n = yield* write(service, { _tag: "Begin", operation })
  return {
    end: (outcome) =>
      write(service, { _tag: "End", n, operation, outcome }).pipe(
        Effect.catch((failure) =>
          Effect.logWarning("the outcome of an operation is not in the audit log", failure)
        ),
        Effect.asVoid
      )
  }
})

/** The bytes of an operation, for an answer that is a stream. */
interface AuditedStream {
  readonly source: AsyncIterable<Uint8Array>
  /** To be called when the answer has ended, perhaps before the source was read. */
  readonly ended: () => void
}

/**
 * The bytes of an operation that began. Once, when all of them are read or the answer ends before,
 * it calls `release`, for the place of the operation, and records the outcome.
 */
export const auditedStream = (
  { end }: BegunOperation,
  release: () => void,
  bytes: () => AsyncIterable<Uint8Array>
): AuditedStream => {
  let isOver = false
  const finish = (outcome: AuditOutcome): Effect.Effect<void> => {
    if (isOver) return Effect.void
    isOver = true
    release()
    return end(outcome)
  }
  async function* source(): AsyncGenerator<Uint8Array> {
    let outcome: AuditOutcome = "unknown"
    try {
      yield* bytes()
      outcome = "done"
    } finally {
      await Effect.runPromise(finish(outcome))
    }
  }
  return { source: source(), ended: () => void Effect.runFork(finish("unknown")) }
}

/** Runs a change between two entries of the audit log. */
export const audited = <A>(
  service: Service,
  origin: Origin,
  operation: AuditedOperation,
  change: Effect.Effect<A, HandlerFailure>
): Effect.Effect<A, HandlerFailure> =>
  Effect.flatMap(beginAudited(service, origin, operation), ({ end }) =>
    change.pipe(
      Effect.tap(() => end("done")),
      Effect.tapError((failure) => end(outcomeOf(failure)))
    ))

/**
 * {@link audited} where an admin changes what another account owns. What an owner changes is its
 * own business. `owner` is undefined if nobody knows it: then all changes of admins are recorded.
 */
export const auditedAsAdmin = <A>(
  service: Service,
  origin: Origin,
  operation: AuditedOperation,
  owner: string | undefined,
  change: Effect.Effect<A, HandlerFailure>
): Effect.Effect<A, HandlerFailure> =>
  operation.caller.admin && (owner === undefined || operation.caller.account !== owner)
    ? audited(service, origin, operation, change)
    : change

/**
 * {@link audited}, once `allowed` has succeeded, whose result the change gets. Its refusals are
 * counted, as those of {@link recordAdminRefused}.
 */
export const auditedIfAllowed = <Checked, A>(
  service: Service,
  origin: Origin,
  operation: AuditedOperation,
  allowed: Effect.Effect<Checked, HandlerFailure>,
  change: (checked: Checked) => Effect.Effect<A, HandlerFailure>
): Effect.Effect<A, HandlerFailure> =>
  allowed.pipe(
    Effect.tapError((failure) =>
      // A check that itself failed has refused nothing.
      outcomeOf(failure) === "refused" ? recordRefused(service, origin, operation) : Effect.void
    ),
    Effect.flatMap((checked) => audited(service, origin, operation, change(checked)))
  )

/** Records an operation in one entry, which is durable before this returns. */
export const recordAudit = (
  service: Service,
  origin: Origin | undefined,
  operation: AuditedOperation,
  outcome: AuditOutcome
): Effect.Effect<void, HandlerFailure> =>
  Effect.asVoid(write(service, {
    _tag: "Record",
    operation: operationOf(service, origin, operation),
    outcome
  }))

/** Records that a client was refused an operation; many refusals are counted. */
const recordRefused = (
  service: Service,
  origin: Origin,
  operation: AuditedOperation
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { action, caller: { account = "" } } = operation
    const client = `${service.clients.clientOf(origin.request).address} ${account} ${action}`
    const counted = service.auditRefusals.count(client, service.nowMs())
    if (counted === undefined) return Effect.void
    const { count, omitted } = counted
    const others = omitted === 0 ? undefined : `${omitted} refusals before this are not recorded`
    return recordAudit(service, origin, { ...operation, detail: others, count }, "refused").pipe(
      Effect.catch((failure) => Effect.logWarning("a refusal is not in the audit log", failure))
    )
  })

/** Records that a client was refused what only an admin may do; many refusals are counted. */
export const recordAdminRefused = (
  service: Service,
  origin: Origin,
  account: string | undefined
): Effect.Effect<void> => {
  const { method, path } = origin.request
  const target = `${method} ${path}`
  const caller: AuditedCaller = { account, admin: false }
  return recordRefused(service, origin, { caller, action: "admin.refused", target })
}
