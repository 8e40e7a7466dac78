/** The handler of an export: who may read it, how many are made at once, and the audit log. */
import { Effect } from "effect"
import { beginAudited, type BegunOperation } from "../../audit/index.ts"
import { callerOf } from "../../auth/index.ts"
import { exportsAtOnceMax } from "../../limits.ts"
import { emptySource, type HandlerAnswer, type HandlerFailure, httpError, noStore,
  type ResourceHandler, type Service } from "../../pipeline/index.ts"
import { accountPath, type AccountRef, accountRefOf, describeAccount } from "../accounts/index.ts"
import { exportLines } from "./export-lines.ts"

const exportAnswer = (name: string, source: AsyncIterable<Uint8Array>): HandlerAnswer => ({
  _tag: "Stream",
  status: 200,
  headers: [
    ["Content-Type", "application/x-ndjson"],
    ["Content-Disposition", `attachment; filename="${name}.ndjson"`],
    ...noStore
  ],
  lengthBytes: undefined,
  source,
  holdsPlace: true
})

/** Exports an account. The memory of all exports of a node is bounded by their number. */
export const getExport = (service: Service): ResourceHandler["handle"] => {
  const running = new Set<string>()
  const requireRoom = ({ name }: AccountRef): Effect.Effect<void, HandlerFailure> =>
    running.has(name) || running.size >= exportsAtOnceMax
      ? Effect.fail(httpError(
        "conflict",
        running.has(name)
          ? `an export of the account ${name} is being made at this node: wait for its end`
          : `${exportsAtOnceMax} exports are being made at this node: wait until one has ended`
      ))
      : Effect.void
  async function* source(
    ref: AccountRef,
    { end }: BegunOperation
  ): AsyncGenerator<Uint8Array> {
    // Several requests passed the check at once: a later one fails before its first byte.
    if (running.has(ref.name) || running.size >= exportsAtOnceMax) {
      throw new Error("another export of the account, or as many as a node makes, are being made")
    }
    running.add(ref.name)
    let outcome: "done" | "unknown" = "unknown"
    try {
      yield* exportLines(service, await Effect.runPromise(describeAccount(service, ref)))
      outcome = "done"
    } finally {
      running.delete(ref.name)
      await Effect.runPromise(end(outcome))
    }
  }
  return Effect.fnUntraced(function*(call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const ref = yield* accountRefOf(service, call)
    yield* describeAccount(service, ref)
    yield* requireRoom(ref)
    if (call.request.method === "HEAD") return exportAnswer(ref.name, emptySource)
    const operation = {
      caller: callerOf(ref.caller),
      action: "account.export",
      target: accountPath(ref.name)
    } as const
    return exportAnswer(ref.name, source(ref, yield* beginAudited(service, call, operation)))
  })
}
