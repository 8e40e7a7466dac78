/** `/cluster`, for admins (protocol §6). */
import { Effect } from "effect"
import { type Address, address, isActorId } from "../../../runtime/index.ts"
import { audited } from "../../audit/index.ts"
import { callerOf, requireAdmin } from "../../auth/index.ts"
import { negotiate, standardTypes } from "../../formats/index.ts"
import { type Call, defineHandler, emptyAnswer, type HandlerFailure, httpError, noStore, seeOther,
  type Service, viewAnswer } from "../../pipeline/index.ts"
import { clusterStatus, quarantinesOf } from "./cluster-status.ts"
import { clusterPath, clusterView, quarantineView } from "./cluster-views.ts"
import { historyView } from "./history-views.ts"

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
    target: `/cluster/quarantine/${actor.kind}/${actor.id}`
  } as const
  const lifted = yield* audited(service, call, operation, service.system.lift(actor))
  if (!lifted) return yield* notQuarantined
  const { headers, method } = call.request
  const isPage = method === "POST" &&
    negotiate(headers.get("accept"), standardTypes) === "text/html"
  return isPage ? seeOther(service, clusterPath) : emptyAnswer(204)
})
