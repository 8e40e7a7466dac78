/** `/cluster`, for admins (protocol §6). */
import { Effect } from "effect"
import { type Address, address, isActorId, type LogItem, shardOf } from "../../../runtime/index.ts"
import { auditAddress, audited, recordAudit } from "../../audit/index.ts"
import { callerOf, requireAdmin } from "../../auth/index.ts"
import { negotiate, standardTypes } from "../../formats/index.ts"
import { inspectedItemsMax, inspectedReadsMax } from "../../limits.ts"
import { absoluteUri, type Call, defineHandler, emptyAnswer, type HandlerFailure, httpError,
  nextLink, noStore, readPageRequest, readQuery, seeOther, type Service,
  viewAnswer } from "../../pipeline/index.ts"
import { actorsView, actorView } from "./actor-views.ts"
import { actorPath, actorsPath, clusterPath, messagesPath,
  quarantinePath } from "./cluster-paths.ts"
import { clusterStatus, quarantinesOf } from "./cluster-status.ts"
import { clusterView, quarantineView } from "./cluster-views.ts"
import { historyView } from "./history-views.ts"
import { messagesView, momentOf, nodeIn, type PastMoment,
  type RecordedCommits } from "./recording/index.ts"

export const getCluster = defineHandler(function*(service, call) {
  yield* requireAdmin(service, call)
  return viewAnswer(clusterView(service, yield* clusterStatus(service)), { headers: noStore })
})

export const getHistory = defineHandler(function*(service, call) {
  yield* requireAdmin(service, call)
  return viewAnswer(historyView(service), { headers: noStore })
})

/** The actor in the path, or 404. */
const actorOf = (
  service: Service,
  { parameters }: Call
): Effect.Effect<Address, HandlerFailure> => {
  const kind = parameters.get("kind")
  const id = parameters.get("id")
  const isNamed = service.system.snapshot().activations.has(kind) && isActorId(id) &&
    parameters.secret("id") === undefined && parameters.secret("kind") === undefined
  return isNamed ? Effect.succeed(address(kind, id)) : Effect.fail(httpError("not-found"))
}

const wrongId = httpError(
  "malformed",
  "id is no id of an actor; copy it from the list, or from the log of a node"
)

/** A page of the actors of a kind that have a record, or the way to one by its id. */
export const getActors = defineHandler(function*(service, call) {
  yield* requireAdmin(service, call)
  const kind = call.parameters.get("kind")
  if (!service.system.snapshot().activations.has(kind)) return yield* httpError("not-found")
  const id = (yield* readQuery(call)).get("id")?.trim()
  if (id !== undefined) {
    return isActorId(id) ? seeOther(service, actorPath({ kind, id })) : yield* wrongId
  }
  const page = yield* readPageRequest(call, isActorId)
  const ids = yield* service.system.scan(kind, page.after, page.limit)
  const next = nextLink(absoluteUri(service, actorsPath(kind)), page, ids)
  return viewAnswer(actorsView(service, kind, ids, next), { headers: noStore })
})

const olderNode = httpError(
  "storage-unavailable",
  "the node of this actor runs a version that cannot show it; repeat the request after its upgrade"
)

/**
 * The last items of a log, in their order. They are read each by itself: a read of many ends after
 * so many characters, and the newest ones matter most.
 */
const lastItems = (
  { system }: Service,
  actor: Address,
  head: number
): Effect.Effect<ReadonlyArray<LogItem>, HandlerFailure> => {
  const from = Math.max(1, head - inspectedItemsMax + 1)
  const numbers = Array.from({ length: Math.max(0, head - from + 1) }, (_, at) => from + at)
  return Effect.map(
    Effect.forEach(numbers, (n) => system.read(actor, n, 1), { concurrency: inspectedReadsMax }),
    (found) => found.flatMap((items, at) => items.filter(({ n }) => n === numbers[at]))
  )
}

/** Undefined where the answering node records nothing. */
const recordedCommitsOf = (
  { recorder, startId }: Service,
  actor: Address
): RecordedCommits | undefined =>
  recorder && {
    address: actor,
    node: nodeIn(startId),
    startId,
    sinceMs: recorder.startedMs,
    commits: recorder.commitsOf(actor)
  }

const commitNamePattern = /^[A-Za-z0-9_=-]{1,100}\.[A-Za-z0-9_-]{1,64}\.[1-9]\d{0,14}$/

const wrongCommit = httpError(
  "malformed",
  "commit is no name of a recorded commit; follow a link of the actor's page"
)

/** Why the answering node does not show a commit of this name. */
const noCommit = ({ startId }: Service, name: string) => {
  const self = nodeIn(startId)
  const node = nodeIn(name)
  return httpError(
    "not-found",
    node === self
      ? "the node has not recorded this commit since its start, or no longer; open the actor " +
        "without it"
      : `the node ${node} may have recorded this commit, and the node ${self} answers; send the ` +
        "request to that node, or open the actor without it"
  )
}

/** The actor after the commit that the query names; undefined where it names none. */
const readMoment = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  actor: Address,
  recorded: RecordedCommits | undefined
): Effect.fn.Return<PastMoment | undefined, HandlerFailure> {
  const name = (yield* readQuery(call)).get("commit")
  if (name === undefined) return undefined
  if (!commitNamePattern.test(name)) return yield* wrongCommit
  const found = recorded && momentOf(recorded, name)
  if (found === undefined) return yield* noCommit(service, name)
  const { at, commit, hasLog } = found
  const log = hasLog ? yield* lastItems(service, actor, commit.head) : undefined
  return { at, commit, log }
})

/**
 * One actor, as it is or as it was after a commit. The audit log has who looked, as it shows who
 * has stored how much, and when.
 */
export const getActor = defineHandler(function*(service, call) {
  const admin = yield* requireAdmin(service, call)
  const actor = yield* actorOf(service, call)
  const recorded = recordedCommitsOf(service, actor)
  const moment = yield* readMoment(service, call, actor, recorded)
  const operation = {
    caller: callerOf(admin),
    action: "actor.inspect",
    target: actorPath(actor),
    detail: moment && `as it was after commit ${moment.commit.seq} of its node`
  } as const
  const inspection = yield* Effect.catchTag(
    service.system.inspect(actor),
    "UnknownMessage",
    () => Effect.fail(olderNode)
  )
  const { head, stateChars } = inspection
  if (stateChars === undefined && head === 0 && !recorded?.commits.length) {
    return yield* httpError("not-found")
  }
  const log = yield* lastItems(service, actor, head)
  // Before it is shown. The audit log's own actor must be seen also when it takes no entry.
  if (actor.kind !== auditAddress().kind) yield* recordAudit(service, call, operation, "done")
  const node = service.system.cluster().owners[shardOf(actor)]
  const inspected = { address: actor, node, inspection, log, recorded, moment }
  return viewAnswer(actorView(service, inspected), { headers: noStore })
})

const wrongKind = httpError(
  "malformed",
  "kind is no kind of actors; copy it from the page of the cluster"
)

/** The last messages of the answering node. The audit log has who looked, as of an actor. */
export const getMessages = defineHandler(function*(service, call) {
  const admin = yield* requireAdmin(service, call)
  const kind = (yield* readQuery(call)).get("kind")
  if (kind !== undefined && !service.system.snapshot().activations.has(kind)) {
    return yield* wrongKind
  }
  const operation = {
    caller: callerOf(admin),
    action: "actor.inspect",
    target: messagesPath(),
    detail: kind
  } as const
  if (service.recorder !== undefined && kind !== auditAddress().kind) {
    yield* recordAudit(service, call, operation, "done")
  }
  return viewAnswer(messagesView(service, kind), { headers: noStore })
})

const notQuarantined = httpError("not-found", "no such actor is quarantined")

export const getQuarantine = defineHandler(function*(service, call) {
  yield* requireAdmin(service, call)
  const { id, kind } = yield* actorOf(service, call)
  const all = quarantinesOf(yield* clusterStatus(service))
  const found = all.find((one) => one.id === id && one.kind === kind)
  if (found === undefined) return yield* notQuarantined
  return viewAnswer(quarantineView(service, found.node, found), { headers: noStore })
})

export const liftQuarantine = defineHandler(function*(service, call) {
  const admin = yield* requireAdmin(service, call)
  const actor = yield* actorOf(service, call)
  const operation = {
    caller: callerOf(admin),
    action: "quarantine.lift",
    target: quarantinePath(actor)
  } as const
  const lifted = yield* audited(service, call, operation, service.system.lift(actor))
  if (!lifted) return yield* notQuarantined
  const { headers, method } = call.request
  const isPage = method === "POST" &&
    negotiate(headers.get("accept"), standardTypes) === "text/html"
  return isPage ? seeOther(service, clusterPath) : emptyAnswer(204)
})
